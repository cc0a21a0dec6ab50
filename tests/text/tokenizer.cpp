// Tokenizers compared with tokenizer_facts.json, made by tests/peers/text/small_facts.py with the Python package, and
// properties that such a table does not show.
#include <declivity/text/tokenizer.hpp>

#include <fstream>
#include <string>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/paths.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;
using namespace declivity::text;
using Json = nlohmann::json;

namespace {

Json all_facts() {
    std::ifstream in(test::source_folder() / "text/tokenizer_facts.json");
    return Json::parse(in);
}

Tokenizer small(const std::string& name) {
    for (const Json& fact : all_facts())
        if (fact.at("name") == name) return Tokenizer::from_json(fact.at("tokenizer").dump());
    throw std::runtime_error("there is no such tokenizer");
}

void compare(const Encoding& got, const Json& expected, const std::vector<std::string>& texts) {
    CHECK(got.ids == expected.at("ids").get<std::vector<std::int64_t>>());
    CHECK(got.tokens == expected.at("tokens").get<std::vector<std::string>>());
    CHECK(got.type_ids == expected.at("type_ids").get<std::vector<std::int64_t>>());
    CHECK(got.special_tokens_mask == expected.at("special_tokens_mask").get<std::vector<std::int64_t>>());
    CHECK(got.word_ids == expected.at("word_ids").get<std::vector<std::int64_t>>());
    CHECK(got.attention_mask == std::vector<std::int64_t>(got.size(), 1));
    REQUIRE(got.offsets.size() == expected.at("offsets").size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        Offsets span = got.offsets[i];  // in bytes; the package's offsets are in characters
        if (got.sequence_ids[i] >= 0) span = in_characters(texts[static_cast<std::size_t>(got.sequence_ids[i])], span);
        CHECK(Json{span.begin, span.end} == expected.at("offsets")[i]);
    }
}

std::string random_text(data::Random& random, std::int64_t pieces) {
    const std::vector<std::string> parts{"the", " ",     "hello", "ing", "s",        "é",      "e\u0301",
                                         "中",  "\n",    "12",    "'",   "<s>",      "\u200D", "👍🏽",
                                         "\t",  "[SEP]", "x",     ",",   "\xF0\x9F", "\xFF"};
    std::string out;
    for (std::int64_t i = 0; i < pieces; ++i)
        out += parts[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(parts.size())))];
    return out;
}

}  // namespace

TEST_CASE("tokenizer: small tokenizers match the package") {
    for (const Json& fact : all_facts()) {
        const std::string name = fact.at("name");
        CAPTURE(name);
        const Tokenizer direct = Tokenizer::from_json(fact.at("tokenizer").dump());
        const Tokenizer again = Tokenizer::from_json(direct.to_json());
        CHECK(again.to_json() == direct.to_json());
        for (const Tokenizer& tokenizer : {direct, again})
            for (const Json& call : fact.at("calls")) {
                const std::string text = call.at("text");
                CAPTURE(text);
                const Encoding encoding = tokenizer.encode(text);
                compare(encoding, call.at("encoding"), {text});
                CHECK(tokenizer.ids(text) == encoding.ids);
                CHECK(tokenizer.ids(text, {.add_special_tokens = false}) ==
                      tokenizer.encode(text, {.add_special_tokens = false}).ids);
                if (call.contains("pair"))
                    compare(tokenizer.encode(text, "the end"), call.at("pair"), {text, "the end"});
                CHECK(tokenizer.decode(encoding.ids) == call.at("decoded").get<std::string>());
            }
    }
}

TEST_CASE("tokenizer: offsets are within the text, ordered, and cover byte-level text") {
    data::Random random(3, 0, 0, data::Purpose::user);
    for (const char* name : {"gpt2", "llama3", "bert", "unigram", "llama2", "words"}) {
        const Tokenizer tokenizer = small(name);
        for (int round = 0; round < 60; ++round) {
            const std::string text = random_text(random, 1 + random.below(30));
            const Encoding encoding = tokenizer.encode(text, {.add_special_tokens = false});
            std::size_t last = 0;
            for (const Offsets& span : encoding.offsets) {
                CHECK(span.begin <= span.end);
                CHECK(span.end <= text.size());
                CHECK(span.begin >= last);
                last = span.begin;
            }
            if (std::string(name) == "gpt2" && !encoding.offsets.empty())
                CHECK(encoding.offsets.back().end == text.size());
        }
    }
}

TEST_CASE("tokenizer: invalid UTF-8 reads as U+FFFD") {
    const Tokenizer tokenizer = byte_tokenizer();
    CHECK(tokenizer.decode(tokenizer.ids("a\xFF"
                                         "b")) == "a\uFFFDb");
    // One U+FFFD for each maximal subpart of a character (Unicode, 3.9).
    CHECK(tokenizer.decode(tokenizer.ids("\xF0\x9F\x91z\xE2\x82\xC3")) == "\uFFFDz\uFFFD\uFFFD");
    CHECK(tokenizer.decode(tokenizer.ids("\xC0\x80\xED\xA0\x80")) == "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
    CHECK(tokenizer
              .encode("a\xFF"
                      "b")
              .offsets.back() == Offsets{2, 3});
    CHECK(in_characters("é\xFFx", {2, 4}) == Offsets{1, 3});
    CHECK(in_characters("中文", {1, 2}) == Offsets{0, 1});
    CHECK_THROWS_AS((void)in_characters("ab", {1, 3}), ValueError);
}

TEST_CASE("tokenizer: bytes round trip") {
    const Tokenizer tokenizer = byte_tokenizer({"<pad>"});
    CHECK(tokenizer.vocab_size() == 257);
    const std::string text = "any téxt: 中 \n\t\x01 👍";
    const std::vector<std::int64_t> ids = tokenizer.ids(text);
    CHECK(ids.size() == text.size());
    CHECK(tokenizer.decode(ids) == text);
    CHECK(tokenizer.ids("a<pad>b") ==
          std::vector<std::int64_t>{*tokenizer.token_to_id("a"), 0, *tokenizer.token_to_id("b")});
}

TEST_CASE("tokenizer: cached pieces give the same tokens, and so do long ones") {
    const Tokenizer tokenizer = small("gpt2"), untouched = small("gpt2");
    data::Random random(5, 0, 0, data::Purpose::user);
    for (int round = 0; round < 40; ++round) {
        // Without spaces: one long piece, whose merges use a queue; its parts are cached.
        std::string text;
        for (std::int64_t i = 0; i < 1 + random.below(400); ++i) text += "thehellinganorw"[random.below(15)];
        const std::vector<std::int64_t> first_ids = tokenizer.ids(text);
        CHECK(tokenizer.ids(text) == first_ids);
        CHECK(Tokenizer::from_json(untouched.to_json()).ids(text) == first_ids);
        CHECK(tokenizer.decode(first_ids) == text);
    }
}

TEST_CASE("tokenizer: pairs are merged by rank, from the left") {
    const std::vector<std::pair<std::string, std::string>> merges{
        {"a", "a"}, {"b", "a"}, {"aa", "b"}, {"aa", "aa"}, {"b", "b"}};
    const Tokenizer tokenizer =
        Tokenizer::from_json(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"aa":2,"ba":3,"aab":4,"aaaa":5,"bb":6},
        "merges":["a a","b a","aa b","aa aa","b b"]}})");
    data::Random random(13, 0, 0, data::Purpose::user);
    for (int round = 0; round < 120; ++round) {
        std::string text;
        const std::int64_t length = 1 + random.below(round % 2 == 0 ? 12 : 90);  // by a search, and by a queue
        for (std::int64_t i = 0; i < length; ++i) text += random.below(3) == 0 ? 'b' : 'a';
        std::vector<std::string> symbols;
        for (const char c : text) symbols.emplace_back(1, c);
        for (bool any = true; any;) {
            any = false;
            for (const auto& [left, right] : merges) {
                for (std::size_t i = 0; i + 1 < symbols.size() && !any; ++i) {
                    if (symbols[i] != left || symbols[i + 1] != right) continue;
                    symbols[i] += right;
                    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                    any = true;
                }
                if (any) break;
            }
        }
        CHECK(tokenizer.encode(text).tokens == symbols);
    }
}

TEST_CASE("tokenizer: dropout of merges depends only on its seed") {
    Json description;
    for (const Json& fact : all_facts())
        if (fact.at("name") == "gpt2") description = fact.at("tokenizer");
    description["model"]["dropout"] = 0.5;
    const Tokenizer tokenizer = Tokenizer::from_json(description.dump()), plain = small("gpt2");
    const std::string text = "the hello thing than the other hello thing than the other";
    CHECK(tokenizer.ids(text) == plain.ids(text));
    CHECK(tokenizer.ids(text, {.dropout_seed = 1}) == tokenizer.ids(text, {.dropout_seed = 1}));
    CHECK(tokenizer.ids(text, {.dropout_seed = 1}) != tokenizer.ids(text, {.dropout_seed = 2}));
    CHECK(tokenizer.ids(text, {.dropout_seed = 1}).size() > plain.ids(text).size());
    CHECK(tokenizer.encode(text, {.dropout_seed = 7}).ids == tokenizer.ids(text, {.dropout_seed = 7}));
    CHECK(tokenizer.decode(tokenizer.ids(text, {.dropout_seed = 1})) == text);
    CHECK(plain.ids(text, {.dropout_seed = 1}) == plain.ids(text));
}

TEST_CASE("tokenizer: truncation keeps the overflow, and padding") {
    Tokenizer tokenizer = small("bert");
    tokenizer.set_truncation(Truncation{.max_length = 5, .stride = 1});
    const Encoding truncated = tokenizer.encode("the hello is the hello is do");
    const auto joined_tokens = [](const Encoding& encoding) {
        std::string out;
        for (const std::string& token : encoding.tokens) out += (out.empty() ? "" : " ") + token;
        return out;
    };
    CHECK(joined_tokens(truncated) == "[CLS] the hello is [SEP]");
    REQUIRE(truncated.overflowing.size() == 2);
    CHECK(joined_tokens(truncated.overflowing[0]) == "[CLS] is the hello [SEP]");
    CHECK(joined_tokens(truncated.overflowing[1]) == "[CLS] hello is do [SEP]");
    tokenizer.set_truncation(Truncation{.max_length = 5, .direction = Side::left});
    CHECK(joined_tokens(tokenizer.encode("the hello is the hello is do")) == "[CLS] hello is do [SEP]");
    // A pair: the longer one is truncated first; the rest is shared.
    tokenizer.set_truncation(Truncation{.max_length = 7});
    CHECK(joined_tokens(tokenizer.encode("the", "is is is is is")) == "[CLS] the [SEP] is is is [SEP]");
    CHECK(joined_tokens(tokenizer.encode("the the the the", "is is is is is")) == "[CLS] the the [SEP] is is [SEP]");
    tokenizer.set_truncation(Truncation{.max_length = 7, .strategy = TruncationStrategy::only_first});
    CHECK(joined_tokens(tokenizer.encode("the the the the", "is is")) == "[CLS] the the [SEP] is is [SEP]");
    CHECK_THROWS_AS((void)tokenizer.encode("the", "is is is is is"), ValueError);
    tokenizer.set_truncation(Truncation{.max_length = 7, .strategy = TruncationStrategy::only_second});
    CHECK_THROWS_AS((void)tokenizer.encode("the the the the the the"), ValueError);
    tokenizer.set_truncation(Truncation{.max_length = 2});
    CHECK(joined_tokens(tokenizer.encode("the the")) == "[CLS] [SEP]");
    tokenizer.set_truncation(Truncation{.max_length = 1});
    CHECK_THROWS_AS((void)tokenizer.encode("the the"), ValueError);
    CHECK_THROWS_AS(tokenizer.set_truncation(Truncation{.max_length = 4, .stride = 4}), ValueError);
    tokenizer.set_truncation(std::nullopt);

    tokenizer.set_padding(Padding{.pad_token = "[PAD]"});
    const std::vector<std::string> texts{"the", "the hello is"};
    std::vector<Encoding> batch = tokenizer.encode_batch(texts);
    CHECK(joined_tokens(batch[0]) == "[CLS] the [SEP] [PAD] [PAD]");
    CHECK(batch[0].attention_mask == std::vector<std::int64_t>{1, 1, 1, 0, 0});
    CHECK(batch[0].special_tokens_mask == std::vector<std::int64_t>{1, 0, 1, 1, 1});
    CHECK(stack(batch, &Encoding::ids).shape == Shape{2, 5});
    tokenizer.set_padding(Padding{.direction = Side::left, .pad_to_multiple_of = 4, .pad_id = 7});
    batch = tokenizer.encode_batch(texts);
    CHECK(joined_tokens(batch[0]) == "[PAD] [PAD] [PAD] [PAD] [PAD] [CLS] the [SEP]");
    CHECK(batch[1].ids[0] == 7);
    tokenizer.set_padding(Padding{.length = 4});
    CHECK(tokenizer.encode("the").size() == 4);
    CHECK(tokenizer.encode("the hello is").size() == 5);
    CHECK_THROWS_AS((void)stack(tokenizer.encode_batch(texts), &Encoding::ids), ShapeError);
    CHECK_THROWS_AS(tokenizer.set_padding(Padding{.pad_to_multiple_of = 0}), ValueError);
    CHECK(tokenizer.padding()->length == 4);
}

TEST_CASE("tokenizer: added tokens are matched first, the longest one of several") {
    const Tokenizer plain = small("gpt2");
    Tokenizer tokenizer = plain;
    const std::int64_t size = tokenizer.vocab_size();
    CHECK(tokenizer.add_tokens(
              std::vector<AddedToken>{{.content = "hell"}, {.content = "hello th"}, {.content = "the"}}) == 1);
    CHECK(tokenizer.vocab_size() == size + 1);
    CHECK(plain.vocab_size() == size);  // copies are independent
    CHECK(tokenizer.encode("a hello there").tokens == std::vector<std::string>{"a", "Ġ", "hello th", "e", "r", "e"});
    CHECK(tokenizer.add_special_tokens({"<x>"}) == 1);
    CHECK(tokenizer.token_to_id("<x>") == size + 1);
    CHECK(tokenizer.id_to_token(size + 1) == "<x>");
    CHECK(tokenizer.decode(tokenizer.ids("a<x>b")) == "ab");
    CHECK(tokenizer.decode(tokenizer.ids("a<x>b"), false) == "a<x>b");
    CHECK(tokenizer.added_tokens().size() == 5);
    Tokenizer word_tokenizer = small("words");
    word_tokenizer.add_tokens(std::vector<AddedToken>{{.content = "ab", .single_word = true},
                                                      {.content = "<l>", .lstrip = true, .rstrip = true}});
    CHECK(word_tokenizer.encode("ab abc <l> ab").tokens == std::vector<std::string>{"ab", "[UNK]", " <l> ", "ab"});
}

TEST_CASE("tokenizer: a stream returns complete characters, and all of the text at the end") {
    data::Random random(9, 0, 0, data::Purpose::user);
    for (const char* name : {"gpt2", "llama2", "bert", "unigram"}) {
        const Tokenizer tokenizer = small(name);
        for (int round = 0; round < 20; ++round) {
            const std::string text = random_text(random, 1 + random.below(60));
            const std::vector<std::int64_t> ids = tokenizer.ids(text);
            StreamDecoder stream(tokenizer);
            std::string out;
            for (const std::int64_t id : ids) out += stream.step(id);
            out += stream.finish();
            CAPTURE(text);
            CHECK(out == tokenizer.decode(ids));
        }
    }
    StreamDecoder stream(byte_tokenizer());
    CHECK(stream.step(*byte_tokenizer().token_to_id("Ã")) == "");
    CHECK(stream.step(*byte_tokenizer().token_to_id("©")) == "é");
}

TEST_CASE("tokenizer: error messages") {
    const Tokenizer word_tokenizer = Tokenizer::from_json(
        R"({"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"?"},"pre_tokenizer":{"type":"Whitespace"}})");
    CHECK(word_tokenizer.ids("a a") == std::vector<std::int64_t>{0, 0});
    CHECK_THROWS_WITH_AS((void)word_tokenizer.ids("a b"),
                         "Tokenizer: expected the unknown token '?' in the vocabulary, got a vocabulary without it",
                         ValueError);
    const Tokenizer unigram = Tokenizer::from_json(R"({"model":{"type":"Unigram","vocab":[["a",-1]],"unk_id":null}})");
    CHECK_THROWS_AS((void)unigram.ids("ab"), ValueError);
    CHECK(unigram.ids("aa").size() == 2);
    CHECK_THROWS_AS((void)stack({}, &Encoding::ids), ValueError);
    CHECK_THROWS_AS((void)Tokenizer::from_file("/nowhere/tokenizer.json"), IoError);
    CHECK(word_tokenizer.decode(std::vector<std::int64_t>{0, -1, 77, INT64_MAX, 0}) == "a a");
    Tokenizer from = word_tokenizer;
    const Tokenizer to = std::move(from);
    CHECK(from.ids("a a") == to.ids("a a"));  // NOLINT: a move is a copy
}
