// Windows of tokens, from memory and from files, through the loader.
#include <declivity/text/sequence_dataset.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include <declivity/data/loader.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

#include "tests/support/damage.hpp"

using namespace declivity;
using namespace declivity::text;
using namespace declivity::test;

namespace {

std::vector<std::int64_t> tokens(std::int64_t count, std::int64_t largest) {
    data::Random random(4, 0, 0, data::Purpose::user);
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back(random.below(largest + 1));
    out[static_cast<std::size_t>(count) / 2] = largest;
    return out;
}

std::vector<std::int64_t> field(const data::Dataset& set, std::int64_t index, const char* name) {
    const data::Example example = set.example(index);
    const auto values = example[name].as<std::int64_t>();
    return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("windows: inputs, and targets shifted by one, from memory and from files") {
    const TempFolder folder;
    for (const std::int64_t largest : std::initializer_list<std::int64_t>{200, 65535, 65536, 4000000000})
        for (const std::int64_t length : std::initializer_list<std::int64_t>{1, 7, 10})
            for (const std::int64_t stride : std::initializer_list<std::int64_t>{0, 1, 3, 25}) {
                const std::vector<std::int64_t> all = tokens(103, largest);
                const WindowOptions options{.length = length,
                                            .stride = stride > 0 ? std::optional(stride) : std::nullopt};
                const std::int64_t step = stride > 0 ? stride : length;
                CHECK(write_tokens(folder / "tokens", all) == 103);
                CHECK(std::filesystem::file_size(folder / "tokens") == 24 + 103 * (largest <= 65535 ? 2U : 4U));
                const WindowDataset in_memory(all, options), in_file(folder / "tokens", options);
                std::int64_t count = 0;
                while (count * step + length + 1 <= 103) ++count;
                CHECK(in_memory.size() == count);
                CHECK(in_file.size() == count);
                CHECK(in_file.tokens() == 103);
                for (std::int64_t i = 0; i < count; ++i) {
                    const auto begin = all.begin() + i * step;
                    const std::vector<std::int64_t> input(begin, begin + length), target(begin + 1, begin + 1 + length);
                    for (const WindowDataset* set : {&in_memory, &in_file}) {
                        CHECK(field(*set, i, "input") == input);
                        CHECK(field(*set, i, "target") == target);
                    }
                }
            }
    CHECK_THROWS_AS(WindowDataset(tokens(8, 9), {.length = 8}), ValueError);
    CHECK_THROWS_AS(WindowDataset(tokens(8, 9), {.length = 0}), ValueError);
    CHECK_THROWS_AS(WindowDataset(tokens(8, 9), {.length = 2, .stride = 0}), ValueError);
    CHECK(WindowDataset(tokens(8, 9), {.length = 7}).size() == 1);
    CHECK_THROWS_AS((void)write_tokens(folder / "other", std::vector<std::int64_t>{1, -1}), ValueError);
    CHECK_THROWS_AS((void)write_tokens(folder / "other", std::vector<std::int64_t>{INT64_C(1) << 32}), ValueError);
    CHECK(!std::filesystem::exists(folder / "other"));
}

TEST_CASE("windows: batches depend on the seed, not on threads, and each window occurs once") {
    const TempFolder folder;
    write_tokens(folder / "tokens", tokens(1001, 60000));
    const WindowDataset set(folder / "tokens", {.length = 10});
    REQUIRE(set.size() == 100);
    std::vector<std::vector<std::int64_t>> first;
    for (const int threads : {1, 3})
        for (int round = 0; round < 2; ++round) {
            data::Loader loader(set, {.batch = 8, .shuffle = true, .seed = 5, .threads = threads});
            std::vector<std::vector<std::int64_t>> batches;
            for (const data::Batch& batch : loader.epoch(2))
                batches.push_back(batch["input"].to_vector<std::int64_t>());
            if (first.empty()) first = batches;
            CHECK(batches == first);
        }
    std::vector<std::int64_t> all, ordered;
    for (const auto& batch : first) all.insert(all.end(), batch.begin(), batch.end());
    for (const data::Batch& batch : data::Loader(set, {.batch = 9})) {
        const std::vector<std::int64_t> inputs = batch["input"].to_vector<std::int64_t>();
        ordered.insert(ordered.end(), inputs.begin(), inputs.end());
    }
    const std::vector<std::int64_t> expected = tokens(1001, 60000);
    CHECK(ordered == std::vector<std::int64_t>(expected.begin(), expected.begin() + 1000));
    CHECK(all != ordered);
    std::ranges::sort(all);
    std::ranges::sort(ordered);
    CHECK(all == ordered);
}

TEST_CASE("windows: a corpus is converted to a token file") {
    const TempFolder folder;
    const Tokenizer tokenizer = byte_tokenizer({"<end>"});
    CHECK(write_tokens(folder / "tokens", Corpus{"ab", "", "c"}, tokenizer, {.separator = 0}) == 6);
    const WindowDataset set(folder / "tokens", {.length = 5});
    CHECK(tokenizer.decode(field(set, 0, "input"), false) == "ab<end><end>c");
    CHECK(field(set, 0, "target").back() == 0);
}

TEST_CASE("windows: damaged files are refused") {
    const TempFolder folder;
    const auto path = folder / "tokens";
    write_tokens(path, tokens(40, 70000));
    const Bytes valid = get_file(path);
    const auto read = [](const std::filesystem::path& file) {
        const WindowDataset set(file, {.length = 3});
        (void)set.example(set.size() - 1);
    };
    CHECK(truncate_everywhere(valid, path, read).accepted == 0);
    CHECK(damage_at_random(valid, path, 500, read).refused > 100);
    CHECK_THROWS_AS(WindowDataset(folder / "none"), IoError);
}

TEST_CASE("sequences: padded with masks and lengths, bucketed by length") {
    std::vector<std::vector<std::int64_t>> sequences;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 50; ++i) {
        sequences.emplace_back(static_cast<std::size_t>((i * 7) % 23), 100 + i);
        labels.push_back(i % 3);
    }
    const SequenceDataset set(sequences, labels);
    data::Loader loader(set, {.batch = 8,
                              .seed = 3,
                              .collate = data::pad({.values = {{"tokens", -1}}, .masks_of = {"tokens"}, .multiple = 4}),
                              .sampler = std::make_shared<data::BucketSampler>(set.lengths())});
    std::int64_t examples = 0, padding = 0;
    for (const data::Batch& batch : loader) {
        const std::int64_t length = batch["tokens"].size(1);
        CHECK(length % 4 == 0);
        const auto values = batch["tokens"].to_vector<std::int64_t>(),
                   lengths = batch["tokens_length"].to_vector<std::int64_t>();
        const auto mask = batch["tokens_mask"].to_vector<std::uint8_t>();
        REQUIRE(mask.size() == values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool is_token = static_cast<std::int64_t>(i) % length < lengths[i / static_cast<std::size_t>(length)];
            CHECK((mask[i] != 0) == is_token);
            CHECK((values[i] != -1) == is_token);
            padding += is_token ? 0 : 1;
        }
        examples += batch.size;
    }
    CHECK(examples == 50);
    CHECK(padding < 250);  // without buckets it is about 500
    CHECK(SequenceDataset(sequences).fields().size() == 1);
    CHECK_THROWS_AS(SequenceDataset(sequences, {1}), ValueError);
    const data::Collate wrong = data::pad({.values = {{"tokens", 0}}, .masks_of = {"label"}});
    const std::vector<data::Example> single_example{set.example(1)};
    CHECK_THROWS_AS((void)wrong(single_example), ValueError);
}
