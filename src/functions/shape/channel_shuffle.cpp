#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity {

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
    const FunctionCall call("channel_shuffle", {{"x", x}}, {{"groups", groups}});
    call.require_defined({"x"});
    if (x.rank() < 2)
        throw ShapeError(
            fmt::format("channel_shuffle: expected at least 2 axes (N, C, ...) as x, got {}", x.shape().str()));
    const std::int64_t channels = x.size(1);
    if (groups < 1 || channels % groups != 0)
        throw ValueError(
            fmt::format("channel_shuffle: expected groups that divide the {} channels of x, got {}", channels, groups));
    std::int64_t inner = 1;
    for (int axis = 2; axis < x.rank(); ++axis) inner *= x.shape()[axis];
    const Tensor table = reshape(x, {x.size(0), groups, channels / groups, inner});
    return call.result(reshape(transpose(table, 1, 2), x.shape()));
}

}  // namespace declivity
