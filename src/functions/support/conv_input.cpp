#include "conv_input.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/conv/conv_shape.hpp"
#include "ops/support/int32_range.hpp"

namespace declivity {
namespace {

/// Expands a single value to one value per axis.
Dims expand_to_axes(const Dims& values, int axes) {
    return values.rank() == 1 && axes > 1 ? Dims::filled(axes, values[0]) : values;
}

}  // namespace

ConvPadding::ConvPadding(const char* word) : ConvPadding(Dims{0}) {
    const std::string_view mode = word;
    if (mode != "same" && mode != "valid")
        throw ValueError(fmt::format("ConvPadding: expected numbers, \"same\" or \"valid\", got \"{}\"", mode));
    same_ = mode == "same";
}

ConvPadding ConvPadding::sides(const Dims& begins, const Dims& ends) { return {begins, ends}; }

ConvPadding::Sides ConvPadding::of(std::string_view function, const Dims& kernel_size, const Dims& dilation,
                                   const Dims& stride) const {
    const int axes = kernel_size.rank();
    ops::check_int32_range(function, "the stride", stride);
    ops::check_int32_range(function, "the dilation", dilation);
    ops::check_int32_range(function, "the padding", sides_.begins);
    ops::check_int32_range(function, "the padding", sides_.ends);
    if (same_) {
        if (std::ranges::any_of(stride, [](std::int64_t number) { return number != 1; }))
            throw ValueError(
                fmt::format("{}: expected a stride of 1 with the padding \"same\", got {}", function, stride.str()));
        Sides sides{Dims::filled(axes, 0), Dims::filled(axes, 0)};
        for (int axis = 0; axis < axes; ++axis) {
            const std::int64_t total = std::max<std::int64_t>(0, dilation[axis] * (kernel_size[axis] - 1));
            sides.begins[axis] = total / 2;
            sides.ends[axis] = total - total / 2;
        }
        return sides;
    }
    const Sides sides{expand_to_axes(sides_.begins, axes), expand_to_axes(sides_.ends, axes)};
    if (sides.begins.rank() != axes || sides.ends.rank() != axes)
        throw ValueError(fmt::format("{}: expected one padding for all axes or for each of {}, got {}", function, axes,
                                     sides_.begins == sides_.ends
                                         ? sides_.begins.str()
                                         : fmt::format("{} and {}", sides_.begins.str(), sides_.ends.str())));
    const auto negative = [](const Dims& dims) {
        return std::ranges::any_of(dims, [](std::int64_t number) { return number < 0; });
    };
    if (!(sides.begins == sides.ends) && (negative(sides.begins) || negative(sides.ends)))
        throw ValueError(fmt::format("{}: expected a padding of at least 0, got {} and {}", function,
                                     sides.begins.str(), sides.ends.str()));
    return sides;
}

Dims ConvPadding::numbers(int axes) const {
    Dims values = expand_to_axes(sides_.begins, axes);
    if (sides_.begins == sides_.ends) return values;
    for (const std::int64_t end : expand_to_axes(sides_.ends, axes))
        if (values.rank() < Dims::kMaxRank) values.push_back(end);
    return values;
}

namespace detail {

Tensor as_batch(const Tensor& x, int axes) { return is_unbatched(x, axes) ? unsqueeze(x, 0) : x; }

Tensor drop_batch_if(const Tensor& y, bool unbatched) { return unbatched ? squeeze(y, {0}) : y; }

ConvInput::ConvInput(std::string_view name, const Tensor& input, const Tensor& weight, const ConvPadding& conv_padding,
                     const Dims& dilation, const Dims& stride)
    : x(input), padding(Dims::filled(stride.rank(), 0)), unbatched(false) {
    const int axes = stride.rank();
    if (weight.rank() != axes + 2 || input.rank() < axes + 1 || input.rank() > axes + 2) return;
    Dims kernel_size;
    for (int axis = 0; axis < axes; ++axis) kernel_size.push_back(weight.shape()[2 + axis]);
    const auto [begins, ends] = conv_padding.of(name, kernel_size, dilation, stride);
    unbatched = is_unbatched(input, axes);
    x = as_batch(input, axes);
    if (begins == ends) {
        padding = begins;
        return;
    }
    Dims pad_before{0, 0}, pad_after{0, 0};
    for (const std::int64_t begin : begins) pad_before.push_back(begin);
    for (const std::int64_t end : ends) pad_after.push_back(end);
    x = pad(x, pad_before, pad_after);
}

void require_conv_operands(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           std::int64_t channels) {
    if (!is_integer(x.dtype())) ops::require_real(name, "x", x.dtype());
    ops::require_alike(name, "x", x.dtype(), x.device(), "weight", weight.dtype(), weight.device());
    if (!bias.defined()) return;
    ops::require_shape(name, "bias", bias.shape(), {channels});
    ops::require_alike(name, "x", x.dtype(), x.device(), "bias", bias.dtype(), bias.device());
}

Shape transposed_shape(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const TransposedConv& conv) {
    constexpr const char* kInputAxes[] = {"N, C, L", "N, C, H, W", "N, C, D, H, W"};
    constexpr const char* kWeightAxes[] = {"C, O / groups, R", "C, O / groups, R, S", "C, O / groups, Q, R, S"};
    const int axes = conv.stride.rank();
    for (const auto& [what, values] : {std::pair{"the stride", conv.stride},
                                       {"the padding", conv.padding},
                                       {"the output padding", conv.output_padding},
                                       {"the dilation", conv.dilation}})
        ops::check_int32_range(name, what, values);
    ops::require_rank(name, "x", x.shape(), axes + 2, kInputAxes[axes - 1]);
    ops::require_rank(name, "weight", weight.shape(), axes + 2, kWeightAxes[axes - 1]);
    if (x.size(1) != weight.size(0))
        throw ShapeError(fmt::format("{}: expected a weight of {} input channels for x {}, got {}", name, x.size(1),
                                     x.shape().str(), weight.shape().str()));
    if (conv.groups < 1 || x.size(1) % conv.groups != 0)
        throw ValueError(fmt::format("{}: expected groups that divide the channels of x, got {} groups for x {}", name,
                                     conv.groups, x.shape().str()));
    Shape out{x.size(0), weight.size(1) * conv.groups};
    for (int i = 0; i < axes; ++i) {
        const std::int64_t output_padding = conv.output_padding[i];
        if (output_padding < 0 || (output_padding >= conv.stride[i] && output_padding >= conv.dilation[i]))
            throw ValueError(fmt::format(
                "{}: expected an output padding of at least 0 that is less than the stride or the dilation, got {} for "
                "stride {} and dilation {}",
                name, output_padding, conv.stride[i], conv.dilation[i]));
        out.push_back((x.size(2 + i) - 1) * conv.stride[i] - 2 * conv.padding[i] +
                      conv.dilation[i] * (weight.size(2 + i) - 1) + output_padding + 1);
        if (out[2 + i] < 1)
            throw ShapeError(
                fmt::format("{}: expected a result with at least one element along each axis, got x {} and weight {} "
                            "with padding {}",
                            name, x.shape().str(), weight.shape().str(), conv.padding.str()));
    }
    (void)ops::conv_shape(name, out, weight.shape(),
                          {conv.stride.span(), conv.padding.span(), conv.dilation.span(), conv.groups});
    require_conv_operands(name, x, weight, bias, out[1]);
    return out;
}

Tensor with_bias(Tensor y, const Tensor& bias) {
    if (!bias.defined()) return y;
    Shape shape = Dims::filled(y.rank(), 1);
    shape[1] = bias.size(0);
    return std::move(y) + reshape(bias, shape);
}

}  // namespace detail
}  // namespace declivity
