// The contract of data sets: sizes, scaling, subsets, and what a wrong index or size gets.
#include <memory>
#include <vector>

#include <declivity/data/dataset.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::data;

namespace {

std::vector<float> features_of(const Dataset& set, std::int64_t index) {
    std::vector<float> features(static_cast<std::size_t>(set.shape().numel()));
    set.read(index, features);
    return features;
}

}  // namespace

TEST_CASE("dataset: floats come back as they are, bytes divided by 255") {
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
    std::vector<float> two(2), three(3);
    CHECK_THROWS_WITH_AS(set.read(2, two), "Dataset::read: wants an index in [0, 2), got 2", ValueError);
    CHECK_THROWS_AS(set.read(-1, two), ValueError);
    CHECK_THROWS_WITH_AS(set.read(0, three), "Dataset::read: wants room for 2 values of shape [2], got 3", ShapeError);
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

TEST_CASE("dataset: subsets and take") {
    const auto whole = std::make_shared<const InMemoryDataset>(Shape{1}, std::vector<float>{10, 11, 12, 13, 14},
                                                               std::vector<std::int64_t>{0, 1, 0, 1, 0}, 2,
                                                               std::vector<std::string>{"even", "odd"});
    const Subset picked(whole, {4, 1, 1});
    CHECK(picked.size() == 3);
    CHECK(features_of(picked, 0) == std::vector<float>{14});
    CHECK(features_of(picked, 2) == std::vector<float>{11});
    CHECK(picked.label(2) == 1);
    CHECK(picked.class_names() == whole->class_names());

    const Subset middle(whole, 1, 4);
    CHECK(middle.size() == 3);
    CHECK(features_of(middle, 2) == std::vector<float>{13});
    CHECK_THROWS_AS((void)middle.label(3), ValueError);

    CHECK(take(whole, 2)->size() == 2);
    CHECK(take(whole, 0)->size() == 0);
    CHECK(take(whole, 99)->size() == 5);
    CHECK(features_of(*take(whole, 2), 1) == std::vector<float>{11});

    CHECK_THROWS_AS(Subset(whole, {5}), ValueError);
    CHECK_THROWS_AS(Subset(whole, {-1}), ValueError);
    CHECK_THROWS_AS(Subset(whole, 0, 6), ValueError);
    CHECK_THROWS_AS(Subset(whole, 0, INT64_MAX), ValueError);
    CHECK_THROWS_AS(Subset(whole, 3, 2), ValueError);
    CHECK_THROWS_AS(Subset(nullptr, {0}), ValueError);
    CHECK_THROWS_AS((void)take(whole, -1), ValueError);
    CHECK_THROWS_AS((void)take(nullptr, 1), ValueError);
}
