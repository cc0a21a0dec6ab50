// Layer 3, private. What convolutions of any number of spatial axes have in common.
#pragma once

#include <string_view>

#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions/conv.hpp>

namespace declivity::detail {

/// x with `axes` spatial axes as a batch: of one, where it is (C, spatial...).
inline bool is_single(const Tensor& x, int axes) { return x.rank() == axes + 1; }
Tensor as_batch(const Tensor& x, int axes);
/// The result of a batch of one without its first axis, where x came without.
Tensor as_given(const Tensor& y, bool single);

/// What a convolution records of its padding: numbers for each axis, of all begins and then all ends where they differ;
/// or a word.
class PaddingRecord {
  public:
    PaddingRecord(const ConvPadding& padding, int axes) : same_(padding.is_same()), numbers_(padding.numbers(axes)) {}
    [[nodiscard]] CallAttribute attribute() const {
        return same_ ? CallAttribute("padding", std::string_view("same")) : CallAttribute("padding", numbers_);
    }

  private:
    bool same_;
    Dims numbers_;
};

/// The input of a convolution as a batch, with those zeros around it that are not the same on both sides.
struct ConvInput {
    Tensor x;
    Dims padding;  ///< that is left, on both sides of each axis
    bool single;

    /// x and weight of other ranks stay as they are: conv_shape refuses them.
    ConvInput(std::string_view name, const Tensor& given, const Tensor& weight, const ConvPadding& around,
              const Dims& dilation, const Dims& stride);
};

/// Types, devices and the shape of the bias (channels).
void require_conv_operands(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           std::int64_t channels);

struct TransposedConv {
    Dims stride, padding, output_padding, dilation;
    std::int64_t groups;
};
/// The shape of a transposed convolution of x (N, C, spatial...), after all checks.
Shape transposed_shape(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const TransposedConv& conv);

/// y (N, O, spatial...) + bias (O), where there is one.
Tensor with_bias(Tensor y, const Tensor& bias);

}  // namespace declivity::detail
