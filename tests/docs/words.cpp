// The prose of the sources: words that a reader of this field would not search for, comments that begin as fragments,
// and docs that name files or symbols that do not exist.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tests/support/paths.hpp>
#include <tests/docs/pages.hpp>

namespace fs = std::filesystem;
using namespace declivity::test;

namespace {

/// Words and phrases with the term to write instead. Matched as whole words, from four letters on without regard to
/// case.
const std::vector<std::pair<std::string, std::string>> kBanned = {
    {"anew", "again"},
    {"company", "batch"},
    {"cpu-like", "simd"},
    {"foretell", "predict"},
    {"foretells", "predicts"},
    {"foretelling", "predicting"},
    {"foretold", "predicted"},
    {"given away", "donated"},
    {"gives away", "donates"},
    {"gpu-like", "simt"},
    {"halves", "f16 and bf16, or 16-bit floats"},
    {"he", "the caller"},
    {"kLeast", "kMin"},
    {"kMost", "kMax"},
    {"lent", "borrowed"},
    {"nobody", "no caller, no other owner"},
    {"somebody", "the caller, another thread"},
    {"the like", "similar ones"},
    {"told apart", "classified"},
    {"whoever", "the code that"},
    {"whom", "which"},
};
/// Identifiers with the one to write instead, as a whole.
const std::vector<std::pair<std::string, std::string>> kBannedIdentifiers = {
    {"add_up", "reduce_partials"},
    {"can_serve", "is_applicable"},
    {"goes_with", "batches_with"},
    {"is_half", "is_16bit_float"},
    {"memory_to_reuse", "find_donatable_input"},
    {"of_a", "a_shape, a_info"},
    {"of_b", "b_shape, b_info"},
    {"operation_in_company", "deferred_batched"},
    {"outside_of", "out_of_range_mask"},
    {"takes_casts", "fuses_output_cast"},
    {"value_of", "make_lazy, to_attribute"},
    {"viewed", "view_of, base"},
    {"waiting", "pending"},
    {"wants", "expected"},
    {"weighted_rows", "gather_weighted_sum"},
    {"widens", "upcasts_to_f32"},
};
/// First words that make a comment a fragment instead of a sentence.
const std::set<std::string> kFragments = {"Also",  "And",  "As",   "But",     "By",    "How",  "Including", "Like",
                                          "Nor",   "Not",  "Of",   "Or",      "So",    "Than", "That",      "Then",
                                          "Those", "Thus", "What", "Whether", "Which", "Who",  "Whose"};

struct Passage {
    int line;
    std::string text;
    bool comment;
};

bool is_code(const fs::path& path) {
    const std::string extension = path.extension().string();
    return extension == ".cpp" || extension == ".hpp" || extension == ".cl" || extension == ".clh" ||
           extension == ".def";
}

/// Comments and string literals of C++ or OpenCL C. Code is returned in `code`, where both are blank.
std::vector<Passage> passages(const std::string& text, std::string& code) {
    std::vector<Passage> out;
    int line = 1;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + 1;
        bool comment = false, literal = false;
        if (text.compare(at, 2, "//") == 0) {
            end = std::min(text.find('\n', at), text.size());
            comment = true;
        } else if (text.compare(at, 2, "/*") == 0) {
            end = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
            comment = true;
        } else if (text.compare(at, 2, "R\"") == 0) {
            const std::size_t open = text.find('(', at);
            const std::string close = ")" + text.substr(at + 2, open - at - 2) + "\"";
            end = std::min(text.find(close, open), text.size() - close.size()) + close.size();
            literal = true;
        } else if (text[at] == '"') {
            while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2U : 1U;
            end = std::min(end + 1, text.size());
            literal = true;
        } else if (text[at] == '\'' && (at == 0 || std::isxdigit(static_cast<unsigned char>(text[at - 1])) == 0)) {
            while (end < text.size() && text[end] != '\'' && text[end] != '\n') end += text[end] == '\\' ? 2U : 1U;
            end = std::min(end + 1, text.size());
        }
        std::string part = text.substr(at, end - at);
        if (comment || literal) {
            const auto lines = static_cast<int>(std::ranges::count(part, '\n'));
            code += ' ' + std::string(static_cast<std::size_t>(lines), '\n');
            out.push_back({line, std::move(part), comment});
            line += lines;
        } else {
            code += part;
            line += static_cast<int>(std::ranges::count(part, '\n'));
        }
        at = end;
    }
    return out;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// The banned words of a text, each with what to write instead. Code in `...` does not count.
std::vector<std::string> banned_in(const std::string& passage) {
    static const std::regex quoted("`[^`]*`");
    const std::string as_written = std::regex_replace(passage, quoted, " "), in_lower_case = lower(as_written);
    std::vector<std::string> out;
    for (const auto& [word, replacement] : kBanned) {
        const bool short_word = word.size() < 4;  // He and others is a name
        const std::string& text = short_word ? as_written : in_lower_case;
        const std::string sought = short_word ? word : lower(word);
        for (std::size_t at = text.find(sought); at != std::string::npos; at = text.find(sought, at + 1)) {
            const std::size_t end = at + sought.size();
            if (at > 0 && is_word(text[at - 1])) continue;
            const bool prefix = word[0] == 'k';
            if (!prefix && end < text.size() && is_word(text[end])) continue;
            out.push_back("'" + word + "': write " + replacement);
            break;
        }
    }
    return out;
}

/// The words of an identifier in lower case: `two_halves` and `TwoHalves` have two.
std::vector<std::string> words_of(const std::string& identifier) {
    std::vector<std::string> out(1);
    for (const char c : identifier) {
        if (c == '_' || std::isupper(static_cast<unsigned char>(c)) != 0) out.emplace_back();
        if (c != '_') out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
}

/// The banned identifiers of a line of code, and those with a banned word as a part.
std::vector<std::string> banned_identifiers_in(const std::string& code) {
    std::vector<std::string> out;
    for (std::size_t at = 0, end = 0; at < code.size(); at = end + 1) {
        end = at;
        while (end < code.size() && is_word(code[end])) ++end;
        if (end == at) continue;
        const std::string name = code.substr(at, end - at);
        static std::map<std::string, bool> seen;  // names are repeated, and most are allowed
        const auto [entry, is_new] = seen.try_emplace(name, false);
        if (!is_new && !entry->second) continue;
        for (const auto& [word, replacement] : kBannedIdentifiers)
            if (name == word) out.push_back("'" + name + "': write " + replacement);
        const std::vector<std::string> words = words_of(name);
        for (const auto& [word, replacement] : kBanned)
            if (word.size() >= 4 && std::ranges::find(words, word) != words.end())
                out.push_back("'" + name + "': for '" + word + "' write " + replacement);
        entry->second = !out.empty();
    }
    return out;
}

/// All files with prose, by their path from the root of the sources.
std::vector<fs::path> sources() {
    const fs::path root = declivity::test::source_folder().parent_path();
    std::vector<fs::path> out;
    for (const char* folder :
         {"include", "src", "cl_kernels", "reference", "tests", "samples", "tools", "bench", "docs", "cmake"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            const std::string path = fs::relative(entry.path(), root).generic_string();
            const std::string extension = entry.path().extension().string();
            if (!entry.is_regular_file() || path.starts_with("tests/embed_selftest/files")) continue;
            if (is_code(entry.path()) || extension == ".md" || extension == ".cmake" || extension == ".sh" ||
                extension == ".py" || extension == ".txt")
                out.emplace_back(path);
        }
    for (const char* file : {"README.md", "CONTRIBUTING.md", "CMakeLists.txt", "bootstrap"})
        if (fs::exists(root / file)) out.emplace_back(file);
    std::ranges::sort(out);
    return out;
}

}  // namespace

TEST_CASE("prose: the words of the field") {
    CHECK(banned_in("Values that wait for company.") == std::vector<std::string>{"'company': write batch"});
    CHECK(banned_in("the computed kMostRows") == std::vector<std::string>{"'kMost': write kMax"});
    CHECK(banned_in("`halves` and renewed").empty());
    CHECK(banned_identifiers_in("int of_a = two_halves(a_shape);") ==
          std::vector<std::string>{"'of_a': write a_shape, a_info",
                                   "'two_halves': for 'halves' write f16 and bf16, or 16-bit floats"});

    const fs::path root = declivity::test::source_folder().parent_path();
    std::vector<std::string> findings;
    for (const fs::path& path : sources()) {
        if (path == "tests/docs/words.cpp") continue;
        const std::string text = read(root / path);
        std::vector<Passage> found;
        std::string code;
        if (is_code(path)) {
            found = passages(text, code);
        } else {
            std::istringstream in(text);
            std::string line;
            const bool script = path.extension() == ".py" || path.extension() == ".sh";
            for (int number = 1; std::getline(in, line); ++number) {
                if (script) line.erase(0, line.find('#'));  // comments alone
                found.push_back({number, line, false});
            }
        }
        for (const Passage& passage : found)
            for (const std::string& word : banned_in(passage.text))
                findings.push_back(path.generic_string() + ":" + std::to_string(passage.line) + ": " + word);
        if (path == "tests/train/deprecated_names.cpp") continue;
        std::istringstream lines(code);
        std::string line;
        for (int number = 1; std::getline(lines, line); ++number) {
            if (line.find("[[deprecated") != std::string::npos) continue;  // old names are kept as aliases
            for (const std::string& word : banned_identifiers_in(line))
                findings.push_back(path.generic_string() + ":" + std::to_string(number) + ": " + word);
        }
    }
    CHECK_MESSAGE(findings.empty(), join(findings));
}

TEST_CASE("prose: comments are sentences") {
    const fs::path root = declivity::test::source_folder().parent_path();
    static const std::regex first(R"(^(?://[/!]?<?|#)\s*([A-Z][a-z]+)\b)");
    std::vector<std::string> findings;
    for (const fs::path& path : sources()) {
        if (path.extension() == ".md") continue;
        if (!is_code(path)) {  // scripts and CMake files
            std::istringstream in(read(root / path));
            std::string line;
            bool in_comment = false;
            for (int number = 1; std::getline(in, line); ++number) {
                line.erase(0, line.find_first_not_of(' '));
                std::smatch match;
                if (line.starts_with('#') && !in_comment && std::regex_search(line, match, first) &&
                    kFragments.contains(match[1].str()))
                    findings.push_back(path.generic_string() + ":" + std::to_string(number) + ": " + line);
                in_comment = line.starts_with('#');
            }
            continue;
        }
        std::string code;
        int before = -1;  // line of the comment before: a block continues there
        for (const Passage& passage : passages(read(root / path), code)) {
            if (!passage.comment) continue;
            std::smatch match;
            if (passage.line != before + 1 && std::regex_search(passage.text, match, first) &&
                kFragments.contains(match[1].str()) && !passage.text.ends_with('?'))
                findings.push_back(path.generic_string() + ":" + std::to_string(passage.line) + ": " + passage.text);
            before = passage.line;
        }
    }
    CHECK_MESSAGE(findings.empty(), join(findings));
}
