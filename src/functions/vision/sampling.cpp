#include "sampling.hpp"

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/gather_weighted_sum.hpp>
#include <declivity/tensor/creation.hpp>

#include "autograd/decomposition.hpp"
#include "functions/support/rows.hpp"

namespace declivity::detail {

AxisSamples linear_samples(const Tensor& coordinates, std::int64_t size) {
    const Tensor low = floor(coordinates.detach()), part = coordinates - low;
    const Tensor positions = stack({low, low + 1}, -1);
    return {.positions = clamp(positions, 0, static_cast<double>(size - 1)),
            .valid = (positions >= 0) & (positions <= static_cast<double>(size - 1)),
            .weights = stack({1 - part, part}, -1)};
}

Tensor pixel_rows(const Tensor& x) {
    Dims order{0};
    for (int axis = 2; axis < x.rank(); ++axis) order.push_back(axis);
    order.push_back(1);
    const std::int64_t channels = x.size(1);
    std::int64_t pixels = x.size(0);
    for (int axis = 2; axis < x.rank(); ++axis) pixels *= x.size(axis);
    return reshape(permute(x, order), {pixels, channels});
}

PixelSamples::PixelSamples(const std::vector<AxisSamples>& axes, const std::vector<std::int64_t>& sizes,
                           const Tensor& image) {
    row_indices = image;
    Tensor valid;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const AxisSamples& axis = axes[i];
        row_indices = row_indices * sizes[i] + axis.positions.detach().to(DType::i64);
        if (axis.valid.defined()) valid = valid.defined() ? valid & axis.valid : axis.valid;
        if (axis.weights.defined()) weights = weights.defined() ? weights * axis.weights : axis.weights;
    }
    if (valid.defined()) row_indices = where(valid, row_indices, -1);
}

namespace {

Tensor decomposed(const char* name, const Tensor& rows, const Tensor& indices, const Tensor& weights) {
    const std::int64_t samples = indices.size(0), k = indices.size(1), channels = rows.size(1);
    const Tensor gathered =
        reshape(gather_rows(name, rows, reshape(indices, {samples * k}), 0), {samples, k, channels});
    return sum(gathered * reshape(weights, {samples, k, 1}), {1});
}

}  // namespace

Tensor gather_weighted_sum(const char* name, const Tensor& rows, const Tensor& indices, const Tensor& weights) {
    const std::int64_t samples = indices.size(0), k = indices.size(1), channels = rows.size(1);
    if (!weights.defined()) return gather_rows(name, rows, reshape(indices, {samples * k}), 0);
    if (by_decomposition()) return decomposed(name, rows, indices, weights);
    return attach_backward(
        name, {rows, weights},
        {ops::gather_weighted_sum(rows.dense_view(), indices.dense_view(), weights.dense_view())},
        [name, indices, saved_rows = Saved(rows), saved_weights = Saved(weights), samples, k,
         channels](const GradientContext& context) {
            const Tensor& g = context.gradient();
            std::vector<Tensor> gradients(2);
            if (context.needs(0)) {
                const Tensor w = reshape(saved_weights.get(name), {samples, k, 1});
                const Tensor parts = reshape(reshape(g, {samples, 1, channels}) * w, {samples * k, channels});
                gradients[0] =
                    scatter_add_rows(name, parts, reshape(indices, {samples * k}), saved_rows.get(name).size(0));
            }
            if (context.needs(1))
                gradients[1] = Tensor(ops::gather_weighted_sum_backward_weights(saved_rows.get(name).dense_view(),
                                                                                indices.dense_view(), g.dense_view()));
            return gradients;
        },
        [name, indices](const std::vector<Tensor>& in) {
            return std::vector{decomposed(name, in[0], indices, in[1])};
        })[0];
}

}  // namespace declivity::detail
