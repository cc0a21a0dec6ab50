#include "conv_shape.hpp"

#include <algorithm>
#include <string>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::ops {
namespace {

constexpr const char* kInputAxes[] = {"N, C, L", "N, C, H, W", "N, C, D, H, W"};
constexpr const char* kWeightAxes[] = {"O, C / groups, R", "O, C / groups, R, S", "O, C / groups, Q, R, S"};

/// Formats a single number for one axis, a list for several.
std::string words(std::span<const std::int64_t> values) {
    return values.size() == 1 ? fmt::format("{}", values[0]) : fmt::format("{}", values);
}

}  // namespace

Shape conv_shape(std::string_view function, const Shape& x, const Shape& weight, const ConvWindow& window) {
    const auto axes = static_cast<int>(window.stride.size());
    if (x.rank() != axes + 2)
        throw ShapeError(fmt::format("{}: expected x of shape ({}), got {}", function, kInputAxes[axes - 1], x.str()));
    if (weight.rank() != axes + 2)
        throw ShapeError(
            fmt::format("{}: expected a weight of shape ({}), got {}", function, kWeightAxes[axes - 1], weight.str()));
    const auto require_at_least = [&](std::string_view name, std::span<const std::int64_t> values,
                                      std::int64_t min_value) {
        if (std::ranges::any_of(values, [&](std::int64_t value) { return value < min_value; }))
            throw ValueError(fmt::format("{}: expected a {} of at least {}{}, got {}", function, name, min_value,
                                         axes == 1 ? "" : " along each axis", words(values)));
    };
    require_at_least("stride", window.stride, 1);
    require_at_least("dilation", window.dilation, 1);
    require_at_least("padding", window.padding, 0);
    const std::int64_t channels = x[1], filters = weight[0], groups = window.groups;
    if (groups < 1 || channels < 1 || filters < 1 || channels % groups != 0 || filters % groups != 0)
        throw ValueError(
            fmt::format("{}: expected groups that divide the channels of x and the filters, at least one of each, got "
                        "{} groups for x {} and weight {}",
                        function, groups, x.str(), weight.str()));
    if (weight[1] != channels / groups)
        throw ShapeError(fmt::format("{}: expected a weight of {} input channels for x {} in {} group{}, got {}",
                                     function, channels / groups, x.str(), groups, groups == 1 ? "" : "s",
                                     weight.str()));
    Shape out = x;
    out[1] = filters;
    for (int i = 0; i < axes; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t extent = window.dilation[at] * (weight[2 + i] - 1) + 1;
        const std::int64_t padded = x[2 + i] + 2 * window.padding[at];
        if (weight[2 + i] < 1 || x[2 + i] < 1 || padded < extent)
            throw ShapeError(
                fmt::format("{}: expected x at least as large as the filter, got x {} with padding {} and weight {} "
                            "with dilation {}",
                            function, x.str(), words(window.padding), weight.str(), words(window.dilation)));
        out[2 + i] = (padded - extent) / window.stride[at] + 1;
    }
    return out;
}

}  // namespace declivity::ops
