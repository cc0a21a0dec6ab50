// Rearranging functions, beyond the catalogue: number of axes, no elements, other types, errors.
#include <declivity/functions/arrangement.hpp>

#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;
using Indices = std::vector<std::int64_t>;

std::vector<std::int64_t> sizes_of(const std::vector<Tensor>& parts, int axis) {
    std::vector<std::int64_t> sizes;
    for (const Tensor& part : parts) sizes.push_back(part.size(axis));
    return sizes;
}

}  // namespace

TEST_CASE("atleast_1d, atleast_2d, atleast_3d: any number of axes") {
    CHECK(atleast_1d(zeros({})).shape() == Shape{1});
    CHECK(atleast_2d(zeros({})).shape() == Shape{1, 1});
    CHECK(atleast_3d(zeros({})).shape() == Shape{1, 1, 1});
    CHECK(atleast_3d(zeros({2, 3})).shape() == Shape{2, 3, 1});
    CHECK(atleast_3d(zeros({2, 3, 4, 5})).shape() == Shape{2, 3, 4, 5});
    CHECK(atleast_2d(zeros({0})).shape() == Shape{1, 0});
}

TEST_CASE("hstack, vstack, dstack, block_diag: scalars, no elements, several types, errors") {
    const Tensor scalar = full({}, 1), row = zeros({3});
    CHECK(hstack({scalar, row}).shape() == Shape{4});
    CHECK(vstack({row, row}).shape() == Shape{2, 3});
    CHECK(dstack({row, row}).shape() == Shape{1, 3, 2});
    CHECK(hstack({scalar, full({}, 2, {DType::i64})}).dtype() == DType::f32);
    CHECK(values(block_diag({scalar, Tensor::from<float>({2, 3}, {2})})) == Values{1, 0, 0, 0, 2, 3});
    CHECK(block_diag({zeros({0}), zeros({2, 0})}).shape() == Shape{3, 0});
    CHECK(block_diag({scalar, full({2, 2}, 2, {widest()})}).dtype() == widest());
    CHECK_THROWS_WITH_AS((void)hstack({}), "hstack: expected at least one tensor, got none", ValueError);
    CHECK_THROWS_WITH_AS((void)vstack({row, zeros({2})}),
                         "vstack: expected parts that differ along axis 0 only, got [1, 3] and [1, 2]", ShapeError);
    CHECK_THROWS_AS((void)hstack({row, zeros({2, 2})}), ShapeError);
    CHECK_THROWS_WITH_AS((void)block_diag({zeros({1, 1, 1})}),
                         "block_diag: expected parts of at most two axes, got [1, 1, 1]", ShapeError);
}

TEST_CASE("narrow, tensor_split: ends, more parts than elements, unordered indices, errors") {
    const Tensor x = arange(0, 5);
    CHECK(narrow(x, 0, 5, 0).shape() == Shape{0});
    CHECK(values(narrow(x, 0, -2, 2)) == Values{3, 4});
    CHECK_THROWS_WITH_AS((void)narrow(x, 0, 3, 3),
                         "narrow: expected a range within axis 0 of [5], got 3 elements "
                         "from 3 on",
                         ValueError);
    CHECK_THROWS_AS((void)narrow(x, 0, -6, 1), ValueError);
    CHECK_THROWS_AS((void)narrow(x, 0, 0, -1), ValueError);
    CHECK(sizes_of(tensor_split(x, 3), 0) == Indices{2, 2, 1});
    CHECK(sizes_of(tensor_split(x, 7), 0) == Indices{1, 1, 1, 1, 1, 0, 0});
    CHECK(sizes_of(tensor_split(x, Indices{3, 1, 9}), 0) == Indices{3, 0, 4, 0});
    CHECK(sizes_of(tensor_split(x, Indices{}), 0) == Indices{5});
    CHECK(sizes_of(tensor_split(x, Indices{-9, -1}), 0) == Indices{0, 4, 1});
    CHECK_THROWS_WITH_AS((void)tensor_split(x, 0), "tensor_split: expected at least 1 section, got 0", ValueError);
    CHECK_THROWS_AS((void)tensor_split(full({}, 1), 2), ShapeError);
    CHECK_THROWS_AS((void)fliplr(x), ShapeError);
    CHECK_THROWS_AS((void)flipud(full({}, 1)), ShapeError);
}

TEST_CASE("combinations: none, one, too many at once, integers, errors") {
    const Tensor x = Tensor::from<std::int64_t>({7, 8, 9}, {3});
    CHECK(combinations(x, 0).shape() == Shape{0});
    CHECK(values(combinations(x, 1)) == Values{7, 8, 9});
    CHECK(values(combinations(x)) == Values{7, 8, 7, 9, 8, 9});
    CHECK(values(combinations(x, 3)) == Values{7, 8, 9});
    CHECK(combinations(x, 4).shape() == Shape{0, 4});
    CHECK(combinations(zeros({0}), 2).shape() == Shape{0, 2});
    CHECK(combinations(x, 3, true).shape() == Shape{10, 3});
    CHECK(combinations(arange(0, 20), 6).shape() == Shape{38760, 6});
    CHECK(combinations(x, 2).dtype() == DType::i64);
    CHECK_THROWS_WITH_AS((void)combinations(x, -1), "combinations: expected r of at least 0, got -1", ValueError);
    CHECK_THROWS_AS((void)combinations(zeros({2, 2})), ShapeError);
}

TEST_CASE("take_along_dim, argwhere, diagflat: without axes") {
    const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
    CHECK(values(take_along_dim(x, Tensor::from<std::int64_t>({3, 0}, {2, 1}))) == Values{4, 1});
    CHECK(argwhere(full({}, 1)).shape() == Shape{1, 0});
    CHECK(argwhere(full({}, 0)).shape() == Shape{0, 0});
    CHECK(values(diagflat(full({}, 5), -1)) == Values{0, 0, 5, 0});
}

TEST_CASE("channel_shuffle: order of the channels, empty inputs, errors") {
    const Tensor indices = int64_tensor({0, 1, 2, 3, 4, 5}, {1, 6});
    CHECK(values(channel_shuffle(indices, 2)) == Values{0, 3, 1, 4, 2, 5});
    CHECK(channel_shuffle(zeros({0, 6, 2}), 3).shape() == Shape{0, 6, 2});
    CHECK_THROWS_WITH_AS(channel_shuffle(indices, 4),
                         "channel_shuffle: expected groups that divide the 6 channels of x, got 4", ValueError);
    CHECK_THROWS_AS(channel_shuffle(zeros({6}), 2), ShapeError);
}
