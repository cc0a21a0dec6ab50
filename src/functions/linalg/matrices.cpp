// Checks and shapes of matrix functions.
#include "matrices.hpp"

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "functions/support/axes.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity::detail {

void require_matrices(const char* name, const char* what, const Tensor& x) {
    ops::require_real(name, what, x.dtype());
    if (x.rank() < 2)
        throw ShapeError(
            fmt::format("{}: expected matrices of shape (..., m, n) as {}, got {}", name, what, x.shape().str()));
}

void require_square(const char* name, const char* what, const Tensor& x) {
    require_matrices(name, what, x);
    if (x.size(-1) != x.size(-2))
        throw ShapeError(fmt::format("{}: expected square matrices of shape (..., n, n) as {}, got {}", name, what,
                                     x.shape().str()));
}

Shape batch_shape_of(const Tensor& x, int last) {
    Shape batch_shape;
    for (int axis = 0; axis + last < x.rank(); ++axis) batch_shape.push_back(x.shape()[axis]);
    return batch_shape;
}

Batch::Batch(const Tensor& x, int last) : dtype_(x.dtype()), batch_shape_(batch_shape_of(x, last)) {
    Shape shape{batch_shape_.numel()};
    for (int axis = x.rank() - last; axis < x.rank(); ++axis) shape.push_back(x.shape()[axis]);
    x_ = reshape(is_floating(x.dtype()) ? upcast(x) : x, shape);
}

Tensor Batch::restore(const Tensor& y) const {
    Shape shape = batch_shape_;
    for (int axis = 1; axis < y.rank(); ++axis) shape.push_back(y.shape()[axis]);
    const Tensor shaped = reshape(y, shape);
    return is_floating(y.dtype()) ? shaped.to(dtype_) : shaped;
}

std::pair<Tensor, Tensor> broadcast_batches(const char* name, const Tensor& a, const Tensor& b) {
    const Shape batch_shape = broadcast_shapes(name, batch_shape_of(a), batch_shape_of(b));
    return {expand(a, append_dims(batch_shape, {a.size(-2), a.size(-1)})),
            expand(b, append_dims(batch_shape, {b.size(-2), b.size(-1)}))};
}

Tensor identity_like(const Tensor& x, std::int64_t rows, std::int64_t columns) {
    const TensorOptions index_options{DType::i64, x.device()};
    return (unsqueeze(arange(0, rows, 1, index_options), 1) == arange(0, columns, 1, index_options)).to(x.dtype());
}

}  // namespace declivity::detail
