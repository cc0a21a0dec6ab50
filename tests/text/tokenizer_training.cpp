// Training of tokenizers compared with plain references that recount everything in each step.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/text/tokenizer.hpp>
#include <doctest/doctest.h>

#include "tests/support/temp_folder.hpp"
#include "text/bpe_training.hpp"
#include "text/unicode.hpp"
#include "text/unigram.hpp"

using namespace declivity;
using namespace declivity::text;
using namespace declivity::test;

namespace {

/// Words of few letters, so that pairs repeat and overlap, as in "aaa".
Model::Counts random_words(std::uint64_t seed, std::int64_t letters) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    Model::Counts out;
    for (int i = 0; i < 40; ++i) {
        std::string word;
        for (std::int64_t k = 0; k < 1 + random.below(9); ++k) {
            const std::int64_t letter = random.below(letters);
            word += letter == 2 ? "é" : std::string(1, static_cast<char>('a' + letter));
        }
        out[word] += 1 + random.below(5);
    }
    return out;
}

/// The merges of byte-pair encoding, each found by counting all pairs of all words.
std::vector<std::pair<std::string, std::string>> plain_merges(const Model::Counts& counts, std::int64_t vocab_size,
                                                              std::int64_t min_frequency, const std::string& prefix) {
    std::map<std::string, std::size_t> ids;
    std::vector<std::string> tokens;
    const auto id = [&](const std::string& token) {
        if (ids.emplace(token, tokens.size()).second) tokens.push_back(token);
        return ids[token];
    };
    std::map<char32_t, int> alphabet;
    for (const auto& [word, count] : counts)
        for (std::size_t at = 0; at < word.size(); at += decode_at(word, at).size) alphabet[decode_at(word, at).c] = 1;
    for (const auto& [c, frequency] : alphabet) id(utf8(c));
    std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> word_counts;
    for (const auto& [word, count] : std::map<std::string, std::int64_t>(counts.begin(), counts.end())) {
        word_counts.push_back({{}, count});
        for (std::size_t at = 0; at < word.size();) {
            const auto size = decode_at(word, at).size;
            word_counts.back().first.push_back(id((at > 0 ? prefix : "") + word.substr(at, size)));
            at += size;
        }
    }
    std::vector<std::pair<std::string, std::string>> out;
    while (static_cast<std::int64_t>(tokens.size()) < vocab_size) {
        std::map<std::pair<std::size_t, std::size_t>, std::int64_t> pairs;
        for (const auto& [word, count] : word_counts)
            for (std::size_t i = 0; i + 1 < word.size(); ++i) pairs[{word[i], word[i + 1]}] += count;
        std::pair<std::size_t, std::size_t> best;
        std::int64_t best_count = 0;
        for (const auto& [pair, count] : pairs)
            if (count > best_count) best = pair, best_count = count;
        if (best_count < std::max<std::int64_t>(min_frequency, 1)) break;
        const std::string& right = tokens[best.second];
        const std::string both = tokens[best.first] + (right.starts_with(prefix) ? right.substr(prefix.size()) : right);
        out.emplace_back(tokens[best.first], tokens[best.second]);
        const std::size_t merged_id = id(both);
        for (auto& [word, count] : word_counts) {
            std::vector<std::size_t> merged;
            for (std::size_t i = 0; i < word.size(); ++i) {
                const bool matches = i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
                merged.push_back(matches ? merged_id : word[i]);
                if (matches) ++i;
            }
            word = merged;
        }
    }
    return out;
}

std::vector<std::string> lines() {
    data::Random random(11, 0, 0, data::Purpose::user);
    const std::vector<std::string> parts{"low",     "lower", "lowest", "new",    "newer", "wide", "wider", "the",
                                         "théâtre", "of",    "token",  "tokens", "中文",  "12",   "don't"};
    std::vector<std::string> out;
    for (int i = 0; i < 200; ++i) {
        std::string line;
        for (std::int64_t k = 0; k < 3 + random.below(9); ++k)
            line += (line.empty() ? "" : " ") +
                    parts[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(parts.size())))];
        out.push_back(line + ".");
    }
    return out;
}

}  // namespace

TEST_CASE("training: merges match those of recounting all pairs") {
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U})
        for (const char* prefix : {"", "##"}) {
            const Model::Counts word_counts = random_words(seed, seed % 2 == 0 ? 2 : 5);
            const std::int64_t min_frequency_option = seed == 3 ? 6 : 0;
            const TrainedMerges got =
                train_merges(word_counts, {.vocab_size = 60, .min_frequency = min_frequency_option}, prefix, "");
            const auto expected = plain_merges(word_counts, 60, min_frequency_option, prefix);
            REQUIRE(expected.size() > 5);
            std::vector<std::pair<std::string, std::string>> merges;
            for (const Bpe::Merge& merge : got.merges)
                merges.emplace_back(*got.table.token(merge.left), *got.table.token(merge.right));
            CHECK(merges == expected);
        }
}

TEST_CASE("training: limits of alphabet and token length") {
    const Model::Counts word_counts{{"aaab", 10}, {"abc", 3}, {"xyz", 1}};
    const TrainedMerges small_vocabulary = train_merges(
        word_counts,
        {.vocab_size = 100, .special_tokens = {"<s>"}, .initial_alphabet = {"q", "é"}, .limit_alphabet = 4}, "", "");
    CHECK(*small_vocabulary.table.token(0) == "<s>");
    CHECK(small_vocabulary.table.id("q"));
    CHECK(small_vocabulary.table.id("é"));
    CHECK(small_vocabulary.table.id("a"));
    CHECK(small_vocabulary.table.id("b"));
    CHECK(!small_vocabulary.table.id("x"));
    const TrainedMerges short_tokens = train_merges(word_counts, {.vocab_size = 100, .max_token_length = 2}, "", "");
    for (const auto& [token, id] : short_tokens.table.sorted()) CHECK(token.size() <= 2);
    CHECK(short_tokens.table.id("aa"));
    CHECK_THROWS_AS(check_train_options({.vocab_size = -1}), ValueError);
    CHECK_THROWS_AS(check_train_options({.shrinking_factor = 1}), ValueError);
    CHECK_THROWS_AS(check_train_options({.n_sub_iterations = 0}), ValueError);
}

TEST_CASE("training: each kind of tokenizer round trips, trained on a corpus and on files") {
    const std::vector<std::string> all = lines();
    const TempFolder folder;
    {
        std::ofstream first(folder / "a.txt"), second(folder / "b.txt");
        for (std::size_t i = 0; i < 90; ++i) first << all[i] << "\r\n";
        for (std::size_t i = 90; i < all.size(); ++i) second << all[i] << (i + 1 < all.size() ? "\n" : "");
    }
    const Corpus files = lines_of({folder / "a.txt", folder / "b.txt"});
    std::vector<std::string> read;
    files.for_each([&](const std::string& line) { read.push_back(line); });
    CHECK(read == all);
    CHECK_THROWS_AS(lines_of({folder / "none.txt"}).for_each([](const std::string&) {}), IoError);

    const std::string text = "the newest tokens don't théâtre 中文 3, unseen!";
    const auto check = [&](const char* name, Tokenizer (*train)(const Corpus&, TrainOptions), std::int64_t vocab_size,
                           const std::string& decoded) {
        CAPTURE(name);
        const Tokenizer tokenizer = train(all, {.vocab_size = vocab_size});
        CHECK(train(files, {.vocab_size = vocab_size}).to_json() == tokenizer.to_json());  // reproducible
        CHECK(tokenizer.vocab_size() <= vocab_size);
        tokenizer.save(folder / "tokenizer.json");
        const Tokenizer again = Tokenizer::from_file(folder / "tokenizer.json");
        CHECK(again.to_json() == tokenizer.to_json());
        CHECK(again.encode(text).tokens == tokenizer.encode(text).tokens);
        CHECK(again.decode(again.ids(text)) == decoded);
        return tokenizer;
    };
    check("byte-level", train_byte_level_bpe, 300, text);
    check("sentencepiece", train_sentencepiece_bpe, 330, text);
    check("character", train_character, 60, "the newest tokens don't théâtre 中文  nseen");
    check("word", train_word, 30, "the tokens don ' t théâtre 中文");
    check("unigram", train_unigram, 60, "the newest tokens don't théâtre 中文  nseen");
    const Tokenizer bert = check("WordPiece", train_word_piece, 90, "the newest tokens don ' t theatre 中 文");
    const Encoding pair = bert.encode("low", "lower");
    CHECK(pair.tokens == std::vector<std::string>{"[CLS]", "low", "[SEP]", "lower", "[SEP]"});
    CHECK(pair.type_ids == std::vector<std::int64_t>{0, 0, 0, 1, 1});
}

TEST_CASE("training: invalid options are refused, by each kind of tokenizer") {
    const Corpus corpus({"some words", "and some more words"});
    using Train = Tokenizer (*)(const Corpus&, TrainOptions);
    for (const Train train : {Train(train_character), Train(train_word), Train(train_word_piece),
                              Train(train_byte_level_bpe), Train(train_sentencepiece_bpe), Train(train_unigram)}) {
        for (const TrainOptions& options : {TrainOptions{.vocab_size = 0},
                                            {.vocab_size = -5},
                                            {.special_tokens = {"<s>", ""}},
                                            {.initial_alphabet = {""}},
                                            {.min_frequency = -1}})
            CHECK_THROWS_AS((void)train(corpus, options), ValueError);
    }
    CHECK_THROWS_WITH_AS((void)train_word(corpus, {.vocab_size = 0}),
                         "train_new: expected vocab_size from 1 to 2^31 - 1, got 0", ValueError);
    CHECK_THROWS_WITH_AS((void)train_character(corpus, {.special_tokens = {""}}),
                         "train_new: expected special_tokens of at least one character, got \"\"", ValueError);
    CHECK_THROWS_AS((void)byte_tokenizer({""}), ValueError);
    Tokenizer tokenizer = byte_tokenizer();
    CHECK_THROWS_AS((void)tokenizer.add_special_tokens({"<s>", ""}), ValueError);
    CHECK(!tokenizer.token_to_id("<s>"));
    CHECK_THROWS_AS((void)tokenizer.add_tokens(std::vector<AddedToken>{{.content = ""}}), ValueError);
    CHECK(train_character(corpus, {.vocab_size = 5}).vocab_size() == 5);
}

TEST_CASE("training: retraining a tokenizer on another corpus") {
    const Tokenizer first = train_byte_level_bpe(lines(), {.vocab_size = 300});
    const Tokenizer other = first.train_new(
        {"zzz zzz zzz yyy"}, {.vocab_size = 261, .special_tokens = {"<pad>"}, .initial_alphabet = {"a"}});
    CHECK(other.token_to_id("<pad>") == 0);
    CHECK(other.token_to_id("zzz"));
    CHECK(!other.token_to_id("low"));
    CHECK(other.decode(other.ids("zzz yyy<pad>")) == "zzz yyy");
}

TEST_CASE("training: expectation maximisation increases the likelihood, and pruning keeps characters") {
    Model::Counts word_counts;
    for (const std::string& line : lines())
        for (std::size_t begin = 0; begin < line.size();) {
            const std::size_t end = std::min(line.find(' ', begin), line.size());
            ++word_counts[line.substr(begin, end - begin)];
            begin = end + 1;
        }
    const auto log_probability = [&](const ScoredPieces& pieces) {  // of the best segmentation
        const Unigram model({.unk_id = 0}, pieces);
        double sum = 0;
        for (const auto& [word, count] : word_counts) {
            std::vector<ModelToken> tokens;
            model.tokenize(word, nullptr, tokens);
            for (const ModelToken& token : tokens) sum += static_cast<double>(count) * pieces[token.id].second;
        }
        return sum;
    };
    const TrainOptions options{.vocab_size = 60, .special_tokens = {"<unk>"}};
    const ScoredPieces pieces = train_pieces(word_counts, options, false);
    CHECK(pieces.size() <= 60);
    CHECK(pieces[0] == std::pair<std::string, double>("<unk>", 0));
    double sum = 0;
    std::size_t longer = 0;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        sum += std::exp(pieces[i].second);
        longer += count_characters(pieces[i].first) > 1 ? 1 : 0;
    }
    CHECK(sum > 0.7);
    CHECK(sum < 1.3);
    CHECK(longer > 10);
    for (const char* character : {"l", "é", "â", "中", "'", "."})
        CHECK(std::ranges::any_of(pieces, [&](const auto& piece) { return piece.first == character; }));
    // Characters alone, with their probabilities, are far worse.
    ScoredPieces characters{{"<unk>", 0}};
    std::map<std::string, double> counts;
    double all = 0;
    for (const auto& [word, count] : word_counts)
        for (std::size_t at = 0; at < word.size(); at += decode_at(word, at).size) {
            counts[word.substr(at, decode_at(word, at).size)] += static_cast<double>(count);
            all += static_cast<double>(count);
        }
    for (const auto& [character, count] : counts) characters.emplace_back(character, std::log(count / all));
    CHECK(log_probability(pieces) > 0.6 * log_probability(characters));
    CHECK_THROWS_AS((void)train_pieces(word_counts, {.vocab_size = 5, .special_tokens = {"<unk>"}}, false), ValueError);
    CHECK(train_pieces(word_counts, {.vocab_size = 400, .special_tokens = {"<unk>"}}, true).size() > 256);
}

TEST_CASE("training: the best segmentation is the best of all") {
    data::Random random(17, 0, 0, data::Purpose::user);
    for (int round = 0; round < 30; ++round) {
        ScoredPieces pieces;
        for (const char* piece : {"a", "b", "c", "ab", "bc", "abc", "ca", "bca", "aa"})
            pieces.emplace_back(piece, -1.0 - 4 * random.uniform());
        const Unigram model({.unk_id = std::nullopt}, pieces);
        std::string text;
        for (std::int64_t i = 0; i < 1 + random.below(10); ++i) text += "abc"[random.below(3)];
        // All segmentations, recursively.
        const std::function<double(std::size_t)> best = [&](std::size_t at) {
            if (at == text.size()) return 0.0;
            double out = -1e300;
            for (const auto& [piece, score] : pieces)
                if (text.compare(at, piece.size(), piece) == 0) out = std::max(out, score + best(at + piece.size()));
            return out;
        };
        std::vector<ModelToken> tokens;
        model.tokenize(text, nullptr, tokens);
        double sum = 0;
        std::string joined;
        for (const ModelToken& token : tokens) {
            sum += pieces[token.id].second;
            joined += pieces[token.id].first;
            CHECK(text.substr(token.begin, token.end - token.begin) == pieces[token.id].first);
        }
        CHECK(joined == text);
        CHECK(sum == doctest::Approx(best(0)));
    }
}
