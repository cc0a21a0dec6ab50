// Layer 3, private. What an axis of another size is made of: for each place of it a few places of the old one.
#pragma once

#include <cstdint>

#include <declivity/tensor/functions/resize.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// How an axis of `in` elements becomes one of `out`. Place i lies at scale (i + shift) + start.
struct AxisMap {
    enum class Filter : std::uint8_t { nearest, linear, cubic, area };

    std::int64_t in = 1, out = 1;
    double scale = 1, shift = 0, start = 0;
    Filter filter = Filter::nearest;
    ResizeNearest nearest = ResizeNearest::floor;
    double a = -0.75;      ///< of the cubic filter
    double stretch = 1;    ///< of the filter, at least 1
    bool exclude = false;  ///< places outside have weight 0, and the others share it

    /// Every place is that of the same number.
    [[nodiscard]] bool same() const;
    /// Where the places lie: (out), in f32 or f64.
    [[nodiscard]] Tensor source(DType real, const Device& device) const;
};

/// places (out, K) in [0, in), i32, rising along both axes where `rising`; weights (out, K), none where all are 1.
struct Taps {
    std::int64_t in = 1;
    Tensor places, weights;
    bool rising = true;

    Taps(const AxisMap& map, DType real, const Device& device);
};

/// x (outer, in, inner) of floating numbers, for f32 and f64 by kernels, or of any type where the taps have no weights:
/// the sums of weights[i][k] x[places[i][k]], (outer, out, inner). Differentiable to any order.
Tensor resampled(const Tensor& x, const Taps& taps);

/// The same of u8, in whole numbers: weights are rounded to as many bits as fit into 15, and sums to u8, halves up.
Tensor resampled_bytes(const Tensor& x, const Taps& taps);

}  // namespace declivity::detail
