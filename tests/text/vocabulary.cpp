// Vocabularies compared with plain counting.
#include <declivity/text/vocabulary.hpp>

#include <algorithm>
#include <map>

#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/text/tokenizer.hpp>
#include <doctest/doctest.h>

#include "tests/support/damage.hpp"

using namespace declivity;
using namespace declivity::text;
using namespace declivity::test;

TEST_CASE("vocabulary: special tokens first, then the most frequent") {
    data::Random random(2, 0, 0, data::Purpose::user);
    std::vector<std::string> tokens;
    std::map<std::string, std::int64_t> counts;
    for (int i = 0; i < 500; ++i) {
        const std::int64_t n = random.below(30);
        tokens.push_back("t" + std::to_string(random.below(n + 1)));
        ++counts[tokens.back()];
    }
    counts.erase("t3");  // a special token below
    for (const std::int64_t least : {1, 5, 40}) {
        const Vocabulary vocabulary =
            Vocabulary::of(tokens, {.specials = {"<pad>", "t3"}, .unk_token = "<unk>", .min_frequency = least});
        CHECK(vocabulary.tokens()[0] == "<unk>");
        CHECK(vocabulary.tokens()[1] == "<pad>");
        CHECK(vocabulary.count(2) == 0);
        CHECK(vocabulary.unk_id() == 0);
        const auto expected_words =
            std::ranges::count_if(counts, [&](const auto& item) { return item.second >= least; });
        CHECK(vocabulary.size() == 3 + expected_words);
        for (std::int64_t id = 3; id < vocabulary.size(); ++id) {
            CHECK(vocabulary.count(id) == counts[vocabulary.token(id)]);
            CHECK(vocabulary.id(vocabulary.token(id)) == id);
            if (id == 3) continue;
            CHECK(vocabulary.count(id) <= vocabulary.count(id - 1));
            if (vocabulary.count(id) == vocabulary.count(id - 1))
                CHECK(vocabulary.token(id) > vocabulary.token(id - 1));
        }
    }
    const Vocabulary small = Vocabulary::of(tokens, {.specials = {"<pad>"}, .max_size = 4});
    CHECK(small.size() == 4);
    CHECK(small.ids(small.tokens()) == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK_THROWS_AS((void)small.id("none"), ValueError);
    CHECK(!small.has("none"));
    CHECK_THROWS_AS((void)small.token(4), ValueError);
    CHECK_THROWS_AS((void)small.token(-1), ValueError);
    CHECK_THROWS_AS((void)Vocabulary::of(tokens, {.min_frequency = 0}), ValueError);
    CHECK_THROWS_AS((void)Vocabulary::of(tokens, {.specials = {"a", "b"}, .max_size = 1}), ValueError);
    CHECK_THROWS_AS(Vocabulary({"a", "a"}), ValueError);
    CHECK_THROWS_AS(Vocabulary({"a"}, "b"), ValueError);
    CHECK_THROWS_AS(Vocabulary({"a"}, std::nullopt, {1, 2}), ValueError);
}

TEST_CASE("vocabulary: empty special tokens are refused, and a missing file names the function") {
    const std::vector<std::string> tokens{"a", "b"};
    CHECK_THROWS_WITH_AS((void)Vocabulary::of(tokens, {.specials = {"<pad>", ""}}),
                         "Vocabulary: expected specials of at least one character, got \"\"", ValueError);
    CHECK_THROWS_AS((void)Vocabulary::of(tokens, {.unk_token = ""}), ValueError);
    CHECK_THROWS_WITH_AS((void)Vocabulary::load("/nowhere/v.json"),
                         "cannot open '/nowhere/v.json': No such file or directory (called by Vocabulary::load)",
                         IoError);
    CHECK_THROWS_WITH_AS((void)Tokenizer::from_file("/nowhere/t.json"),
                         "cannot open '/nowhere/t.json': No such file or directory (called by Tokenizer::from_file)",
                         IoError);
}

TEST_CASE("vocabulary: from a corpus, to a file and back") {
    const Vocabulary vocabulary =
        Vocabulary::of(Corpus{"a b, a", "ä \"b\" a"}, words, {.specials = {"<pad>"}, .unk_token = "<unk>"});
    CHECK(vocabulary.tokens() == std::vector<std::string>{"<unk>", "<pad>", "a", "\"", "b", ",", "ä"});
    CHECK(vocabulary.ids(words("b? a")) == std::vector<std::int64_t>{4, 0, 2});
    CHECK(vocabulary.tokens(std::vector<std::int64_t>{6, 2}) == std::vector<std::string>{"ä", "a"});
    const TempFolder folder;
    const auto path = folder / "vocabulary.json";
    vocabulary.save(path);
    const Vocabulary again = Vocabulary::load(path);
    CHECK(again.tokens() == vocabulary.tokens());
    CHECK(again.count(2) == 3);
    CHECK(again.unk_id() == 0);
    const auto read = [](const std::filesystem::path& file) {
        const Vocabulary loaded = Vocabulary::load(file);
        if (loaded.size() > 0) (void)loaded.count(loaded.size() - 1);
    };
    const Bytes valid = get_file(path);
    CHECK(truncate_everywhere(valid, path, read).accepted <= 1);  // without the final newline
    CHECK(damage_at_random(valid, path, 800, read).refused > 200);
    put_file(path, Bytes{});
    CHECK_THROWS_AS((void)Vocabulary::load(path), FormatError);
    CHECK_THROWS_AS((void)Vocabulary::load(folder / "none"), IoError);
}

TEST_CASE("vocabulary: words, characters, white space") {
    CHECK(words(" don't\u3000stop... now_1") == std::vector<std::string>{"don", "'", "t", "stop", "...", "now_1"});
    CHECK(characters("é中\xFF") == std::vector<std::string>{"é", "中", "\uFFFD"});
    CHECK(split_whitespace("\ta  b\u2003c ") == std::vector<std::string>{"a", "b", "c"});
    CHECK(split_whitespace(" \n").empty());
    CHECK(words("").empty());
}
