// tokenizer.json: malformed files are refused with file, byte and JSON pointer.
#include <fstream>
#include <string>

#include <declivity/runtime/error.hpp>
#include <declivity/text/tokenizer.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/damage.hpp"
#include "tests/support/paths.hpp"
#include "text/regex.hpp"

using namespace declivity;
using namespace declivity::text;
using namespace declivity::test;
using Json = nlohmann::json;

namespace {

/// The error and its location; empty without one.
std::string error_message(const std::string& json) {
    try {
        (void)Tokenizer::from_json(json, "t.json");
    } catch (const FormatError& error) {
        CHECK(error.file() == "t.json");
        CHECK(error.offset() <= json.size());
        return error.what();
    }
    return "";
}

std::string json_with(const std::string& part) {
    return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},)" + part + "}";
}

void check_message(const std::string& json, const std::string& expected) {
    const std::string message = error_message(json);
    CHECK_MESSAGE(message.find(expected) != std::string::npos, message << " lacks " << expected);
}

}  // namespace

TEST_CASE("tokenizer.json: errors have a location") {
    CHECK(error_message(json_with(R"("decoder":null)")).empty());
    check_message("{", "t.json: at byte 1: not valid JSON");
    check_message("[1]", "the whole: expected an object, got array");
    check_message("{}", "the whole: expected a member 'model'");
    check_message(R"({"model": {"type": "Other"}})", "t.json: at byte 19: /model/type: 'Other' is not a known model");
    check_message(R"({"model":{"type":"BPE","vocab":{"a":0,"b":-1},"merges":[]}})",
                  "at byte 42: /model/vocab/b: expected an integer from 0 to");
    check_message(R"({"model":{"type":"BPE","vocab":{"a/~":0.5},"merges":[]}})",
                  "at byte 38: /model/vocab/a~1~0: expected an integer, got number");
    check_message(R"({"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}})",
                  "/model/vocab/a: expected an integer from 0 to");
    check_message(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}})",
                  "at byte 49: /model/merges/0: the token 'aa' is not in the vocabulary");
    check_message(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["aa"]}})",
                  "/model/merges/0: expected two tokens and one space, got 'aa'");
    check_message(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}})",
                  "/model/merges/0: expected two tokens, got 1");
    check_message(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a",7]]}})",
                  "/model/merges/0/1: expected a string, got number");
    check_message(R"({"model":{"type":"BPE","vocab":{},"merges":[],"dropout":2}})",
                  "/model/dropout: expected 0 to 1, got 2");
    check_message(R"({"model":{"type":"Unigram","vocab":[["a"]],"unk_id":0}})",
                  "/model/vocab/0: expected a piece and a score");
    check_message(R"({"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":1}})",
                  "/model/unk_id: expected an integer from 0 to 0, got 1");
    check_message(R"({"model":{"type":"WordPiece","vocab":[]}})", "/model/vocab: expected an object, got array");
    check_message(json_with(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"None"}]})"),
                  "/normalizer/normalizers/1/type: 'None' is not a known normalizer");
    check_message(json_with(R"("normalizer":{"type":"Replace","pattern":{"Regex":"(a"},"content":""})"),
                  "/normalizer/pattern/Regex: Regex: '(a' is not a valid pattern");
    check_message(json_with(R"("normalizer":{"type":"Replace","pattern":{},"content":""})"),
                  "/normalizer/pattern: expected {\"String\"");
    check_message(json_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"})"),
                  "/normalizer/precompiled_charsmap: the table is truncated");
    check_message(json_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"_"})"),
                  "'_' is not a base64 character");
    check_message(json_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="})"),
                  "expected a trie of 4294967295 bytes");
    check_message(
        json_with(R"("pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"Gone","invert":false})"),
        "/pre_tokenizer/behavior: 'Gone' is not a behavior");
    check_message(json_with(R"("pre_tokenizer":{"type":"Metaspace","replacement":"ab"})"),
                  "/pre_tokenizer/replacement: expected one character");
    const auto template_with = [](const std::string& piece) {
        return json_with(R"("post_processor":{"type":"TemplateProcessing","pair":[],"special_tokens":{},"single":[)" +
                         piece + "]}");
    };
    check_message(template_with(R"({"Sequence":{"id":"C","type_id":0}})"), "/single/0/Sequence/id: expected A or B");
    check_message(template_with(R"({"SpecialToken":{"id":"x","type_id":0}})"),
                  "/post_processor/special_tokens: expected a member 'x'");
    check_message(json_with(R"("post_processor":{"type":"BertProcessing","sep":["x"],"cls":["y",1]})"),
                  "/post_processor/sep: expected at least 2 elements");
    check_message(json_with(R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"),
                  "/decoder/start: expected an integer from 0");
    check_message(json_with(R"("added_tokens":[{"id":0}])"), "/added_tokens/0: expected a member 'content'");
    check_message(json_with(R"("truncation":{"max_length":2,"strategy":"LongestFirst","stride":2})"),
                  "/truncation/stride: expected a stride below");
    check_message(json_with(R"("padding":{"strategy":"Shortest"})"), "/padding/strategy: expected BatchLongest");
    check_message(json_with(R"("decoder":)" + std::string(100, '[') + std::string(100, ']')),
                  "nested deeper than 64 levels");
    // The last one of duplicate members counts, also in errors.
    check_message(R"({"model":1,"model":{"type":2}})", "at byte 27: /model/type: expected a string");
}

TEST_CASE("tokenizer.json: an id is unique, so that saved files load") {
    check_message(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":1},"merges":[["a","b"]]}})",
                  "expected an id for each token, got 1 for 'ab' and 'b'");
    check_message(R"({"model":{"type":"WordPiece","vocab":{"a":0,"b":0}}})",
                  "/model/vocab/b: expected an id for each token");
    check_message(R"({"model":{"type":"WordLevel","vocab":{"a":7,"b":7}}})", "expected an id for each token, got 7");
    // With gaps between the ids, an added token uses none of the model's.
    const Tokenizer gaps = Tokenizer::from_json(
        R"({"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"b":2}},"added_tokens":[{"content":"x"}]})");
    CHECK(gaps.token_to_id("x") == 3);
    CHECK(gaps.id_to_token(2) == "b");
    CHECK(Tokenizer::from_json(gaps.to_json()).to_json() == gaps.to_json());
}

TEST_CASE("tokenizer.json: padding has a limit") {
    for (const char* padding :
         {R"("padding":{"strategy":{"Fixed":2147483647}})", R"("padding":{"strategy":{"Fixed":1048577}})",
          R"("padding":{"strategy":"BatchLongest","pad_to_multiple_of":2147483647})"})
        check_message(json_with(padding), "/padding/");
    Tokenizer tokenizer = Tokenizer::from_json(json_with(R"("padding":{"strategy":{"Fixed":1048576}})"));
    CHECK(tokenizer.encode("ab").size() == 1U << 20);
    CHECK_THROWS_AS(tokenizer.set_padding(Padding{.length = (1 << 20) + 1}), ValueError);
    CHECK_THROWS_AS(tokenizer.set_padding(Padding{.pad_to_multiple_of = INT32_MAX}), ValueError);
}

TEST_CASE("tokenizer.json: exponentially growing replacements end with an error") {
    const auto repeated = [](const std::string& part, int count) {
        std::string out;
        for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + part;
        return out;
    };
    const auto check_limit_error = [](const std::string& json, auto call) {
        const Tokenizer tokenizer = Tokenizer::from_json(json);
        try {
            call(tokenizer);
            FAIL_CHECK("it ended");
        } catch (const ValueError& error) {
            CHECK(std::string(error.what()).find("Tokenizer: expected") != std::string::npos);
        }
    };
    const std::string growing_normalizer =
        R"({"type":"Replace","pattern":{"String":"a"},"content":")" + std::string(64, 'a') + "\"}";
    const auto encode = [](const Tokenizer& tokenizer) { (void)tokenizer.encode("aaaa"); };
    check_limit_error(
        json_with(R"("normalizer":{"type":"Sequence","normalizers":[)" + repeated(growing_normalizer, 60) + "]}"),
        encode);
    const std::string large(std::size_t{1} << 20, 'b');
    check_limit_error(json_with(R"("normalizer":{"type":"Replace","pattern":{"Regex":""},"content":")" + large + "\"}"),
                      [](const Tokenizer& tokenizer) { (void)tokenizer.encode(std::string(100, 'a')); });
    check_limit_error(json_with(R"("normalizer":{"type":"Sequence","normalizers":[)" +
                                repeated(R"({"type":"Prepend","prepend":")" + large + "\"}", 20) + "]}"),
                      encode);
    check_limit_error(json_with(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)" +
                                repeated(R"({"type":"ByteLevel","use_regex":false})", 60) + "]}"),
                      [](const Tokenizer& tokenizer) { (void)tokenizer.encode("é"); });
    check_limit_error(
        json_with(R"("decoder":{"type":"Sequence","decoders":[)" + repeated(growing_normalizer, 60) + "]}"),
        [](const Tokenizer& tokenizer) { (void)tokenizer.decode(std::vector<std::int64_t>(10, 0)); });
    check_message(
        json_with(
            R"("added_tokens":[{"content":"aaaa","normalized":true}],"normalizer":{"type":"Sequence","normalizers":[)" +
            repeated(growing_normalizer, 60) + "]}"),
        "/added_tokens: Tokenizer: expected a normalized text");
    // A template of many texts, each with overflowing pieces.
    const auto template_of = [&](const std::string& template_with) {
        return json_with(
            R"("truncation":{"max_length":1,"stride":0},"post_processor":{"type":"TemplateProcessing","pair":[],)"
            R"("special_tokens":{"x":{"id":"x","ids":[)" +
            repeated("0", 1000) + R"(],"tokens":[)" + repeated(R"("x")", 1000) + R"(]}},"single":[)" + template_with +
            "]}");
    };
    check_limit_error(template_of(repeated(R"({"Sequence":{"id":"A","type_id":0}})", 16)), encode);
    check_message(template_of(repeated(R"({"Sequence":{"id":"A","type_id":0}})", 17)), "at most 16 texts");
    check_message(template_of(repeated(R"({"SpecialToken":{"id":"x","type_id":0}})", 100)),
                  "at most 65536 special tokens");
    // Pieces that begin one token after another.
    check_limit_error(json_with(R"("truncation":{"max_length":50000,"stride":49999})"),
                      [](const Tokenizer& tokenizer) { (void)tokenizer.encode(std::string(200'000, 'a')); });
    const Tokenizer sliding = Tokenizer::from_json(json_with(R"("truncation":{"max_length":4,"stride":3})"));
    CHECK(sliding.encode("aaaaaaaa").overflowing.size() == 4);
    // Tokens that are compared at each position of a text.
    const std::string token(5000, 'a');
    check_message(R"({"model":{"type":"Unigram","vocab":[[")" + token + "\",0]]}}",
                  "/model/vocab/0/0: expected a token of at most 4096");
    check_message(R"({"model":{"type":"WordPiece","vocab":{")" + token + "\":0}}}",
                  "/model/vocab: expected tokens of at most 1000");
    check_message(json_with(R"("added_tokens":[{"content":")" + token + "\"}]"),
                  "/added_tokens/0/content: expected a token");
}

TEST_CASE("tokenizer.json: fuzzed files") {
    const TempFolder folder;
    const auto path = folder / "tokenizer.json";
    std::ifstream in(source_folder() / "text/tokenizer_facts.json");
    for (const Json& item : Json::parse(in)) {
        Json description = item.at("tokenizer");
        // Without most of the vocabulary, so that the structure is damaged.
        if (Json& vocab = description["model"]["vocab"]; vocab.is_object() && vocab.size() > 60) {
            description["model"]["merges"] = {"t h", "th e"};
            vocab = {{"t", 0}, {"h", 1}, {"e", 2}, {"th", 3}, {"the", 4}, {"<unk>", 5}};
        }
        const std::string json = description.dump();
        const auto read = [](const std::filesystem::path& file) {
            const Tokenizer tokenizer = Tokenizer::from_file(file);
            try {
                (void)tokenizer.decode(tokenizer.ids("the hello [CLS] é 中 <s>"));
                (void)tokenizer.encode("the", "hello");
            } catch (const ValueError&) {  // no unknown token, or truncation to 0
            }
        };
        const Bytes valid(json.begin(), json.end());
        put_file(path, valid);
        read(path);
        CHECK(truncate_everywhere(valid, path, read).accepted == 0);
        const Verdicts verdicts = damage_at_random(valid, path, 600, read);
        CHECK(verdicts.refused > 100);
    }
}

TEST_CASE("tokenizer.json: Oniguruma patterns have the same meaning in PCRE2") {
    const auto matches = [](const char* pattern, std::string_view text) {
        std::string out;
        Regex(pattern).for_each(text, [&](text::Range match) {
            out += std::string(text.substr(match.begin, match.end - match.begin)) + "|";
        });
        return out;
    };
    CHECK(matches(R"(\s)", "a\u180Eb\u0085c\u3000d") == "\u0085|\u3000|");  // PCRE2's \s includes U+180E
    CHECK(matches(R"([^\S\n]+)", "a \n\u180E \t") == " | \t|");
    CHECK(matches(R"(\w+)", "e\u0301_Ⓐ² ①") == "e\u0301_Ⓐ²|");
    CHECK(matches(R"(\h+)", "0aFg") == "0aF|");  // hexadecimal digits in Oniguruma, spaces in PCRE2
    CHECK(matches(R"(^b)", "a\nb") == "b|");     // always at each line
    CHECK(matches(R"((?m:.)+)", "a\nb") == "a\nb|");
    CHECK(matches(R"(x.)", "x\nxy") == "xy|");
    CHECK(matches(R"([a-f]{2,3}+)", "abcdefx") == "abcdef|");  // not possessive
    CHECK(matches(R"(a{,2}b)", "aaab") == "aab|");
    CHECK(matches(R"(a{x}|\{)", "a{x}{") == "a{x}|{|");
    CHECK(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab中c") == "ab|c|");
    CHECK(matches(R"([a-z&&[^aeiou]]+)", "hello") == "h|ll|");
    CHECK(matches(R"([^a-z&&[^aeiou]])", "he1") == "e|1|");
    CHECK(matches(R"(\bthe\b)", "the then the\u0301") == "the|");
    CHECK(matches(R"(\u4e2d)", "中") == "中|");
    CHECK(matches(R"([[:digit:]\]x]+)", "1]x-") == "1]x|");
    CHECK(matches("", "ab") == "|||");
    CHECK(matches("b*", "abba") == "|bb||");
    CHECK_THROWS_AS(Regex("[a"), ValueError);
    CHECK_THROWS_AS(Regex("(a"), ValueError);
    CHECK_THROWS_AS(Regex("\\"), ValueError);
    CHECK_THROWS_AS(Regex("[a[bc]d[e]]"), ValueError);
    CHECK_THROWS_AS(Regex("\xFF"), ValueError);
}
