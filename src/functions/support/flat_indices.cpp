#include "flat_indices.hpp"

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::detail {
namespace {

/// 0, step, 2 step, ... along one axis of a tensor of rank `rank`.
Tensor counted(std::int64_t count, std::int64_t step, int axis, int rank, const Device& device) {
    Shape shape;
    for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? count : 1);
    return reshape(arange(0, count, 1, {DType::i64, device}) * step, shape);
}

/// -1 below 0, 0 otherwise.
Tensor negative(const Tensor& x) { return bitwise_right_shift(x, 63); }

}  // namespace

Tensor out_of_range_mask(const Tensor& places, std::int64_t size) {
    return bitwise_or(negative(places), negative(size - 1 - places));
}

Tensor from_front(const Tensor& places, std::int64_t size) { return places + bitwise_and(negative(places), size); }

void require_index(const char* function, const Tensor& index, const Tensor& x) {
    if (!is_integer(index.dtype()))
        throw TypeError(fmt::format("{}: expected an index of integers, got {} (convert with .to(DType::i64))",
                                    function, name_of(index.dtype())));
    ops::require_same_device(function, x.device(), index.device());
}

Tensor FlatIndices::along(const Shape& shape, int axis, const Tensor& index) {
    const Dims strides = dense_strides(shape);
    const Tensor wide = index.to(DType::i64);
    Tensor numbers = wide * strides[axis];
    for (int i = 0; i < shape.rank(); ++i)
        if (i != axis && index.shape()[i] > 1)
            numbers = numbers + counted(index.shape()[i], strides[i], i, shape.rank(), index.device());
    return reshape(bitwise_or(numbers, out_of_range_mask(wide, shape[axis])), {index.numel()});
}

Tensor FlatIndices::around(const Tensor& x, int axis) {
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
    for (int i = axis + 1; i < x.rank(); ++i) inner *= x.shape()[i];
    return reshape(x, {outer, x.shape()[axis], inner});
}

Tensor FlatIndices::table(const Tensor& x, int axis) {
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i <= axis; ++i) outer *= x.shape()[i];
    for (int i = axis + 1; i < x.rank(); ++i) inner *= x.shape()[i];
    return reshape(x, {outer, inner});
}

Tensor FlatIndices::rows(const Shape& shape, int axis, const Tensor& index) {
    std::int64_t outer = 1;
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    if (outer == 1) return index;
    const Tensor wide = index.to(DType::i64);
    const Tensor numbers = counted(outer, shape[axis], 0, 2, index.device()) + wide;
    return reshape(bitwise_or(numbers, out_of_range_mask(wide, shape[axis])), {outer * index.numel()});
}

NdIndices::NdIndices(const char* function, const Shape& shape, const Tensor& index) {
    const std::int64_t k = index.rank() == 0 ? 0 : index.shape().back();
    if (index.rank() == 0 || k > shape.rank())
        throw ShapeError(
            fmt::format("{}: expected an index of shape (..., K) with K of at most {}, the axes of {}, got {}",
                        function, shape.rank(), shape.str(), index.shape().str()));
    for (const std::int64_t size : shape)
        if (size < 0) throw ShapeError(fmt::format("{}: expected sizes of at least 0, got {}", function, shape.str()));
    for (int i = 0; i < shape.rank(); ++i) (i < k ? rows : each) *= shape[i];
    for (int i = 0; i + 1 < index.rank(); ++i) result.push_back(index.shape()[i]);
    for (int i = static_cast<int>(k); i < shape.rank(); ++i) result.push_back(shape[i]);
    Shape outer;
    for (int i = 0; i + 1 < index.rank(); ++i) outer.push_back(index.shape()[i]);
    numbers = zeros(outer, {DType::i64, index.device()});
    Tensor outside = zeros(outer, {DType::i64, index.device()});
    for (std::int64_t i = 0; i < k; ++i) {
        const Tensor wide = select(index, -1, i).to(DType::i64);
        const std::int64_t size = shape[static_cast<int>(i)];
        const Tensor one = from_front(wide, size);
        outside = bitwise_or(outside, out_of_range_mask(one, size));
        numbers = numbers * size + one;
    }
    numbers = reshape(bitwise_or(numbers, outside), {outer.numel()});
}

}  // namespace declivity::detail
