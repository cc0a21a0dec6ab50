#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/conv_input.hpp"
#include "functions/support/flat_indices.hpp"
#include "pool_windows.hpp"

namespace declivity {
namespace {

template <int N>
Tensor max_unpool(const char* name, const Tensor& input, const Tensor& indices, const PoolParameters<N>& options,
                  const Dims& output_size) {
    const Dims kernel = dims_of(options.kernel_size), stride = dims_of(options.stride),
               padding = dims_of(options.padding);
    const FunctionCall call(
        name, {{"x", input}, {"indices", indices}},
        {{"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"output_size", output_size}});
    call.require_defined({"x", "indices"});
    const Tensor x = detail::pool_input(name, input, N);
    ops::require_real(name, "x", x.dtype());
    ops::require_shape(name, "indices", indices.shape(), input.shape());
    detail::require_index(name, indices, x);
    const detail::PoolWindows windows(options);
    detail::require_windows(name, windows);
    if (!output_size.empty() && output_size.rank() != N)
        throw ShapeError(fmt::format("{}: expected an output size of {} numbers, got {}", name, N, output_size.str()));
    Shape out{x.size(0), x.size(1)};
    for (int axis = 0; axis < N; ++axis) {
        const std::int64_t default_size =
            (x.shape()[2 + axis] - 1) * windows.stride[axis] - 2 * windows.padding[axis] + kernel[axis];
        out.push_back(output_size.empty() ? default_size : output_size[axis]);
        if (out[2 + axis] < 1 || out[2 + axis] <= default_size - windows.stride[axis] ||
            out[2 + axis] >= default_size + windows.stride[axis])
            throw ShapeError(fmt::format(
                "{}: expected an output size of more than {} and less than {} along axis {}, got "
                "{}",
                name, default_size - windows.stride[axis], default_size + windows.stride[axis], axis, out[2 + axis]));
    }
    const std::int64_t planes = out[0] * out[1];
    const std::int64_t size = planes == 0 ? 0 : out.numel() / planes, input_size = planes == 0 ? 0 : x.numel() / planes;
    const Tensor flat_index = reshape(indices.to(DType::i64), {planes, input_size});
    const Tensor rows = reshape(x, {planes, input_size});
    const Tensor y = scatter(zeros({planes, size}, {x.dtype(), x.device()}), 1, flat_index, rows.detach());
    // PyTorch: if several maxima go to one index, each gets the whole gradient, since overlapping windows found
    // the same element.
    const Tensor unpooled = attach_backward(
        name, {rows}, y.value(),
        [flat_index = Saved(flat_index), size](const GradientContext& context) {
            const Tensor saved_index = flat_index.get("max_unpool"),
                         valid = (saved_index >= -size) & (saved_index < size);
            return std::vector{where(valid, gather(context.gradient(), 1, where(valid, saved_index, 0)), 0)};
        },
        RuleKind::differentiable);
    return call.result(detail::drop_batch_if(reshape(unpooled, out), detail::is_unbatched(input, N)));
}

}  // namespace

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Pool1dParameters& options, const Dims& output_size) {
    return max_unpool("max_unpool1d", x, indices, options, output_size);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Pool2dParameters& options, const Dims& output_size) {
    return max_unpool("max_unpool2d", x, indices, options, output_size);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Pool3dParameters& options, const Dims& output_size) {
    return max_unpool("max_unpool3d", x, indices, options, output_size);
}

}  // namespace declivity
