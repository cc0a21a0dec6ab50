// Regular expressions of tokenizer.json: any pattern is refused by name or its matching terminates, and matches are
// ordered and on character boundaries.
#include "text/regex.hpp"

#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/text/tokenizer.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace declivity;
using namespace declivity::text;

namespace {

/// The error of a pattern, or of a match; empty without one.
std::string error_message(const std::string& pattern, const std::string& text = "") {
    try {
        Regex(pattern).for_each(text, [](text::Range) {});
    } catch (const ValueError& error) {
        return error.what();
    }
    return "";
}

void check_message(const std::string& message, const char* expected) {
    CHECK_MESSAGE(message.find(expected) != std::string::npos, message << " lacks " << expected);
}

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
    std::vector<std::string> out;
    Regex(pattern).for_each(
        text, [&](text::Range match) { out.push_back(text.substr(match.begin, match.end - match.begin)); });
    return out;
}

}  // namespace

TEST_CASE("regex: nested classes and groups do not overflow the stack") {
    check_message(error_message(std::string(20'000, '[')), "classes are nested deeper than 16");
    check_message(error_message(std::string(2'000'000, '[')), "expected a pattern of at most 32768 bytes");
    CHECK(!error_message(std::string(10'000, '(') + std::string(10'000, ')')).empty());
    CHECK(!error_message("(?:" + std::string(5'000, 'a') + "){60000}").empty());
    CHECK(matches("[[a-c]&&[b-d]]+", "abcd") == std::vector<std::string>{"bc"});
}

TEST_CASE("regex: characters are not split") {
    const std::string text = "\xe4\xb8\xad\xe6\x96\x87";
    for (const char* pattern : {R"(\C)", R"(a|\C\C)", R"((?:\C))", R"(\Q\C\E)", R"([\C])", R"((?<=\C).)"})
        CHECK_MESSAGE(!error_message(pattern, text).empty(), pattern);
    check_message(error_message(R"(\C)"), "'\\C' is not supported");
    CHECK(matches(".", text) == std::vector<std::string>{"\xe4\xb8\xad", "\xe6\x96\x87"});
    CHECK(matches(R"(\\C)", "\\C") == std::vector<std::string>{"\\C"});
}

TEST_CASE("regex: a match neither ends before its start nor begins within the previous one") {
    CHECK(matches(R"(a\Kb)", "abab") == std::vector<std::string>{"b", "b"});
    // K in a group called from a lookahead moves the start after the end.
    check_message(error_message(R"((?(DEFINE)(?<k>ab\K))(?=(?&k)))", "xababab"), "expected a match");
    for (const char* pattern : {R"((?=ab\K))", R"((?<=a\K)b)", R"((?=(?<k>a\K))\g<k>)",
                                R"((?(DEFINE)(?<k>ab\K))(?=(?&k)))", R"((?(DEFINE)(?<k>a\K))(?<=(?&k))b)"})
        (void)error_message(pattern, "abababab");  // must terminate
    CHECK(matches("", "ab").size() == 3);
    CHECK(matches("a*", "baac") == std::vector<std::string>{"", "aa", ""});
}

TEST_CASE("regex: verbs, settings and callouts of PCRE2 are not supported") {
    for (const char* pattern :
         {"(*UTF)a", "(*UCP)a", "(*NO_JIT)a", "(*LIMIT_MATCH=4000000000)a", "(*LIMIT_HEAP=4000000000)a",
          "(*LIMIT_DEPTH=4000000000)a", "(*NOTEMPTY)a", "(*NO_START_OPT)a", "(*CRLF)a", "(*BSR_ANYCRLF)a", "a(*SKIP)b",
          "a(*ACCEPT)b", "(*MARK:x)a", "(*pla:a)b", "(*COMMIT)", "(?C)a", "(?C1)a", "(?C'x')a"})
        CHECK_MESSAGE(error_message(pattern).find("is not supported") != std::string::npos, pattern);
    CHECK(matches(R"(\(\*x)", "(*x") == std::vector<std::string>{"(*x"});
    CHECK(matches(R"([(*]+)", "a(*b") == std::vector<std::string>{"(*"});
}

TEST_CASE("regex: excessive backtracking and recursion are errors that name the pattern") {
    check_message(error_message("(?:a+)+$", std::string(60, 'a') + "b"),
                  "Regex: '(?:a+)+$' on a text of 61 bytes: match limit");
    check_message(error_message("(a|aa)+$", std::string(100, 'a') + "b"), "Regex: '(a|aa)+$'");
    check_message(error_message(R"((?<r>a\g<r>?b|\g<r>c))", std::string(100, 'a')), "Regex: ");
    CHECK(!error_message("(?:(?R))", "a").empty());
    // Open groups take memory, which is limited as well.
    const std::string deep = error_message(R"((?<r>\(\g<r>*\)))", std::string(4'000'000, '('));
    CHECK((deep.empty() || deep.find("limit") != std::string::npos));
    CHECK(matches(R"(\((?:[^()]|(?R))*\))", "a(b(c)d)e") == std::vector<std::string>{"(b(c)d)"});
    CHECK(matches(R"(\s+(?!\S)|\s+|\S+)", std::string(100'000, ' ') + "a").size() == 3);
}

TEST_CASE("regex: tokenizers with such patterns are refused with file and pointer, or encode") {
    const std::string vocab = R"([["<unk>",0],["a",-1]])";
    const std::vector<std::string> models{R"({"type":"Unigram","unk_id":0,"vocab":)" + vocab + "}",
                                          R"({"type":"WordPiece","unk_token":"a","vocab":{"a":0}})",
                                          R"({"type":"BPE","vocab":{"a":0},"merges":[]})"};
    for (const std::string& model : models)
        for (const char* pattern : {R"(\C)", "(*UTF)a", R"(a\C)"})
            for (const char* part : {R"("pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":)",
                                     R"("normalizer":{"type":"Replace","content":"x","pattern":{"Regex":)"}) {
                const std::string json = "{\"model\":" + model + "," + part + nlohmann::json(pattern).dump() + "}}}";
                try {
                    (void)Tokenizer::from_json(json, "t.json")
                        .encode(
                            "\xe4\xb8\xad"
                            "a");
                    FAIL_CHECK(json);
                } catch (const FormatError& error) {
                    CHECK(error.file() == "t.json");
                    CHECK(std::string(error.what()).find("/pattern/Regex") != std::string::npos);
                }
            }
}
