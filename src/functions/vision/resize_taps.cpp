#include "resize_taps.hpp"

#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/resize.hpp>
#include <declivity/tensor/creation.hpp>

#include "autograd/decomposition.hpp"

namespace declivity::detail {
namespace {

Tensor index_range(std::int64_t from, std::int64_t to, const TensorOptions& options) {
    return arange(from, to, 1, options);
}

Tensor nearest_of(const Tensor& source, ResizeNearest nearest) {
    switch (nearest) {
        case ResizeNearest::floor:
            return floor(source);
        case ResizeNearest::ceil:
            return ceil(source);
        case ResizeNearest::round_prefer_floor:
            return ceil(source - 0.5);
        default:
            return floor(source + 0.5);
    }
}

/// Keys 1981, as a function of the distance.
Tensor cubic_filter(const Tensor& d, double a) {
    const Tensor near = ((a + 2) * d - (a + 3)) * d * d + 1, far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    return where(d <= 1, near, where(d < 2, far, 0));
}

Tensor decomposed(const Tensor& x, const Taps& taps) {
    const std::int64_t out = taps.indices.size(0), k = taps.indices.size(1);
    const Tensor gathered = index_select(x, 1, reshape(taps.indices, {out * k}));
    if (!taps.weights.defined()) return gathered;
    const Tensor weights = reshape(taps.weights, {1, out, k, 1});
    const Tensor parts = reshape(gathered, {x.size(0), out, k, x.size(2)}) * weights;
    return sum(where(weights != 0, parts, 0), {2});
}

/// Gradient for x, from that of the resampled result.
Tensor resampled_gradient(const Tensor& g, const Taps& taps) {
    return attach_backward(
        "resize_gradient", {g},
        ops::resample_backward(g.dense_view(), taps.indices.dense_view(),
                               taps.weights.defined() ? taps.weights.dense_view() : ops::View(), taps.in),
        [taps](const GradientContext& context) { return std::vector{resample_lines(context.gradient(), taps)}; },
        RuleKind::differentiable);
}

}  // namespace

bool AxisMap::is_identity() const {
    return in == out && scale == 1 && shift + start == 0 && stretch == 1 && (filter != Filter::cubic || !exclude);
}

Tensor AxisMap::source(DType real, const Device& device) const {
    const Tensor i = index_range(0, out, {real, device});
    return (shift == 0 ? i : i + shift) * scale + start;
}

Taps::Taps(const AxisMap& map, DType real, const Device& device) : in(map.in), monotonic(map.scale >= 0) {
    const NoGrad no_grad;
    const std::int64_t out = map.out;
    const TensorOptions compute_options{real, device};
    if (map.filter == AxisMap::Filter::area) {
        // Windows from floor(i in / out) to ceil((i + 1) in / out), in integers.
        const std::int64_t k = in % out == 0 ? in / out : in / out + 2;
        const Tensor i = reshape(index_range(0, out, {DType::i64, device}), {out, 1});
        const Tensor first = floor_divide(i * in, out), end = floor_divide((i + 1) * in + (out - 1), out);
        const Tensor position = first + index_range(0, k, {DType::i64, device});
        indices = minimum(position, end - 1).to(DType::i32);
        weights = where(position < end, 1 / (end - first).to(real), 0);
        return;
    }
    const Tensor source = map.source(real, device);
    const auto last = static_cast<double>(in - 1);
    if (map.filter == AxisMap::Filter::nearest) {
        // PyTorch rounds to f32 before floor(), whatever the type.
        const Tensor nearest = nearest_of(source.to(DType::f32), map.nearest);
        indices = reshape(clamp(nearest, 0, last).to(DType::i32), {out, 1});
        return;
    }
    const bool cubic = map.filter == AxisMap::Filter::cubic;
    const auto radius = static_cast<std::int64_t>(std::ceil((cubic ? 2 : 1) * map.stretch));
    const Tensor centre = reshape(source, {out, 1});
    const Tensor position = floor(centre) + index_range(1 - radius, radius + 1, compute_options);
    const Tensor distance = abs(position - centre) * (1 / map.stretch);
    weights = cubic ? cubic_filter(distance, map.a) : maximum(1 - distance, 0);
    if (map.exclude) weights = where((position < 0) | (position > last), 0, weights);
    if (map.exclude || map.stretch != 1) weights = weights / sum(weights, {1}, true);
    indices = clamp(position, 0, last).to(DType::i32);
}

Tensor resample_lines(const Tensor& x, const Taps& taps) {
    if (by_decomposition() || !taps.monotonic || (x.dtype() != DType::f32 && x.dtype() != DType::f64))
        return decomposed(x, taps);
    return attach_backward(
        "resize", {x},
        ops::resample(x.dense_view(), taps.indices.dense_view(),
                      taps.weights.defined() ? taps.weights.dense_view() : ops::View()),
        [taps](const GradientContext& context) { return std::vector{resampled_gradient(context.gradient(), taps)}; },
        RuleKind::differentiable);
}

Tensor resample_lines_u8(const Tensor& x, const Taps& taps) {
    const NoGrad no_grad;
    const Device device = x.device();
    const std::int64_t out = taps.indices.size(0), k = taps.indices.size(1);
    // Taps beyond an end are merged before they are rounded.
    const Tensor same_index = reshape(taps.indices, {out, k, 1}) == reshape(taps.indices, {out, 1, k});
    const Tensor tap = index_range(0, k, {DType::i32, device}), earlier = reshape(tap, {1, k}) < reshape(tap, {k, 1});
    const Tensor merged = sum(where(same_index, reshape(taps.weights, {out, 1, k}), 0), {2});
    const Tensor weights = where(any(same_index & earlier, {2}), 0, merged);
    const DType real = weights.dtype();
    const Tensor powers = bitwise_left_shift(1, index_range(1, 23, {DType::i32, device}));
    const Tensor bits = sum((floor(max(weights) * powers.to(real) + 0.5) < 0x1p15).to(DType::i32)).to(DType::i32);
    const Tensor unit = bitwise_left_shift(full({}, 1, {DType::i32, device}), bits);
    const Tensor scaled = weights * unit.to(real),
                 rounded = trunc(scaled + where(scaled < 0, -0.5, 0.5)).to(DType::i32);
    const Tensor gathered = index_select(x, 1, reshape(taps.indices, {out * k})).to(DType::i32);
    const Tensor sums = sum(reshape(gathered, {x.size(0), out, k, x.size(2)}) * reshape(rounded, {1, out, k, 1}), {2});
    return clamp(bitwise_right_shift(sums.to(DType::i32) + floor_divide(unit, 2), bits), 0, 255).to(DType::u8);
}

}  // namespace declivity::detail
