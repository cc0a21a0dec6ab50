// What the parts of the tiled convolution share: the form of the device, and padded copies of images.
#pragma once

#include <array>
#include <cstdint>

#include "conv2d_strategy.hpp"

namespace declivity::ops::tiled {

/// Filters of more elements are left to the direct strategy: the offsets of a filter's elements travel as an argument.
constexpr std::int64_t kMaxTaps = 128;

/// How kernels are shaped for a device (vectors.clh).
struct Form {
    std::int64_t vector;     ///< VW
    std::int64_t group;      ///< GROUP
    std::int64_t registers;  ///< vectors of VW that a work-item may keep
    [[nodiscard]] std::int64_t run() const { return vector * group; }
};
Form form_of(const Device& device, KernelStyle style, DType dtype);
/// REAL, VW, GROUP, MAX_TAPS.
Defines defines_of(const Form& form, DType dtype);

/// How one axis of a padded copy is made: phase k holds the source positions i * stride + k * step % stride - origin
/// for i in [0, size), zero where there are none.
struct PadAxis {
    std::int64_t size = 1;
    std::int64_t stride = 1, phases = 1, step = 0, origin = 0;
};

/// A copy of all planes of an image tensor, padded and cut into phases, rows after rows without gaps.
struct Padded {
    View copy;
    std::int64_t channel = 0;  ///< elements from one plane to the next
    std::int64_t image = 0;    ///< elements from one image to the next
};

/// Copies `source` (N, C, H, W). Each plane is made a multiple of `multiple` elements long, and `tail` zeros follow
/// the last.
Padded pad(const View& source, const std::array<PadAxis, 2>& axes, const Form& form, KernelStyle style,
           std::int64_t multiple, std::int64_t tail);

/// As the struct of cl_kernels/lib/taps.clh.
struct TapAxis {
    std::int32_t period = 1, phase = 0, dilation = 0, stride = 1, unit = 0, first = 0;
};

/// For the sums over windows of x that forward and backward_weights share: how x is padded, and where in the copy the
/// filter's elements lie.
struct Windows {
    std::array<PadAxis, 2> axes;
    std::array<std::int32_t, kMaxTaps> offset{};  ///< element (r, s) of the filter at r * S + s
    std::array<TapAxis, 2> taps{};                ///< the same by arithmetic
};
Windows windows_of(const Conv2dProblem& problem);
/// Elements of one plane of a padded copy.
std::int64_t plane_of(const std::array<PadAxis, 2>& axes);

/// Where the parts of a gradient of the bias go, (chunks, O): the gradient itself when there is but one, any view when
/// none is wanted.
View bias_partials(const Conv2dOperands& operands, std::int64_t chunks);

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::tiled
