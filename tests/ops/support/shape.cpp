#include <array>

#include <declivity/ops/shape.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;

TEST_CASE("shape: element count and printing") {
    CHECK(Shape({2, 3, 4}).numel() == 24);
    CHECK(Shape({2, 0, 4}).numel() == 0);
    CHECK(Shape().numel() == 1);
    CHECK(Shape({2, 3}).str() == "[2, 3]");
    CHECK(Shape().str() == "[]");
}

TEST_CASE("shape: insert and erase at any position") {
    Shape shape{2, 4};
    shape.insert(1, 3);
    CHECK(shape == Shape({2, 3, 4}));
    shape.erase(0);
    CHECK(shape == Shape({3, 4}));
    shape.push_back(5);
    CHECK(shape.back() == 5);
    CHECK(shape != Shape({3, 4}));
    CHECK(Shape::filled(3, 7) == Shape({7, 7, 7}));
}

TEST_CASE("shape: more than kMaxRank axes are refused") {
    const std::array<std::int64_t, 9> nine{};
    CHECK_THROWS_WITH_AS(Shape{std::span(nine)}, "Dims: expected at most 8 axes, got 9: [0, 0, 0, 0, 0, 0, 0, 0, 0]",
                         ShapeError);
    Shape full = Dims::filled(Dims::kMaxRank, 1);
    CHECK_THROWS_AS(full.push_back(1), ShapeError);
}

TEST_CASE("shape: dense strides are row-major, also with an axis of size 0") {
    CHECK(dense_strides({2, 3, 4}) == Strides({12, 4, 1}));
    CHECK(dense_strides({2, 0, 4}) == Strides({4, 4, 1}));
    CHECK(dense_strides({}) == Strides());
}

TEST_CASE("shape: axes count from either end") {
    CHECK(normalize_axis("sum", -1, 3) == 2);
    CHECK(normalize_axis("sum", 0, 3) == 0);
    CHECK_THROWS_WITH_AS(normalize_axis("sum", 3, 3), "sum: expected an axis in [-3, 2], got 3", ShapeError);
    CHECK_THROWS_AS(normalize_axis("sum", -4, 3), ShapeError);
}

TEST_CASE("shape: NumPy broadcasting") {
    CHECK(broadcast_shapes("add", {4, 1, 3}, {2, 1}) == Shape({4, 2, 3}));
    CHECK(broadcast_shapes("add", {}, {2}) == Shape({2}));
    CHECK(broadcast_shapes("add", {0, 3}, {1, 3}) == Shape({0, 3}));
    CHECK_THROWS_WITH_AS(broadcast_shapes("add", {2, 3}, {2, 4}),
                         "add: expected shapes that broadcast, got [2, 3] and [2, 4]", ShapeError);
}
