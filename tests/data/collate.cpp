// Collate functions compared with plain loops.
#include <declivity/data/collate.hpp>

#include <algorithm>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::data;

namespace {

/// Examples with a matrix of random size, a sequence, and a number.
std::vector<Example> tables(std::int64_t count, std::int64_t largest) {
    const auto names =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"table", "words", "y"});
    std::vector<Example> out;
    for (std::int64_t i = 0; i < count; ++i) {
        Random random(5, 0, static_cast<std::uint64_t>(i), Purpose::user);
        const Shape shape{random.below(largest + 1), 1 + random.below(largest), 2};
        std::vector<double> table;
        for (std::int64_t k = 0; k < shape.numel(); ++k) table.push_back(random.normal());
        std::vector<std::int32_t> word_ids(static_cast<std::size_t>(random.below(largest + 1)));
        for (auto& word : word_ids) word = static_cast<std::int32_t>(random.below(1000)) - 500;
        out.emplace_back(names,
                         std::vector{io::HostArray::of(shape, table),
                                     io::HostArray::of({static_cast<std::int64_t>(word_ids.size())}, word_ids),
                                     io::HostArray::of(static_cast<float>(i) / 2)},
                         100 + i);
    }
    return out;
}

}  // namespace

TEST_CASE("collate: pad places each example at the origin of the largest shape") {
    for (const std::int64_t multiple : {1, 4}) {
        const std::vector<Example> examples = tables(13, 7);
        const Example batch = pad({.values = {{"table", -2.5}, {"words", 77}}, .multiple = multiple})(examples);
        REQUIRE(batch.names() == std::vector<std::string>{"table", "words", "y", "table_length"});
        Shape max_shape{0, 0, 2};
        for (const Example& example : examples)
            for (int axis = 0; axis < 2; ++axis)
                max_shape[axis] = std::max(max_shape[axis], example["table"].shape[axis]);
        max_shape[0] = (max_shape[0] + multiple - 1) / multiple * multiple;
        REQUIRE(batch["table"].shape == Shape{13, max_shape[0], max_shape[1], 2});
        const auto all = batch["table"].as<double>();
        std::size_t at = 0;
        for (std::size_t i = 0; i < 13; ++i) {
            const Shape& shape = examples[i]["table"].shape;
            const auto table_values = examples[i]["table"].as<double>();
            for (std::int64_t a = 0; a < max_shape[0]; ++a)
                for (std::int64_t b = 0; b < max_shape[1]; ++b)
                    for (std::int64_t c = 0; c < 2; ++c, ++at) {
                        const bool inside = a < shape[0] && b < shape[1];
                        REQUIRE(all[at] ==
                                (inside ? table_values[static_cast<std::size_t>((a * shape[1] + b) * 2 + c)] : -2.5));
                    }
            CHECK(batch["table_length"].as<std::int64_t>()[i] == shape[0]);
            CHECK(batch["y"].as<float>()[i] == static_cast<float>(i) / 2);
            const auto word_ids = examples[i]["words"].as<std::int32_t>();
            const auto padded =
                batch["words"].as<std::int32_t>().subspan(i * static_cast<std::size_t>(batch["words"].shape[1]),
                                                          static_cast<std::size_t>(batch["words"].shape[1]));
            for (std::size_t k = 0; k < padded.size(); ++k)
                REQUIRE(padded[k] == (k < word_ids.size() ? word_ids[k] : 77));
        }
    }
}

TEST_CASE("collate: lengths of any fields, padding values in the field's type") {
    const std::vector<Example> examples = tables(4, 5);
    const Example batch = pad({.values = {{"table", 0}, {"words", -100}}, .lengths_of = {"words", "table"}})(examples);
    CHECK(batch.names() == std::vector<std::string>{"table", "words", "y", "words_length", "table_length"});
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(batch["words_length"].as<std::int64_t>()[i] == examples[i]["words"].shape[0]);
    const std::vector<Example> reduced_precision{
        Example({"h"}, {io::HostArray::of({1}, std::vector<float16>{float16(1.5)})}),
        Example({"h"}, {io::HostArray::of({2}, std::vector<float16>{float16(2.5), float16(3)})})};
    const auto padded = pad({.values = {{"h", -0.25}}})(reduced_precision);
    CHECK(static_cast<float>(padded["h"].as<float16>()[1]) == -0.25F);
    const std::vector<Example> bytes{Example({"b"}, {io::HostArray::of({1}, std::vector<std::uint8_t>{3})})};
    CHECK_THROWS_WITH_AS((void)pad({.values = {{"b", -1}}})(bytes),
                         "pad: expected a padding value representable in u8, got -1", ValueError);
    CHECK_THROWS_AS((void)pad({.values = {{"b", 0.5}}})(bytes), ValueError);
}

TEST_CASE("collate: mismatched fields are refused by name") {
    std::vector<Example> examples = tables(3, 5);
    examples[2]["table"] = io::HostArray::of({1, 2}, std::vector<double>(2));
    CHECK_THROWS_WITH_AS((void)pad({.values = {{"table", 0}, {"words", 0}}})(examples),
                         "pad: expected field 'table' of example 102 with 3 axes, got shape [1, 2]", ShapeError);
    examples[2]["table"] = io::HostArray::of({1, 2, 2}, std::vector<float>(4));
    CHECK_THROWS_WITH_AS((void)pad({.values = {{"table", 0}, {"words", 0}}})(examples),
                         "pad: expected field 'table' of example 102 of type f64, like in example 100, got f32",
                         TypeError);
    CHECK_THROWS_WITH_AS((void)stack(std::span(examples).subspan(1)), doctest::Contains("of example 102"), Error);
    CHECK_THROWS_WITH_AS((void)pad({.values = {{"word", 0}}})(examples),
                         "pad: expected the name of a field, one of [\"table\", \"words\", \"y\"], got 'word'",
                         ValueError);
    CHECK_THROWS_WITH_AS((void)pad({.values = {{"table", 0}, {"words", 0}, {"y", 0}}})(std::span(examples).first(2)),
                         "pad: expected field 'y' of example 100 with at least 1 axes, got shape []", ShapeError);
    CHECK_THROWS_WITH_AS((void)pad({.values = {{"words", 0}}})(examples), doctest::Contains("field 'table' of example"),
                         Error);
    CHECK_THROWS_AS((void)pad({.values = {}}), ValueError);
    CHECK_THROWS_AS((void)pad({.values = {{"words", 0}}, .multiple = 0}), ValueError);
    CHECK_THROWS_AS((void)data::stack({}), ValueError);
}
