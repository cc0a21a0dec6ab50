// Adaptive pooling to a given output size. Equal windows use plain pooling.
#include <algorithm>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "functions/support/conv_input.hpp"
#include "ops/support/int32_range.hpp"
#include "pool_windows.hpp"

namespace declivity {
namespace {

/// Output sizes for a batch.
Dims checked(const char* name, const Tensor& x, const Dims& output_size) {
    Dims sizes = output_size;
    ops::check_int32_range(name, "the output size", output_size);
    for (int axis = 0; axis < sizes.rank(); ++axis) {
        const std::int64_t length = x.shape()[2 + axis];
        if (sizes[axis] == -1) sizes[axis] = length;
        if (length < 1)
            throw ShapeError(fmt::format("{}: expected elements along each axis, got {}", name, x.shape().str()));
        if (sizes[axis] < 1)
            throw ValueError(fmt::format("{}: expected an output size of at least 1, or -1 for that of x, got {}", name,
                                         output_size.str()));
    }
    return sizes;
}

bool all_equal(const Tensor& x, const Dims& sizes) {
    for (int axis = 0; axis < sizes.rank(); ++axis)
        if (x.shape()[2 + axis] % sizes[axis] != 0) return false;
    return true;
}

/// Means of equal windows: each axis is split into windows and their elements.
Tensor equal_means(const Tensor& x, const Dims& sizes) {
    Shape shape{x.size(0), x.size(1)}, out = shape;
    Dims window_axes;
    for (int axis = 0; axis < sizes.rank(); ++axis) {
        shape.push_back(sizes[axis]);
        window_axes.push_back(shape.rank());
        shape.push_back(x.shape()[2 + axis] / sizes[axis]);
        out.push_back(sizes[axis]);
    }
    return reshape(mean(reshape(x, shape), window_axes), out);
}

Tensor means(Tensor x, const Dims& sizes) {
    for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
        if (x.shape()[2 + axis] == sizes[axis]) continue;
        const detail::WindowTable table = detail::adaptive_windows(x.shape()[2 + axis], sizes[axis], x.device());
        Shape mask{table.windows, table.size}, count_shape{table.windows};
        for (int i = 3 + axis; i < x.rank(); ++i) {
            mask.push_back(1);
            count_shape.push_back(1);
        }
        const Tensor counts = reshape(sum(table.valid.to(x.dtype()), {1}), count_shape);
        x = sum(where(reshape(table.valid, mask), detail::gather_windows(x, 2 + axis, table), 0), {3 + axis}) / counts;
    }
    return x;
}

Tensor adaptive_mean(const char* name, const Tensor& input, const Dims& output_size) {
    const FunctionCall call(name, {{"x", input}}, {{"output_size", output_size}});
    call.require_defined({"x"});
    const int axes = output_size.rank();
    const Tensor x = detail::pool_input(name, input, axes);
    ops::require_real(name, "x", x.dtype());
    const Dims sizes = checked(name, x, output_size);
    const Tensor y = all_equal(x, sizes)
                         ? equal_means(x, sizes)
                         : detail::decomposed_in_f32(
                               [&](const std::vector<Tensor>& in) { return std::vector{means(in[0], sizes)}; }, {x})[0];
    return call.result(detail::drop_batch_if(y, detail::is_unbatched(input, axes)));
}

template <int N>
PoolParameters<N> equal_windows(const Tensor& x, const Dims& sizes) {
    const auto window = [&](int axis) { return x.shape()[2 + axis] / sizes[axis]; };
    if constexpr (N == 1) return {.kernel_size = window(0)};
    else if constexpr (N == 2) return {.kernel_size = {window(0), window(1)}};
    else return {.kernel_size = {window(0), window(1), window(2)}};
}

template <int N>
MaxPooled adaptive_max(const char* name, const Tensor& input, const Dims& output_size, bool with_indices) {
    const FunctionCall call(name, {{"x", input}}, {{"output_size", output_size}});
    call.require_defined({"x"});
    const Tensor x = detail::pool_input(name, input, N);
    ops::require_real(name, "x", x.dtype());
    const Dims sizes = checked(name, x, output_size);
    MaxPooled pooled;
    if (all_equal(x, sizes)) {
        pooled = detail::max_pooled(name, x, equal_windows<N>(x, sizes), with_indices);
    } else {
        std::vector<detail::WindowTable> tables;
        for (int axis = 0; axis < N; ++axis)
            tables.push_back(detail::adaptive_windows(x.shape()[2 + axis], sizes[axis], x.device()));
        pooled = detail::max_by_tables(x, tables);
    }
    const bool unbatched = detail::is_unbatched(input, N);
    pooled.values = detail::drop_batch_if(pooled.values, unbatched);
    if (!with_indices) return {call.result(pooled.values), Tensor()};
    pooled.indices = detail::drop_batch_if(pooled.indices, unbatched);
    call.results({pooled.values, pooled.indices});
    return pooled;
}

}  // namespace

Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output_size) {
    return adaptive_mean("adaptive_avg_pool1d", x, output_size);
}
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output_size) {
    return adaptive_mean("adaptive_avg_pool2d", x, dims_of(output_size));
}
Tensor adaptive_avg_pool3d(const Tensor& x, Size3 output_size) {
    return adaptive_mean("adaptive_avg_pool3d", x, dims_of(output_size));
}
Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output_size) {
    return adaptive_max<1>("adaptive_max_pool1d", x, output_size, false).values;
}
Tensor adaptive_max_pool2d(const Tensor& x, Size2 output_size) {
    return adaptive_max<2>("adaptive_max_pool2d", x, dims_of(output_size), false).values;
}
Tensor adaptive_max_pool3d(const Tensor& x, Size3 output_size) {
    return adaptive_max<3>("adaptive_max_pool3d", x, dims_of(output_size), false).values;
}
MaxPooled adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output_size) {
    return adaptive_max<1>("adaptive_max_pool1d_with_indices", x, output_size, true);
}
MaxPooled adaptive_max_pool2d_with_indices(const Tensor& x, Size2 output_size) {
    return adaptive_max<2>("adaptive_max_pool2d_with_indices", x, dims_of(output_size), true);
}
MaxPooled adaptive_max_pool3d_with_indices(const Tensor& x, Size3 output_size) {
    return adaptive_max<3>("adaptive_max_pool3d_with_indices", x, dims_of(output_size), true);
}

}  // namespace declivity
