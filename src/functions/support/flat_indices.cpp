#include "flat_indices.hpp"

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::detail {
namespace {

/// 0, step, 2 step, ... along one axis of a tensor of rank `rank`.
Tensor axis_offsets(std::int64_t count, std::int64_t step, int axis, int rank, const Device& device) {
    Shape shape;
    for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? count : 1);
    return reshape(arange(0, count, 1, {DType::i64, device}) * step, shape);
}

/// -1 for negative numbers, 0 otherwise.
Tensor negative(const Tensor& x) { return bitwise_right_shift(x, 63); }

}  // namespace

Tensor out_of_range_mask(const Tensor& index, std::int64_t size) {
    return bitwise_or(negative(index), negative(size - 1 - index));
}

Tensor wrap_negative(const Tensor& index, std::int64_t size) { return index + bitwise_and(negative(index), size); }

void require_index(const char* function, const Tensor& index, const Tensor& x) {
    if (!is_integer(index.dtype()))
        throw TypeError(fmt::format("{}: expected an index of integers, got {} (convert with .to(DType::i64))",
                                    function, name_of(index.dtype())));
    ops::require_same_device(function, x.device(), index.device());
}

Tensor FlatIndices::along(const Shape& shape, int axis, const Tensor& index) {
    const Dims strides = dense_strides(shape);
    const Tensor index_i64 = index.to(DType::i64);
    Tensor flat = index_i64 * strides[axis];
    for (int i = 0; i < shape.rank(); ++i)
        if (i != axis && index.shape()[i] > 1)
            flat = flat + axis_offsets(index.shape()[i], strides[i], i, shape.rank(), index.device());
    return reshape(bitwise_or(flat, out_of_range_mask(index_i64, shape[axis])), {index.numel()});
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
    const Tensor index_i64 = index.to(DType::i64);
    const Tensor flat = axis_offsets(outer, shape[axis], 0, 2, index.device()) + index_i64;
    return reshape(bitwise_or(flat, out_of_range_mask(index_i64, shape[axis])), {outer * index.numel()});
}

NdIndices::NdIndices(const char* function, const Shape& shape, const Tensor& index) {
    const std::int64_t k = index.rank() == 0 ? 0 : index.shape().back();
    if (index.rank() == 0 || k > shape.rank())
        throw ShapeError(
            fmt::format("{}: expected an index of shape (..., K) with K of at most {}, the axes of {}, got {}",
                        function, shape.rank(), shape.str(), index.shape().str()));
    for (const std::int64_t size : shape)
        if (size < 0) throw ShapeError(fmt::format("{}: expected sizes of at least 0, got {}", function, shape.str()));
    for (int i = 0; i < shape.rank(); ++i) (i < k ? rows : row_size) *= shape[i];
    for (int i = 0; i + 1 < index.rank(); ++i) result_shape.push_back(index.shape()[i]);
    for (int i = static_cast<int>(k); i < shape.rank(); ++i) result_shape.push_back(shape[i]);
    Shape outer;
    for (int i = 0; i + 1 < index.rank(); ++i) outer.push_back(index.shape()[i]);
    row_indices = zeros(outer, {DType::i64, index.device()});
    Tensor out_of_range = zeros(outer, {DType::i64, index.device()});
    for (std::int64_t i = 0; i < k; ++i) {
        const Tensor component = select(index, -1, i).to(DType::i64);
        const std::int64_t size = shape[static_cast<int>(i)];
        const Tensor wrapped = wrap_negative(component, size);
        out_of_range = bitwise_or(out_of_range, out_of_range_mask(wrapped, size));
        row_indices = row_indices * size + wrapped;
    }
    row_indices = reshape(bitwise_or(row_indices, out_of_range), {outer.numel()});
}

}  // namespace declivity::detail
