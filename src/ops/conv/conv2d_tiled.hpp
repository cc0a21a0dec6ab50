// Declarations shared by the parts of the tiled convolution: the form of a device, and padded copies of images.
#pragma once

#include <array>
#include <cstdint>

#include "conv2d_strategy.hpp"

namespace declivity::ops::tiled {

/// Larger filters are left to the direct strategy: the offsets of the filter elements are passed as an argument.
constexpr std::int64_t kMaxTaps = 128;

/// Vector sizes of the kernels for a device (vectors.clh).
struct Form {
    std::int64_t vector;     ///< VW
    std::int64_t group;      ///< GROUP
    std::int64_t registers;  ///< vectors of VW available to a work-item
    [[nodiscard]] std::int64_t run() const { return vector * group; }
};
Form form_of(const Device& device, KernelStyle style, DType dtype);
/// Defines REAL, VW, GROUP, MAX_TAPS.
Defines defines_of(const Form& form, DType dtype);

/// Padding of one axis of a copy: phase k has the source positions i * stride + k * step % stride - origin for i in [0,
/// size), zero outside of the source.
struct PadAxis {
    std::int64_t size = 1;
    std::int64_t stride = 1, phases = 1, step = 0, origin = 0;
};

/// A copy of all planes of an image tensor, padded and divided into phases, in contiguous rows.
struct Padded {
    View copy;
    std::int64_t channel = 0;  ///< elements from one plane to the next
    std::int64_t image = 0;    ///< elements from one image to the next
};

/// Copies `source` (N, C, H, W). The length of each plane is rounded up to `multiple` elements, and `tail` zeros follow
/// the last.
Padded pad(const View& source, const std::array<PadAxis, 2>& axes, const Form& form, KernelStyle style,
           std::int64_t multiple, std::int64_t tail);

/// Layout of the kernels' struct; must match cl_kernels/lib/taps.clh.
struct TapAxis {
    std::int32_t period = 1, phase = 0, dilation = 0, stride = 1, unit = 0, first = 0;
};

/// Windows of x in the sums of forward and backward_weights: padding of x, and offsets of the filter elements in the
/// copy.
struct Windows {
    std::array<PadAxis, 2> axes;
    std::array<std::int32_t, kMaxTaps> offset{};  ///< element (r, s) of the filter at r * S + s
    std::array<TapAxis, 2> taps{};                ///< the same by arithmetic
};
Windows windows_of(const Conv2dProblem& problem);
/// Elements of one plane of a padded copy.
std::int64_t plane_of(const std::array<PadAxis, 2>& axes);

/// Output of the partial gradients of the bias, (chunks, O): the gradient itself if there is only one, any view if it
/// is not requested.
View bias_partials(const Conv2dOperands& operands, std::int64_t chunks);

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::tiled
