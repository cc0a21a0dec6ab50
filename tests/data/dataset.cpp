// The data set contract: sizes, scaling, subsets, and wrong indices or sizes.
#include <memory>
#include <vector>

#include <declivity/data/dataset.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::data;

namespace {

std::vector<float> features_of(const ClassificationDataset& set, std::int64_t index) {
    std::vector<float> features(static_cast<std::size_t>(set.shape().numel()));
    set.read(index, features);
    return features;
}

}  // namespace

TEST_CASE("dataset: floats are unchanged, bytes are divided by 255") {
    const InMemoryDataset floats({2}, std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 0, 1}, 3);
    CHECK(floats.size() == 3);
    CHECK(floats.classes() == 3);
    CHECK(floats.shape() == Shape{2});
    CHECK(features_of(floats, 1) == std::vector<float>{3, 4});
    CHECK(floats.label(0) == 2);
    CHECK(floats.class_names() == std::vector<std::string>{"0", "1", "2"});

    std::vector<std::uint8_t> all(256);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
    const InMemoryDataset bytes({1, 16, 16}, all, {0}, 1, {"ramp"});
    const std::vector<float> read = features_of(bytes, 0);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(read[i] == static_cast<float>(i) / 255.0F);
    CHECK(bytes.class_names() == std::vector<std::string>{"ramp"});
}

TEST_CASE("dataset: wrong indices, sizes and labels") {
    const InMemoryDataset set({2}, std::vector<float>{1, 2, 3, 4}, {0, 1}, 2);
    std::vector<float> first(2), second(3);
    CHECK_THROWS_WITH_AS(set.read(2, first), "Dataset::read: expected an index in [0, 2), got 2", ValueError);
    CHECK_THROWS_AS(set.read(-1, first), ValueError);
    CHECK_THROWS_WITH_AS(set.read(0, second), "Dataset::read: expected room for 2 values of shape [2], got 3",
                         ShapeError);
    CHECK_THROWS_AS((void)set.label(2), ValueError);
    using Floats = std::vector<float>;
    CHECK_THROWS_AS(InMemoryDataset({2}, Floats{1, 2, 3}, {0, 1}, 2), ShapeError);
    CHECK_THROWS_AS(InMemoryDataset({2}, Floats{1, 2}, {}, 2), ShapeError);
    CHECK_THROWS_AS(InMemoryDataset({0}, Floats{}, {0}, 2), ShapeError);
    CHECK_THROWS_AS(InMemoryDataset({1}, Floats{1}, {2}, 2), ValueError);
    CHECK_THROWS_AS(InMemoryDataset({1}, Floats{1}, {-1}, 2), ValueError);
    CHECK_THROWS_AS(InMemoryDataset({1}, Floats{1}, {0}, 2, {"only one"}), ShapeError);
    CHECK(InMemoryDataset({3}, Floats{}, {}, 2).size() == 0);
}

namespace {

using Floats = std::vector<float>;
using Labels = std::vector<std::int64_t>;

std::shared_ptr<const InMemoryDataset> five_examples() {
    return std::make_shared<const InMemoryDataset>(Shape{1}, Floats{10, 11, 12, 13, 14}, Labels{0, 1, 0, 1, 0}, 2,
                                                   std::vector<std::string>{"even", "odd"});
}

Floats features(const Dataset& set, std::int64_t index) {
    const Example example = set.example(index);
    const auto values = example["features"].as<float>();
    return {values.begin(), values.end()};
}

std::int64_t label(const Dataset& set, std::int64_t index) { return set.example(index)["label"].as<std::int64_t>()[0]; }

}  // namespace

TEST_CASE("dataset: images with labels are two fields") {
    const auto set = five_examples();
    REQUIRE(set->fields().size() == 2);
    CHECK(set->fields()[0].name == "features");
    CHECK(set->field("features").shape == Shape{1});
    CHECK(set->field("label").dtype == DType::i64);
    CHECK(set->field("label").shape == Shape{});
    CHECK(set->field("label").class_names == std::vector<std::string>{"even", "odd"});
    CHECK(InMemoryDataset({1, 2, 1}, Floats{1, 2}, {0}, 1).fields()[0].name == "image");
    CHECK_THROWS_WITH_AS((void)set->field("image"),
                         "Dataset::field: expected the name of a field, one of [\"features\", \"label\"], got 'image'",
                         ValueError);
    const Example example = set->example(3);
    CHECK(example.index() == 3);
    CHECK(example.size() == 2);
    CHECK(example[0] == example["features"]);
    CHECK(example["label"].as<std::int64_t>()[0] == 1);
    CHECK_THROWS_AS((void)example[2], ValueError);
    CHECK_THROWS_AS((void)example["mask"], ValueError);
    CHECK_THROWS_WITH_AS((void)set->example(5), "Dataset::example: expected an index in [0, 5), got 5", ValueError);
    CHECK_THROWS_AS(Example({"a", "a"}, {io::HostArray::of(1.0F), io::HostArray::of(2.0F)}), ValueError);
    CHECK_THROWS_AS(Example({"a"}, {}), ValueError);
}

TEST_CASE("dataset: whole arrays of any types") {
    std::vector<std::uint8_t> bytes(4 * 6);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(7 * i);
    const TensorDataset set({{"mask", io::HostArray::of({4, 2, 3}, bytes)},
                             {"target", io::HostArray::of({4}, std::vector<double>{0.5, 1.5, 2.5, 3.5})}});
    CHECK(set.size() == 4);
    CHECK(set.field("mask").shape == Shape{2, 3});
    CHECK(set.field("target").dtype == DType::f64);
    const Example third = set.example(2);
    CHECK(third["mask"].shape == Shape{2, 3});
    for (std::size_t i = 0; i < 6; ++i) CHECK(third["mask"].as<std::uint8_t>()[i] == bytes[12 + i]);
    CHECK(third["target"] == io::HostArray::of(2.5));
    CHECK_THROWS_WITH_AS(
        TensorDataset({{"a", io::HostArray::of({4}, Floats(4))}, {"b", io::HostArray::of({3}, Floats(3))}}),
        "TensorDataset: expected 'b' with 4 examples, as 'a', got shape [3]", ShapeError);
    CHECK_THROWS_AS(TensorDataset({{"a", io::HostArray::of(1.0F)}}), ShapeError);
    CHECK_THROWS_AS(TensorDataset({{"a", {DType::f32, {2}, {}}}}), ShapeError);
    CHECK_THROWS_AS(TensorDataset({}), ValueError);
    CHECK_THROWS_AS(TensorDataset({{"a", io::HostArray::of({1}, Floats(1))}, {"a", io::HostArray::of({1}, Floats(1))}}),
                    ValueError);
}

TEST_CASE("dataset: from a function, checked against its declared fields") {
    const auto squares = [](DType dtype, std::optional<Shape> shape) {
        return FunctionDataset(5, {{.name = "square", .dtype = dtype, .shape = shape}}, [](std::int64_t index) {
            return std::vector{io::HostArray::of({1}, std::vector<std::int64_t>{index * index})};
        });
    };
    CHECK(squares(DType::i64, Shape{1}).example(3)["square"].as<std::int64_t>()[0] == 9);
    CHECK(squares(DType::i64, std::nullopt).example(4)[0].as<std::int64_t>()[0] == 16);
    CHECK_THROWS_WITH_AS((void)squares(DType::i32, Shape{1}).example(1),
                         "Dataset::example: expected field 'square' of example 1 of type i32, got i64", TypeError);
    CHECK_THROWS_WITH_AS((void)squares(DType::i64, Shape{}).example(1),
                         "Dataset::example: expected field 'square' of example 1 of shape [], got [1]", ShapeError);
    CHECK_THROWS_AS(FunctionDataset(-1, {{.name = "a"}}, [](auto) { return std::vector<io::HostArray>(); }),
                    ValueError);
    CHECK_THROWS_AS(FunctionDataset(1, {}, [](auto) { return std::vector<io::HostArray>(); }), ValueError);
    CHECK_THROWS_AS(FunctionDataset(1, {{.name = "a"}}, {}), ValueError);
}

TEST_CASE("dataset: subsets and take") {
    const auto dataset = five_examples();
    const Subset picked(dataset, {4, 1, 1});
    CHECK(picked.size() == 3);
    CHECK(features(picked, 0) == Floats{14});
    CHECK(features(picked, 2) == Floats{11});
    CHECK(label(picked, 2) == 1);
    CHECK(picked.field("label").class_names == dataset->class_names());

    const auto middle = std::make_shared<const Subset>(dataset, 1, 4);
    CHECK(middle->size() == 3);
    CHECK(features(*middle, 2) == Floats{13});
    CHECK_THROWS_AS((void)middle->example(3), ValueError);
    CHECK(features(Subset(middle, {2, 0}), 1) == Floats{11});

    CHECK(take(dataset, 2)->size() == 2);
    CHECK(take(dataset, 0)->size() == 0);
    CHECK(take(dataset, 99)->size() == 5);
    CHECK(features(*take(dataset, 2), 1) == Floats{11});

    CHECK_THROWS_AS(Subset(dataset, {5}), ValueError);
    CHECK_THROWS_AS(Subset(dataset, {-1}), ValueError);
    CHECK_THROWS_AS(Subset(dataset, 0, 6), ValueError);
    CHECK_THROWS_AS(Subset(dataset, 0, INT64_MAX), ValueError);
    CHECK_THROWS_AS(Subset(dataset, 3, 2), ValueError);
    CHECK_THROWS_AS(Subset(nullptr, {0}), ValueError);
    CHECK_THROWS_AS((void)take(dataset, -1), ValueError);
    CHECK_THROWS_AS((void)take(nullptr, 1), ValueError);
}

TEST_CASE("dataset: concatenation") {
    const auto dataset = five_examples();
    const ConcatDataset all({dataset, take(dataset, 0), take(dataset, 2), dataset});
    CHECK(all.size() == 12);
    Floats read_values;
    for (std::int64_t i = 0; i < all.size(); ++i) read_values.push_back(features(all, i)[0]);
    CHECK(read_values == Floats{10, 11, 12, 13, 14, 10, 11, 10, 11, 12, 13, 14});
    CHECK(label(all, 6) == 1);
    CHECK(all.field("features").shape == Shape{1});
    const auto wider = std::make_shared<const InMemoryDataset>(Shape{2}, Floats{1, 2}, Labels{1}, 2);
    const ConcatDataset mixed({dataset, wider});
    CHECK_FALSE(mixed.field("features").shape.has_value());
    CHECK(features(mixed, 5) == Floats{1, 2});
    const auto image = std::make_shared<const InMemoryDataset>(Shape{1, 1, 1}, Floats{1}, Labels{1}, 2);
    CHECK_THROWS_WITH_AS(
        ConcatDataset({dataset, image}),
        "ConcatDataset: expected data sets of the same fields, got [\"features\", \"label\"] and, as number "
        "1, [\"image\", \"label\"]",
        ValueError);
    const auto other = std::make_shared<const TensorDataset>(std::vector<std::pair<std::string, io::HostArray>>{
        {"features", io::HostArray::of({1}, Floats(1))},
        {"label", io::HostArray::of({1}, std::vector<std::int32_t>{1})}});
    CHECK_THROWS_WITH_AS(ConcatDataset({dataset, other}),
                         "ConcatDataset: expected field 'label' of type i64, got i32 from number 1", TypeError);
    CHECK_THROWS_AS(ConcatDataset({}), ValueError);
    CHECK_THROWS_AS(ConcatDataset({dataset, nullptr}), ValueError);
}
