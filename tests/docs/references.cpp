// Checks that names in docs and comments exist: files, headings of other pages, functions and classes.
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
#include <utility>
#include <vector>

#include <tests/support/paths.hpp>
#include <tests/docs/pages.hpp>

namespace fs = std::filesystem;
using namespace declivity::test;

namespace {

/// Names of other projects, languages and file formats that docs mention as code.
const std::set<std::string> kForeign = {
#include "foreign_names.inc"
};

fs::path root() { return declivity::test::source_folder().parent_path(); }

bool is_source(const fs::path& path) {
    const std::string extension = path.extension().string();
    return extension == ".cpp" || extension == ".hpp" || extension == ".cl" || extension == ".clh" ||
           extension == ".def";
}

std::vector<fs::path> files_in(const std::vector<std::string>& folders) {
    std::vector<fs::path> out;
    for (const std::string& folder : folders) {
        if (!fs::exists(root() / folder)) continue;
        for (const auto& entry : fs::recursive_directory_iterator(root() / folder))
            if (entry.is_regular_file()) out.push_back(entry.path());
    }
    return out;
}

std::vector<fs::path> pages() {
    std::vector<fs::path> out;
    for (const fs::path& path : files_in({"docs", "samples"}))
        if (path.extension() == ".md") out.push_back(path);
    for (const char* page : {"README.md", "CONTRIBUTING.md"})
        if (fs::exists(root() / page)) out.push_back(root() / page);
    std::ranges::sort(out);
    return out;
}

std::string shown(const fs::path& page) { return fs::relative(page, root()).generic_string(); }

/// The text of a page without its fenced blocks.
std::string prose_of(const std::string& page) {
    std::string out, line;
    std::istringstream in(page);
    bool fenced = false;
    while (std::getline(in, line)) {
        if (line.starts_with("```")) fenced = !fenced;
        else if (!fenced && !line.starts_with("    ")) out += line + "\n";
    }
    return out;
}

/// The anchor that forges make of a heading.
std::string anchor_of(std::string_view heading) {
    std::string out;
    for (const char c : heading) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || c == '_' || c == '-') out += static_cast<char>(std::tolower(byte));
        else if (c == ' ') out += '-';
    }
    return out;
}

std::set<std::string> anchors_of(const fs::path& page) {
    std::set<std::string> out;
    std::istringstream in(read(page));
    std::string line;
    bool fenced = false;
    while (std::getline(in, line)) {
        if (line.starts_with("```")) fenced = !fenced;
        const std::size_t hashes = line.find_first_not_of('#');
        if (fenced || hashes == 0 || hashes == std::string::npos || line[hashes] != ' ') continue;
        out.insert(anchor_of(std::string_view(line).substr(hashes + 1)));
    }
    return out;
}

/// Returns whether a path from the root of the sources exists; `*` and `<...>` stand for any part of a name.
bool exists(const std::string& path) {
    const std::size_t wildcard = path.find_first_of("*<{");
    if (wildcard == std::string::npos) return fs::exists(root() / path);
    const std::size_t folder = path.rfind('/', wildcard);
    return folder == std::string::npos || fs::exists(root() / path.substr(0, folder));
}

/// The words of the code of the library, its kernels, tests and programs, comments left out.
const std::set<std::string>& words_of_code() {
    static const std::set<std::string> words = [] {
        std::set<std::string> out;

        for (const fs::path& path :
             files_in({"include", "src", "cl_kernels", "reference", "tests", "samples", "tools", "bench", "cmake"})) {
            const bool source = is_source(path);
            if (!source && path.extension() != ".cmake" && path.extension() != ".py" && path.extension() != ".sh" &&
                path.filename() != "CMakeLists.txt")
                continue;
            if (path.filename() == "references.cpp" || path.filename() == "words.cpp") continue;
            std::istringstream in(read(path));
            std::string line;
            while (std::getline(in, line)) {
                if (source)
                    if (const std::size_t at = line.find("//"); at != std::string::npos) line.resize(at);
                std::string word;
                for (const char c : line + " ") {
                    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') word += c;
                    else if (!word.empty()) out.insert(std::exchange(word, {}));
                }
            }
        }
        return out;
    }();
    return words;
}

}  // namespace

TEST_CASE("docs: links lead to pages and headings that exist") {
    std::vector<std::string> findings;
    static const std::regex link(R"(\]\(([^)\s#]*)(#[^)\s]*)?\))");
    for (const fs::path& page : pages()) {
        const std::string text = prose_of(read(page));
        for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
            const std::string to = (*at)[1].str(), anchor = (*at)[2].str();
            if (to.starts_with("http") || to.starts_with("mailto")) continue;
            const fs::path target = to.empty() ? page : page.parent_path() / to;
            if (!fs::exists(target)) findings.push_back(shown(page) + ": " + to);
            else if (!anchor.empty() && target.extension() == ".md" && !anchors_of(target).contains(anchor.substr(1)))
                findings.push_back(shown(page) + ": " + to + anchor);
        }
    }
    CHECK_MESSAGE(findings.empty(), join(findings));
}

TEST_CASE("docs and comments: files exist") {
    static const std::regex path(R"((^|[\s`(<"])((?:include|src|cl_kernels|reference|tests|samples|tools|bench|)"
                                 R"(docs|cmake)/)"
                                 R"([\w./*<>{},+-]*\w)(?=$|[\s`)>"#.,:;]))");
    std::vector<std::string> findings;
    std::vector<fs::path> files = pages();
    for (const fs::path& file :
         files_in({"include", "src", "cl_kernels", "reference", "tests", "samples", "tools", "bench", "cmake"}))
        if (is_source(file) || file.extension() == ".cmake" || file.extension() == ".sh") files.push_back(file);
    for (const fs::path& file : files) {
        const bool page = file.extension() == ".md";
        if (shown(file).starts_with("tests/docs/") || shown(file) == "tests/layers_selftest.cmake") continue;
        std::istringstream in(page ? read(file) : read(file));
        std::string line;
        for (int number = 1; std::getline(in, line); ++number) {
            if (!page) {  // comments alone
                const std::size_t at = line.find(is_source(file) ? "//" : "#");
                if (at == std::string::npos) continue;
                line = line.substr(at);
            }
            if (line.find("<!-- create ") != std::string::npos) continue;  // a file of a recipe
            for (std::sregex_iterator at(line.begin(), line.end(), path), end; at != end; ++at)
                if (!exists((*at)[2].str()))
                    findings.push_back(shown(file) + ":" + std::to_string(number) + ": " + (*at)[2].str());
        }
    }
    CHECK_MESSAGE(findings.empty(), join(findings));
}

TEST_CASE("docs: the table of strategies is complete") {
    const std::string table = read(root() / "docs/internals/performance.md");
    static const std::regex row(R"(\n[A-Z0-9]+_STRATEGY\((\w+)\))");
    int rows = 0;
    for (const char* list : {"src/ops/conv/conv2d_strategies.def", "src/ops/matmul/matmul_strategies.def"}) {
        const std::string text = read(root() / list);
        for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at, ++rows) {
            CAPTURE((*at)[1].str());
            CHECK(table.find(" | `" + (*at)[1].str() + "` | ") != std::string::npos);
        }
    }
    CHECK(rows > 10);
}

TEST_CASE("docs: functions and classes exist") {
    static const std::regex code("`([^`\n]+)`");
    static const std::regex name(R"(^(?:[A-Za-z_]\w*)(?:::[A-Za-z_~]\w*)*(?:\(\))?$)");
    std::vector<std::string> findings;
    for (const fs::path& page : pages()) {
        const std::string text = prose_of(read(page));
        std::set<std::string> seen;
        for (std::sregex_iterator at(text.begin(), text.end(), code), end; at != end; ++at) {
            std::string said = (*at)[1].str();
            if (!std::regex_match(said, name) || !seen.insert(said).second) continue;
            if (said.ends_with("()")) said.resize(said.size() - 2);
            for (std::size_t from = 0; from < said.size();) {
                const std::size_t colons = std::min(said.find("::", from), said.size());
                const std::string part = said.substr(from, colons - from);
                if (!words_of_code().contains(part) && !kForeign.contains(part) && part != "std")
                    findings.push_back(shown(page) + ": " + said);
                from = colons + 2;
            }
        }
    }
    CHECK_MESSAGE(findings.empty(), join(findings));
}
