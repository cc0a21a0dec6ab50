// Layer 5. Convolutions of sequences and images. For volumes and transposed convolutions of sequences see conv_nd.hpp.
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

/// @defgroup functions_conv Convolutions
/// @ingroup functions
/// Convolutions, transposed convolutions, and sliding windows (im2col).
///
/// - Shapes: x (N, C, L), (N, C, H, W) or (N, C, D, H, W), where N may be 0; a single one without the axis N is
///   accepted as well, and then so is the result. C is divided into `groups`, as are the output channels O.
/// - Types: floating types and integers; weight and bias have the type of x, as has the result. f16 and bf16 are
///   accumulated in f32.
/// - Errors: ShapeError for operands of another number of axes, a weight of another number of input channels than C /
///   groups (transposed: than C), a bias of another number than O, and x smaller than the filter; ValueError for groups
///   that do not divide C and O, and for a stride or dilation below 1 or a negative padding; TypeError for bool, and
///   for operands of different types; DeviceError for operands on different devices.
///
/// @{

/// Zero padding of a convolution: on both sides of all axes (`.padding = 1`) or of each axis (`.padding = {1, 2}`),
/// separate for begins and ends (`ConvPadding::sides({1, 2}, {0, 2})`), chosen so that the result has the size of x
/// (`.padding = "same"`, for a stride of 1), or none (`"valid"`).
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
    /// @throws ValueError for a word other than "same" and "valid"
    ConvPadding(const char* word);  // NOLINT
    static ConvPadding sides(const Dims& begins, const Dims& ends);

    /// Padding of axes with these kernel sizes, dilations and strides; for "same" an odd total gives the end the extra
    /// one.
    /// @throws ValueError naming `function` for another number of axes, "same" with a stride, and negative numbers
    [[nodiscard]] Sides of(std::string_view function, const Dims& kernel_size, const Dims& dilation,
                           const Dims& stride) const;
    [[nodiscard]] bool is_same() const noexcept { return same_; }
    /// The padding as given: one number per axis, or all begins and then all ends if they differ.
    [[nodiscard]] Dims numbers(int axes) const;

  private:
    ConvPadding(Dims begins, Dims ends) : sides_{std::move(begins), std::move(ends)} {}
    Sides sides_;
    bool same_ = false;
};

/// Hyperparameters of conv2d. Pairs are vertical, horizontal.
struct Conv2dParameters {
    Size2 stride = 1;         ///< distance between adjacent windows, at least 1
    ConvPadding padding = 0;  ///< zeros around x
    Size2 dilation = 1;       ///< distance between adjacent filter elements, at least 1
    std::int64_t groups = 1;  ///< input channel group i contributes to output channel group i only
};
/// 2-D convolution: x (N, C, H, W), weight (O, C / groups, R, S), bias (O) or undefined -> (N, O, P, Q) with P = (H + 2
/// padding - dilation (R - 1) - 1) / stride + 1, rounded down. A cross-correlation: the filter is not flipped.
/// Examples: for x = `[[[1, 2, 3], [4, 5, 6]]]` and weight = `[[[[1, 10]]]]`, `conv2d(x, weight)` is
/// `[[[21, 32], [54, 65]]]`; `conv2d(x, weight, {}, {.stride = 2, .padding = {0, 1}})` is `[[[10, 32]]]`.
DECLIVITY_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv2dParameters& options = {});

/// Hyperparameters of conv1d, as those of conv2d.
struct Conv1dParameters {
    std::int64_t stride = 1;
    ConvPadding padding = 0;  ///< zeros around x
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
};
/// 1-D convolution: x (N, C, L), weight (O, C / groups, R), bias (O) or undefined -> (N, O, P), computed by conv2d with
/// height 1.
/// Examples: for x = `[[1, 2, 3]]` and weight = `[[[1, 10]]]`, `conv1d(x, weight)` is `[[21, 32]]`;
/// `conv1d(x, weight, {}, {.padding = "same"})` is `[[21, 32, 3]]`.
DECLIVITY_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv1dParameters& options = {});

/// Hyperparameters of conv_transpose2d. Pairs are vertical, horizontal.
struct ConvTranspose2dParameters {
    Size2 stride = 1;          ///< distance between the positions of adjacent elements of x
    Size2 padding = 0;         ///< rows and columns to crop on both sides
    Size2 output_padding = 0;  ///< additional rows and columns at the ends, less than the stride or the dilation
    Size2 dilation = 1;
    std::int64_t groups = 1;
};
/// Transposed convolution (deconvolution), the gradient of conv2d with respect to its input: x (N, C, H, W), weight (C,
/// O / groups, R, S), bias (O) or undefined -> (N, O, P, Q) with P = (H - 1) stride - 2 padding + dilation (R - 1) +
/// output_padding + 1 (Zeiler et al. 2010).
/// Examples: for x = `[[[1, 2]]]` and weight = `[[[[1, 10]]]]`, `conv_transpose2d(x, weight)` is `[[[1, 12, 20]]]`;
/// `conv_transpose2d(x, weight, {}, {.stride = {1, 2}})` is `[[[1, 10, 2, 20]]]`.
/// @throws ValueError for an output_padding that is negative, or not less than the stride or the dilation; ShapeError
/// for an empty result
DECLIVITY_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose2dParameters& options = {});

/// @}

}  // namespace declivity
