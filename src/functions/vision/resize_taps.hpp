// Layer 5, private. Resampling of an axis: for each output position the input elements and weights (taps).
#pragma once

#include <cstdint>

#include <declivity/functions/resize.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Mapping of an axis of `in` elements to one of `out`. Output i is sampled at scale (i + shift) + start.
struct AxisMap {
    enum class Filter : std::uint8_t { nearest, linear, cubic, area };

    std::int64_t in = 1, out = 1;
    double scale = 1, shift = 0, start = 0;
    Filter filter = Filter::nearest;
    ResizeNearest nearest = ResizeNearest::floor;
    double a = -0.75;      ///< coefficient of the cubic filter
    double stretch = 1;    ///< scale of the filter's support, at least 1
    bool exclude = false;  ///< taps outside have weight 0, and the others are renormalised

    /// Returns whether the mapping is the identity.
    [[nodiscard]] bool is_identity() const;
    /// Sampling positions: (out), in f32 or f64.
    [[nodiscard]] Tensor source(DType real, const Device& device) const;
};

/// indices (out, K) in [0, in), i32, non-decreasing along both axes if `monotonic`; weights (out, K), undefined if
/// all are 1.
struct Taps {
    std::int64_t in = 1;
    Tensor indices, weights;
    bool monotonic = true;

    Taps(const AxisMap& map, DType real, const Device& device);
};

/// x (outer, in, inner), f32 and f64 by kernels, or of any type if the taps have no weights: the sums of weights[i][k]
/// x[indices[i][k]], (outer, out, inner). Differentiable to any order.
Tensor resample_lines(const Tensor& x, const Taps& taps);

/// Resampling of u8 in integers: weights are rounded to as many bits as fit into 15, and sums to u8, ties up.
Tensor resample_lines_u8(const Tensor& x, const Taps& taps);

}  // namespace declivity::detail
