// Layer 3. Convolutions.
//
// Functions of images take one image as well, without the axis N in front, and then give one.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// The zeros that a convolution adds around x: on both sides of all axes (`.padding = 1`) or of each axis
/// (`.padding = {1, 2}`), at the begins and at the ends (`ConvPadding::sides({1, 2}, {0, 2})`), as many that the result
/// is as large as x (`.padding = "same"`, for a stride of 1), or none (`"valid"`).
class DECLIVITY_API ConvPadding {
  public:
    struct Sides {
        Dims begins, ends;
    };

    template <std::integral T>
    requires(!std::same_as<T, bool>) ConvPadding(T both)  // NOLINT: a number is a padding
        : ConvPadding(Dims{static_cast<std::int64_t>(both)}) {}
    ConvPadding(std::initializer_list<std::int64_t> both) : ConvPadding(Dims(both)) {}
    ConvPadding(const Size2& both) : ConvPadding(dims_of(both)) {}  // NOLINT
    ConvPadding(const Size3& both) : ConvPadding(dims_of(both)) {}  // NOLINT
    ConvPadding(const Dims& both) : ConvPadding(both, both) {}      // NOLINT: one for each axis, or one for all
    /// @throws ValueError for another word than "same" and "valid"
    ConvPadding(const char* word);  // NOLINT
    static ConvPadding sides(const Dims& begins, const Dims& ends);

    /// The numbers for axes of these kernel sizes, dilations and strides; of "same" the end gets the odd one.
    /// @throws ValueError naming `function` for another number of axes, "same" with a stride, and negative numbers
    [[nodiscard]] Sides of(std::string_view function, const Dims& kernel_size, const Dims& dilation,
                           const Dims& stride) const;
    [[nodiscard]] bool is_same() const noexcept { return same_; }
    /// As they were given: one for each of so many axes, or all begins and then all ends where they differ.
    [[nodiscard]] Dims numbers(int axes) const;

  private:
    ConvPadding(Dims begins, Dims ends) : sides_{std::move(begins), std::move(ends)} {}
    Sides sides_;
    bool same_ = false;
};

/// How the filter moves. Pairs are vertical, horizontal.
struct Conv2dParameters {
    Size2 stride = 1;         ///< distance between neighbouring windows, at least 1
    ConvPadding padding = 0;  ///< zeros around x
    Size2 dilation = 1;       ///< distance between neighbouring elements of the filter, at least 1
    std::int64_t groups = 1;  ///< input channel group i feeds output channel group i only
};
/// x (N, C, H, W), weight (O, C / groups, R, S), bias (O) or undefined -> (N, O, P, Q) with
/// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1. A cross-correlation: the filter is not flipped.
DECLIVITY_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv2dParameters& options = {});

struct Conv1dParameters {
    std::int64_t stride = 1;
    ConvPadding padding = 0;  ///< zeros around x
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
};
/// x (N, C, L), weight (O, C / groups, R), bias (O) or undefined -> (N, O, P): conv2d of images of one line.
DECLIVITY_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv1dParameters& options = {});

struct ConvTranspose2dParameters {
    Size2 stride = 1;          ///< distance between the places of neighbouring elements of x
    Size2 padding = 0;         ///< rows and columns that are cut off on both sides
    Size2 output_padding = 0;  ///< further ones at the far sides, less than the stride or the dilation
    Size2 dilation = 1;
    std::int64_t groups = 1;
};
/// The gradient of conv2d for its input, as a function: x (N, C, H, W), weight (C, O / groups, R, S), bias (O) or
/// undefined -> (N, O, P, Q) with P = (H - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1 (Zeiler et al.
/// 2010; also called deconvolution).
DECLIVITY_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose2dParameters& options = {});

}  // namespace declivity
