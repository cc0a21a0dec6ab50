// Average and Lp pooling by the kernels of avg_pool2d: 1-D inputs as images of one row, volumes by their slices and
// then along the depth. The mean over all axes is the mean of the means; its divisor is a product.
#include <algorithm>
#include <cstdlib>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "functions/support/conv_input.hpp"
#include "pool_windows.hpp"

namespace declivity {
namespace detail {
namespace {

/// x (N, C, [D,] H, W), with windows that stay within the ends.
Tensor avg_pool_by_planes(const Tensor& x, const Shape& out, const PoolWindows& windows, bool count_include_pad) {
    const auto size_2d = [&](const Dims& dims, std::int64_t fallback) {
        return Size2(dims.rank() == 1 ? fallback : dims[-2], dims[-1]);
    };
    const Shape& in = x.shape();
    const std::int64_t depth = windows.axes() == 3 ? in[2] : 1, height = windows.axes() == 1 ? 1 : in[-2];
    const Tensor planes = avg_pool_planes(reshape(x, {in[0], in[1] * depth, height, in[-1]}),
                                          {.kernel_size = size_2d(windows.kernel_size, 1),
                                           .stride = size_2d(windows.stride, 1),
                                           .padding = size_2d(windows.padding, 0),
                                           .count_include_pad = count_include_pad});
    if (windows.axes() < 3) return reshape(planes, out);
    return reshape(avg_pool_planes(reshape(planes, {in[0], in[1], depth, out[3] * out[4]}),
                                   {.kernel_size = {windows.kernel_size[0], 1},
                                    .stride = {windows.stride[0], 1},
                                    .padding = {windows.padding[0], 0},
                                    .count_include_pad = count_include_pad}),
                   out);
}

/// Number of elements counted in each window along an axis, shaped to broadcast with the result.
Tensor counts_along(const PoolWindows& windows, int axis, std::int64_t length, std::int64_t count, int rank,
                    DType dtype, const Device& device) {
    const std::int64_t padding = windows.padding[axis], kernel = windows.kernel_size[axis];
    const Tensor begin = arange(0, count, 1, {dtype, device}) * windows.stride[axis] - padding;
    const Tensor counts = windows.count_include_pad ? minimum(begin + kernel, length + padding) - begin
                                                    : minimum(begin + kernel, length) - maximum(begin, 0);
    Shape shape = Dims::filled(rank, 1);
    shape[2 + axis] = count;
    return reshape(counts, shape);
}

/// Sums of integers, divided and truncated.
Tensor integer_avg_pool(const Tensor& x, const Shape& out, const PoolWindows& windows) {
    Tensor sums = x, counts;
    for (int axis = windows.axes() - 1; axis >= 0; --axis) {
        const WindowTable table = strided_windows(windows, axis, x.shape()[2 + axis], out[2 + axis], x.device());
        Shape mask{table.windows, table.size};
        for (int i = 3 + axis; i < x.rank(); ++i) mask.push_back(1);
        sums = sum(where(reshape(table.valid, mask), gather_windows(sums, 2 + axis, table), 0), {3 + axis});
        const Tensor along =
            counts_along(windows, axis, x.shape()[2 + axis], out[2 + axis], x.rank(), DType::i64, x.device());
        counts = counts.defined() ? counts * along : along;
    }
    const std::int64_t divisor = windows.divisor_override;
    const auto divide = [&](const Tensor& total) {
        return divisor != 0 ? floor_divide(total, std::abs(divisor)) : floor_divide(total, counts);
    };
    const Tensor means = where(sums < 0, -divide(-sums), divide(sums));
    return (divisor < 0 ? -means : means).to(x.dtype());
}

Tensor float_avg_pool(const Tensor& x, const Shape& out, const PoolWindows& windows) {
    Dims before = Dims::filled(x.rank(), 0), after = before;
    bool extends = false;
    for (int axis = 0; axis < windows.axes(); ++axis) {
        const std::int64_t needed = (out[2 + axis] - 1) * windows.stride[axis] + windows.kernel_size[axis];
        after[2 + axis] = std::max<std::int64_t>(0, needed - 2 * windows.padding[axis] - x.shape()[2 + axis]);
        extends = extends || after[2 + axis] > 0;
    }
    if (!extends && windows.divisor_override == 0)
        return avg_pool_by_planes(x, out, windows, windows.count_include_pad);
    const Tensor means = avg_pool_by_planes(extends ? pad(x, before, after) : x, out, windows, true);
    const auto area = static_cast<double>(windows.kernel_size.numel());
    if (windows.divisor_override != 0) return means * (area / static_cast<double>(windows.divisor_override));
    Tensor factors;
    for (int axis = 0; axis < windows.axes(); ++axis) {
        const Tensor along =
            static_cast<double>(windows.kernel_size[axis]) /
            counts_along(windows, axis, x.shape()[2 + axis], out[2 + axis], x.rank(), x.dtype(), x.device());
        factors = factors.defined() ? factors * along : along;
    }
    return means * factors;
}

}  // namespace

Tensor avg_pooled(const char* name, const Tensor& input, const PoolWindows& windows) {
    const Tensor x = pool_input(name, input, windows.axes());
    if (!is_integer(x.dtype())) ops::require_real(name, "x", x.dtype());
    if (windows.dilated())
        throw ValueError(fmt::format("{}: expected a dilation of 1, got {}", name, windows.dilation.str()));
    const Shape out = pooled_shape(name, x.shape(), windows);
    const bool plain = windows.axes() < 3 && !windows.ceil_mode && windows.divisor_override == 0;
    const Tensor y =
        is_integer(x.dtype()) ? integer_avg_pool(x, out, windows)
        : plain               ? float_avg_pool(x, out, windows)
                              : decomposed_in_f32(
                      [&](const std::vector<Tensor>& in) { return std::vector{float_avg_pool(in[0], out, windows)}; },
                      {x})[0];
    return drop_batch_if(y, is_unbatched(input, windows.axes()));
}

}  // namespace detail

namespace {

template <int N>
Tensor avg_pool(const char* name, const Tensor& x, const PoolParameters<N>& options) {
    const Dims kernel = dims_of(options.kernel_size), stride = dims_of(options.stride),
               padding = dims_of(options.padding);
    const FunctionCall call(name, {{"x", x}},
                            {{"kernel_size", kernel},
                             {"stride", stride},
                             {"padding", padding},
                             {"ceil_mode", options.ceil_mode},
                             {"count_include_pad", options.count_include_pad},
                             {"divisor_override", options.divisor_override}});
    call.require_defined({"x"});
    return call.result(detail::avg_pooled(name, x, options));
}

template <int N>
Tensor lp_pool(const char* name, const Tensor& x, double norm_type, const PoolParameters<N>& options) {
    const Dims kernel = dims_of(options.kernel_size), stride = dims_of(options.stride);
    const FunctionCall call(
        name, {{"x", x}},
        {{"norm_type", norm_type}, {"kernel_size", kernel}, {"stride", stride}, {"ceil_mode", options.ceil_mode}});
    call.require_defined({"x"});
    ops::require_real(name, "x", x.dtype());
    const detail::PoolWindows windows(options);
    if (windows.is_padded() || windows.dilated())
        throw ValueError(fmt::format("{}: expected no padding and no dilation, got {} and {}", name,
                                     windows.padding.str(), windows.dilation.str()));
    if (norm_type == 0) throw ValueError(fmt::format("{}: expected a norm type other than 0", name));
    (void)detail::pooled_shape(name, detail::pool_input(name, x, N).shape(), windows);
    return call.result(detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& in) {
            const Tensor means = detail::avg_pooled(name, pow(in[0], norm_type), windows);
            // Negative means of odd powers have no root.
            return std::vector{
                pow(sign(means) * relu(abs(means)) * static_cast<double>(windows.kernel_size.numel()), 1 / norm_type)};
        },
        {x})[0]);
}

}  // namespace

Tensor avg_pool1d(const Tensor& x, const Pool1dParameters& options) { return avg_pool("avg_pool1d", x, options); }
Tensor avg_pool2d(const Tensor& x, const Pool2dParameters& options) { return avg_pool("avg_pool2d", x, options); }
Tensor avg_pool3d(const Tensor& x, const Pool3dParameters& options) { return avg_pool("avg_pool3d", x, options); }

Tensor lp_pool1d(const Tensor& x, double norm_type, const Pool1dParameters& options) {
    return lp_pool("lp_pool1d", x, norm_type, options);
}
Tensor lp_pool2d(const Tensor& x, double norm_type, const Pool2dParameters& options) {
    return lp_pool("lp_pool2d", x, norm_type, options);
}
Tensor lp_pool3d(const Tensor& x, double norm_type, const Pool3dParameters& options) {
    return lp_pool("lp_pool3d", x, norm_type, options);
}

}  // namespace declivity
