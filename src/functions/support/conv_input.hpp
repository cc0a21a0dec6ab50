// Layer 5, private. Input checks and padding shared by convolutions of any number of spatial axes.
#pragma once

#include <string_view>

#include <declivity/functions/conv.hpp>
#include <declivity/tensor/function_call.hpp>

namespace declivity::detail {

/// Returns whether x (C, spatial...) with `axes` spatial axes has no batch axis.
inline bool is_unbatched(const Tensor& x, int axes) { return x.rank() == axes + 1; }
/// Adds the batch axis to an unbatched x.
Tensor as_batch(const Tensor& x, int axes);
/// Removes the batch axis from the result if x is unbatched.
Tensor drop_batch_if(const Tensor& y, bool unbatched);

/// Padding attribute of a convolution's call record: "same", or one value per axis, or all begins and then all ends
/// where they differ.
class PaddingRecord {
  public:
    PaddingRecord(const ConvPadding& padding, int axes) : same_(padding.is_same()), values_(padding.numbers(axes)) {}
    [[nodiscard]] CallAttribute attribute() const {
        return same_ ? CallAttribute("padding", std::string_view("same")) : CallAttribute("padding", values_);
    }

  private:
    bool same_;
    Dims values_;
};

/// Input of a convolution as a batch, explicitly padded with zeros where the padding of both sides differs.
struct ConvInput {
    Tensor x;
    Dims padding;  ///< remaining symmetric padding of each axis
    bool unbatched;

    /// x and weight of other ranks are not changed: conv_shape rejects them.
    ConvInput(std::string_view name, const Tensor& input, const Tensor& weight, const ConvPadding& conv_padding,
              const Dims& dilation, const Dims& stride);
};

/// Checks types, devices and the shape of the bias (channels).
void require_conv_operands(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           std::int64_t channels);

struct TransposedConv {
    Dims stride, padding, output_padding, dilation;
    std::int64_t groups;
};
/// Shape of the result of a transposed convolution of x (N, C, spatial...), after all checks.
Shape transposed_shape(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const TransposedConv& conv);

/// Returns y (N, O, spatial...) + bias (O); y if the bias is undefined.
Tensor with_bias(Tensor y, const Tensor& bias);

}  // namespace declivity::detail
