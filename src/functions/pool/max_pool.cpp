// Max pooling of one to three axes. Plain windows use the kernels of max_pool2d: 1-D inputs as images of one row,
// volumes by their slices and then along the depth; other windows use index tables.
#include <algorithm>
#include <limits>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/conv_input.hpp"
#include "pool_windows.hpp"

namespace declivity {
namespace detail {
namespace {

/// Converts flat indices in padded planes to indices in x.
Tensor unpadded_indices(const Tensor& indices, std::int64_t from, std::int64_t to) {
    return from == to ? indices : indices - floor_divide(indices, from) * (from - to);
}

/// x (N, C, [D,] H, W), with windows that stay within the ends
MaxPooled max_pool_by_planes(const Tensor& x, const Shape& out, const PoolWindows& windows, bool with_indices) {
    const auto last_two = [](const Dims& dims) { return Size2(dims.rank() == 1 ? 1 : dims[-2], dims[-1]); };
    const auto size_2d = [&](const Dims& dims, std::int64_t fallback) {
        return dims.rank() == 1 ? Size2(fallback, dims[0]) : last_two(dims);
    };
    const Shape& in = x.shape();
    const bool line = windows.axes() == 1, volume = windows.axes() == 3;
    const std::int64_t depth = volume ? in[2] : 1, height = line ? 1 : in[-2];
    const MaxPooled planes = max_pool_planes(reshape(x, {in[0], in[1] * depth, height, in[-1]}),
                                             {.kernel_size = size_2d(windows.kernel_size, 1),
                                              .stride = size_2d(windows.stride, 1),
                                              .padding = size_2d(windows.padding, 0)});
    if (!volume)
        return {reshape(planes.values, out), with_indices ? reshape(planes.indices.to(DType::i64), out) : Tensor()};
    const std::int64_t area = out[3] * out[4];
    const MaxPooled volumes = max_pool_planes(reshape(planes.values, {in[0], in[1], depth, area}),
                                              {.kernel_size = {windows.kernel_size[0], 1},
                                               .stride = {windows.stride[0], 1},
                                               .padding = {windows.padding[0], 0}});
    MaxPooled pooled{reshape(volumes.values, out), Tensor()};
    if (!with_indices) return pooled;
    // Slice of each maximum, and its index in the slice.
    const Tensor slice_indices = reshape(volumes.indices.to(DType::i64), {in[0], in[1], out[2], area});
    const Tensor plane_indices =
        gather_at(reshape(planes.indices.to(DType::i64), {in[0], in[1], depth, area}), slice_indices);
    pooled.indices = reshape(floor_divide(slice_indices, area) * (in[3] * in[4]) + plane_indices, out);
    return pooled;
}

}  // namespace

MaxPooled max_pooled(const char* name, const Tensor& input, const PoolWindows& windows, bool with_indices) {
    const Tensor x = pool_input(name, input, windows.axes());
    if (!is_integer(x.dtype())) ops::require_real(name, "x", x.dtype());
    const Shape out = pooled_shape(name, x.shape(), windows);
    const bool unbatched = is_unbatched(input, windows.axes());
    const auto unbatch = [&](const MaxPooled& pooled) {
        return MaxPooled{drop_batch_if(pooled.values, unbatched),
                         pooled.indices.defined() ? drop_batch_if(pooled.indices, unbatched) : pooled.indices};
    };
    if (windows.dilated() || is_integer(x.dtype())) {
        std::vector<WindowTable> tables;
        for (int axis = 0; axis < windows.axes(); ++axis)
            tables.push_back(strided_windows(windows, axis, x.shape()[2 + axis], out[2 + axis], x.device()));
        return unbatch(max_by_tables(x, tables));
    }
    // The part of a last window beyond the end is padded with the lowest value.
    Dims before = Dims::filled(x.rank(), 0), after = before;
    bool extends = false;
    for (int axis = 0; axis < windows.axes(); ++axis) {
        const std::int64_t needed = (out[2 + axis] - 1) * windows.stride[axis] + windows.kernel_size[axis];
        after[2 + axis] = std::max<std::int64_t>(0, needed - 2 * windows.padding[axis] - x.shape()[2 + axis]);
        extends = extends || after[2 + axis] > 0;
    }
    if (!extends) return unbatch(max_pool_by_planes(x, out, windows, with_indices));
    const Tensor padded = pad(x, before, after, -std::numeric_limits<double>::infinity());
    MaxPooled pooled = max_pool_by_planes(padded, out, windows, with_indices);
    if (with_indices) {
        const Shape &from = padded.shape(), &to = x.shape();
        if (windows.axes() == 3) {
            const std::int64_t area = from[3] * from[4];
            const Tensor slices = floor_divide(pooled.indices, area);
            pooled.indices =
                slices * (to[3] * to[4]) + unpadded_indices(pooled.indices - slices * area, from[4], to[4]);
        } else {
            pooled.indices = unpadded_indices(pooled.indices, from[-1], to[-1]);
        }
    }
    return unbatch(pooled);
}

}  // namespace detail

namespace {

template <int N>
MaxPooled max_pool(const char* name, const Tensor& x, const PoolParameters<N>& options, bool with_indices) {
    const Dims kernel = dims_of(options.kernel_size), stride = dims_of(options.stride),
               padding = dims_of(options.padding), dilation = dims_of(options.dilation);
    const FunctionCall call(name, {{"x", x}},
                            {{"kernel_size", kernel},
                             {"stride", stride},
                             {"padding", padding},
                             {"dilation", dilation},
                             {"ceil_mode", options.ceil_mode}});
    call.require_defined({"x"});
    MaxPooled pooled = detail::max_pooled(name, x, options, with_indices);
    if (with_indices) call.results({pooled.values, pooled.indices});
    else pooled.values = call.result(pooled.values);
    return pooled;
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const Pool1dParameters& options) {
    return max_pool("max_pool1d", x, options, false).values;
}
Tensor max_pool2d(const Tensor& x, const Pool2dParameters& options) {
    return max_pool("max_pool2d", x, options, false).values;
}
Tensor max_pool3d(const Tensor& x, const Pool3dParameters& options) {
    return max_pool("max_pool3d", x, options, false).values;
}
MaxPooled max_pool1d_with_indices(const Tensor& x, const Pool1dParameters& options) {
    return max_pool("max_pool1d_with_indices", x, options, true);
}
MaxPooled max_pool2d_with_indices(const Tensor& x, const Pool2dParameters& options) {
    return max_pool("max_pool2d_with_indices", x, options, true);
}
MaxPooled max_pool3d_with_indices(const Tensor& x, const Pool3dParameters& options) {
    return max_pool("max_pool3d_with_indices", x, options, true);
}

}  // namespace declivity
