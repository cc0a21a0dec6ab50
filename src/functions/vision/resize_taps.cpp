#include "resize_taps.hpp"

#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/resize.hpp>
#include <declivity/tensor/creation.hpp>

#include "autograd/decomposition.hpp"

namespace declivity::detail {
namespace {

Tensor counted(std::int64_t from, std::int64_t to, const TensorOptions& options) {
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
    const std::int64_t out = taps.places.size(0), k = taps.places.size(1);
    const Tensor taken = index_select(x, 1, reshape(taps.places, {out * k}));
    if (!taps.weights.defined()) return taken;
    const Tensor weights = reshape(taps.weights, {1, out, k, 1});
    const Tensor parts = reshape(taken, {x.size(0), out, k, x.size(2)}) * weights;
    return sum(where(weights != 0, parts, 0), {2});
}

/// Gradient for x, from that of the resampled result.
Tensor spread(const Tensor& g, const Taps& taps) {
    return attach_backward(
        "resize_gradient", {g},
        ops::resample_backward(g.dense_view(), taps.places.dense_view(),
                               taps.weights.defined() ? taps.weights.dense_view() : ops::View(), taps.in),
        [taps](const GradientContext& context) { return std::vector{resampled(context.gradient(), taps)}; },
        RuleKind::differentiable);
}

}  // namespace

bool AxisMap::same() const {
    return in == out && scale == 1 && shift + start == 0 && stretch == 1 && (filter != Filter::cubic || !exclude);
}

Tensor AxisMap::source(DType real, const Device& device) const {
    const Tensor i = counted(0, out, {real, device});
    return (shift == 0 ? i : i + shift) * scale + start;
}

Taps::Taps(const AxisMap& map, DType real, const Device& device) : in(map.in), rising(map.scale >= 0) {
    const NoGrad no_grad;
    const std::int64_t out = map.out;
    const TensorOptions numbers{real, device};
    if (map.filter == AxisMap::Filter::area) {
        // Windows from floor(i in / out) to ceil((i + 1) in / out), in integers.
        const std::int64_t k = in % out == 0 ? in / out : in / out + 2;
        const Tensor i = reshape(counted(0, out, {DType::i64, device}), {out, 1});
        const Tensor first = floor_divide(i * in, out), end = floor_divide((i + 1) * in + (out - 1), out);
        const Tensor place = first + counted(0, k, {DType::i64, device});
        places = minimum(place, end - 1).to(DType::i32);
        weights = where(place < end, 1 / (end - first).to(real), 0);
        return;
    }
    const Tensor source = map.source(real, device);
    const auto last = static_cast<double>(in - 1);
    if (map.filter == AxisMap::Filter::nearest) {
        // PyTorch rounds to f32 before floor(), whatever the type.
        const Tensor nearest = nearest_of(source.to(DType::f32), map.nearest);
        places = reshape(clamp(nearest, 0, last).to(DType::i32), {out, 1});
        return;
    }
    const bool cubic = map.filter == AxisMap::Filter::cubic;
    const auto reach = static_cast<std::int64_t>(std::ceil((cubic ? 2 : 1) * map.stretch));
    const Tensor at = reshape(source, {out, 1});
    const Tensor place = floor(at) + counted(1 - reach, reach + 1, numbers);
    const Tensor distance = abs(place - at) * (1 / map.stretch);
    weights = cubic ? cubic_filter(distance, map.a) : maximum(1 - distance, 0);
    if (map.exclude) weights = where((place < 0) | (place > last), 0, weights);
    if (map.exclude || map.stretch != 1) weights = weights / sum(weights, {1}, true);
    places = clamp(place, 0, last).to(DType::i32);
}

Tensor resampled(const Tensor& x, const Taps& taps) {
    if (by_decomposition() || !taps.rising || (x.dtype() != DType::f32 && x.dtype() != DType::f64))
        return decomposed(x, taps);
    return attach_backward(
        "resize", {x},
        ops::resample(x.dense_view(), taps.places.dense_view(),
                      taps.weights.defined() ? taps.weights.dense_view() : ops::View()),
        [taps](const GradientContext& context) { return std::vector{spread(context.gradient(), taps)}; },
        RuleKind::differentiable);
}

Tensor resampled_bytes(const Tensor& x, const Taps& taps) {
    const NoGrad no_grad;
    const Device device = x.device();
    const std::int64_t out = taps.places.size(0), k = taps.places.size(1);
    // Taps beyond an end are merged before they are rounded.
    const Tensor here = reshape(taps.places, {out, k, 1}) == reshape(taps.places, {out, 1, k});
    const Tensor number = counted(0, k, {DType::i32, device}),
                 earlier = reshape(number, {1, k}) < reshape(number, {k, 1});
    const Tensor together = sum(where(here, reshape(taps.weights, {out, 1, k}), 0), {2});
    const Tensor weights = where(any(here & earlier, {2}), 0, together);
    const DType real = weights.dtype();
    const Tensor powers = bitwise_left_shift(1, counted(1, 23, {DType::i32, device}));
    const Tensor bits = sum((floor(max(weights) * powers.to(real) + 0.5) < 0x1p15).to(DType::i32)).to(DType::i32);
    const Tensor one = bitwise_left_shift(full({}, 1, {DType::i32, device}), bits);
    const Tensor fixed = weights * one.to(real), rounded = trunc(fixed + where(fixed < 0, -0.5, 0.5)).to(DType::i32);
    const Tensor taken = index_select(x, 1, reshape(taps.places, {out * k})).to(DType::i32);
    const Tensor sums = sum(reshape(taken, {x.size(0), out, k, x.size(2)}) * reshape(rounded, {1, out, k, 1}), {2});
    return clamp(bitwise_right_shift(sums.to(DType::i32) + floor_divide(one, 2), bits), 0, 255).to(DType::u8);
}

}  // namespace declivity::detail
