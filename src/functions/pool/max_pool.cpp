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
Tensor narrowed(const Tensor& places, std::int64_t from, std::int64_t to) {
    return from == to ? places : places - floor_divide(places, from) * (from - to);
}

/// x (N, C, [D,] H, W), with windows that stay within the ends. @param lines of the window along H and W
MaxPooled by_kernels(const Tensor& x, const Shape& out, const PoolWindows& windows, bool with_indices) {
    const auto last_two = [](const Dims& of) { return Size2(of.rank() == 1 ? 1 : of[-2], of[-1]); };
    const auto none_above = [&](const Dims& of, std::int64_t none) {
        return of.rank() == 1 ? Size2(none, of[0]) : last_two(of);
    };
    const Shape& in = x.shape();
    const bool line = windows.axes() == 1, volume = windows.axes() == 3;
    const std::int64_t depth = volume ? in[2] : 1, height = line ? 1 : in[-2];
    const MaxPooled planes = max_pool_planes(reshape(x, {in[0], in[1] * depth, height, in[-1]}),
                                             {.kernel_size = none_above(windows.kernel_size, 1),
                                              .stride = none_above(windows.stride, 1),
                                              .padding = none_above(windows.padding, 0)});
    if (!volume)
        return {reshape(planes.values, out), with_indices ? reshape(planes.indices.to(DType::i64), out) : Tensor()};
    const std::int64_t area = out[3] * out[4];
    const MaxPooled volumes = max_pool_planes(reshape(planes.values, {in[0], in[1], depth, area}),
                                              {.kernel_size = {windows.kernel_size[0], 1},
                                               .stride = {windows.stride[0], 1},
                                               .padding = {windows.padding[0], 0}});
    MaxPooled both{reshape(volumes.values, out), Tensor()};
    if (!with_indices) return both;
    // Slice of each maximum, and its index in the slice.
    const Tensor of_slices = reshape(volumes.indices.to(DType::i64), {in[0], in[1], out[2], area});
    const Tensor within = at_places(reshape(planes.indices.to(DType::i64), {in[0], in[1], depth, area}), of_slices);
    both.indices = reshape(floor_divide(of_slices, area) * (in[3] * in[4]) + within, out);
    return both;
}

}  // namespace

MaxPooled max_pooled(const char* name, const Tensor& given, const PoolWindows& windows, bool with_indices) {
    const Tensor x = pool_input(name, given, windows.axes());
    if (!is_integer(x.dtype())) ops::require_real(name, "x", x.dtype());
    const Shape out = pooled_shape(name, x.shape(), windows);
    const bool single = is_single(given, windows.axes());
    const auto returned = [&](const MaxPooled& both) {
        return MaxPooled{as_given(both.values, single),
                         both.indices.defined() ? as_given(both.indices, single) : both.indices};
    };
    if (windows.dilated() || is_integer(x.dtype())) {
        std::vector<WindowTable> tables;
        for (int axis = 0; axis < windows.axes(); ++axis)
            tables.push_back(moved_windows(windows, axis, x.shape()[2 + axis], out[2 + axis], x.device()));
        return returned(max_by_tables(x, tables));
    }
    // The part of a last window beyond the end is padded with the lowest value.
    Dims before = Dims::filled(x.rank(), 0), after = before;
    bool over = false;
    for (int axis = 0; axis < windows.axes(); ++axis) {
        const std::int64_t wanted = (out[2 + axis] - 1) * windows.stride[axis] + windows.kernel_size[axis];
        after[2 + axis] = std::max<std::int64_t>(0, wanted - 2 * windows.padding[axis] - x.shape()[2 + axis]);
        over = over || after[2 + axis] > 0;
    }
    if (!over) return returned(by_kernels(x, out, windows, with_indices));
    const Tensor longer = pad(x, before, after, -std::numeric_limits<double>::infinity());
    MaxPooled both = by_kernels(longer, out, windows, with_indices);
    if (with_indices) {
        const Shape &from = longer.shape(), &to = x.shape();
        if (windows.axes() == 3) {
            const std::int64_t area = from[3] * from[4];
            const Tensor slices = floor_divide(both.indices, area);
            both.indices = slices * (to[3] * to[4]) + narrowed(both.indices - slices * area, from[4], to[4]);
        } else {
            both.indices = narrowed(both.indices, from[-1], to[-1]);
        }
    }
    return returned(both);
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
    MaxPooled both = detail::max_pooled(name, x, options, with_indices);
    if (with_indices) call.results({both.values, both.indices});
    else both.values = call.result(both.values);
    return both;
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
