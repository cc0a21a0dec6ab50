#include "sampling.hpp"

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/gather_weighted_sum.hpp>
#include <declivity/tensor/creation.hpp>

#include "autograd/decomposition.hpp"
#include "functions/support/rows.hpp"

namespace declivity::detail {

AxisSamples linear_samples(const Tensor& at, std::int64_t size) {
    const Tensor low = floor(at.detach()), part = at - low;
    const Tensor places = stack({low, low + 1}, -1);
    return {.places = clamp(places, 0, static_cast<double>(size - 1)),
            .counts = (places >= 0) & (places <= static_cast<double>(size - 1)),
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
    numbers = image;
    Tensor counts;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const AxisSamples& axis = axes[i];
        numbers = numbers * sizes[i] + axis.places.detach().to(DType::i64);
        if (axis.counts.defined()) counts = counts.defined() ? counts & axis.counts : axis.counts;
        if (axis.weights.defined()) weights = weights.defined() ? weights * axis.weights : axis.weights;
    }
    if (counts.defined()) numbers = where(counts, numbers, -1);
}

namespace {

Tensor decomposed(const char* name, const Tensor& rows, const Tensor& numbers, const Tensor& weights) {
    const std::int64_t places = numbers.size(0), k = numbers.size(1), channels = rows.size(1);
    const Tensor taken = reshape(take_rows(name, rows, reshape(numbers, {places * k}), 0), {places, k, channels});
    return sum(taken * reshape(weights, {places, k, 1}), {1});
}

}  // namespace

Tensor gather_weighted_sum(const char* name, const Tensor& rows, const Tensor& numbers, const Tensor& weights) {
    const std::int64_t places = numbers.size(0), k = numbers.size(1), channels = rows.size(1);
    if (!weights.defined()) return take_rows(name, rows, reshape(numbers, {places * k}), 0);
    if (by_decomposition()) return decomposed(name, rows, numbers, weights);
    return attach_backward(
        name, {rows, weights},
        {ops::gather_weighted_sum(rows.dense_view(), numbers.dense_view(), weights.dense_view())},
        [name, numbers, saved_rows = Saved(rows), saved_weights = Saved(weights), places, k,
         channels](const GradientContext& context) {
            const Tensor& g = context.gradient();
            std::vector<Tensor> gradients(2);
            if (context.needs(0)) {
                const Tensor w = reshape(saved_weights.get(name), {places, k, 1});
                const Tensor parts = reshape(reshape(g, {places, 1, channels}) * w, {places * k, channels});
                gradients[0] = sum_rows(name, parts, reshape(numbers, {places * k}), saved_rows.get(name).size(0));
            }
            if (context.needs(1))
                gradients[1] = Tensor(ops::gather_weighted_sum_backward_weights(saved_rows.get(name).dense_view(),
                                                                                numbers.dense_view(), g.dense_view()));
            return gradients;
        },
        [name, numbers](const std::vector<Tensor>& in) {
            return std::vector{decomposed(name, in[0], numbers, in[1])};
        })[0];
}

}  // namespace declivity::detail
