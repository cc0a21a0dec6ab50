// Fractional max pooling (Graham 2014): windows of one size whose starts advance by pseudorandom steps.
#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/conv_input.hpp"
#include "pool_windows.hpp"

namespace declivity {
namespace {

/// Window starts of each plane along an axis: floor((i + u) a) - floor(u a) with a = (length - kernel) / (count - 1)
/// and u a random number per plane; the last window ends at the end. u (planes, 1) -> (planes, count), i64.
Tensor begins(const Tensor& u, std::int64_t length, std::int64_t kernel, std::int64_t count) {
    const Device device = u.device();
    const Tensor index = reshape(arange(0, count, 1, {u.dtype(), device}), {1, count});
    const double a = count > 1 ? static_cast<double>(length - kernel) / static_cast<double>(count - 1) : 0;
    const Tensor starts = ((index + u) * a).to(DType::i64) - (u * a).to(DType::i64);
    return where(index == count - 1, length - kernel, starts);
}

template <int N>
MaxPooled fractional(const char* name, const Tensor& input, const FractionalPoolParameters<N>& options,
                     const Tensor& samples, const std::optional<Generator>& generator, bool with_indices) {
    const Dims kernel = dims_of(options.kernel_size);
    const Dims output_size = options.output_size ? dims_of(*options.output_size) : Dims();
    const std::array<double, static_cast<std::size_t>(N)> none{};
    const FunctionCall call(
        name, {{"x", input}, {"samples", samples}},
        {{"kernel_size", kernel}, {"output_size", output_size}, {"output_ratio", options.output_ratio.value_or(none)}});
    call.require_defined({"x"});
    if (options.output_size.has_value() == options.output_ratio.has_value())
        throw ValueError(fmt::format("{}: expected either an output size or an output ratio", name));
    const Tensor x = detail::pool_input(name, input, N);
    ops::require_real(name, "x", x.dtype());
    const std::int64_t planes = x.size(0) * x.size(1);
    Shape out{x.size(0), x.size(1)}, plane;
    for (int axis = 0; axis < N; ++axis) {
        const std::int64_t length = x.shape()[2 + axis];
        const double ratio = options.output_ratio ? (*options.output_ratio)[static_cast<std::size_t>(axis)] : 0;
        if (options.output_ratio && !(ratio > 0 && ratio < 1))
            throw ValueError(fmt::format("{}: expected an output ratio between 0 and 1, got {}", name, ratio));
        const std::int64_t count =
            options.output_ratio ? static_cast<std::int64_t>(static_cast<double>(length) * ratio) : output_size[axis];
        if (kernel[axis] < 1 || count < 1 || count + kernel[axis] - 1 > length)
            throw ShapeError(
                fmt::format("{}: expected an output size of at least 1 and, with the kernel size {}, no more than x "
                            "has, got {} for "
                            "{} elements along axis {}",
                            name, kernel.str(), count, length, axis));
        out.push_back(count);
        plane.push_back(length);
    }
    const DType type = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    Tensor u = samples;
    if (samples.defined()) {
        ops::require_shape(name, "samples", samples.shape(), {x.size(0), x.size(1), N});
        ops::require_real(name, "samples", samples.dtype());
        ops::require_same_device(name, x.device(), samples.device());
        u = samples.detach().to(type);
    } else {
        u = uniform({x.size(0), x.size(1), N}, 0, 1, {type, x.device()}, generator);
    }
    u = reshape(u, {planes, N});
    Tensor indices;
    {
        const NoGrad no_grad;
        // Indices of all elements of all windows: (planes, windows..., elements...).
        Shape shape{planes};
        for (int i = 0; i < 2 * N; ++i) shape.push_back(1);
        std::int64_t windows = 1;
        for (int axis = 0; axis < N; ++axis) {
            // For images the first random number is that of the width.
            const int sample_axis = N == 2 ? 1 - axis : axis;
            Shape begin_shape = shape, element_shape = shape;
            element_shape[0] = 1;
            begin_shape[1 + axis] = out[2 + axis];
            element_shape[1 + N + axis] = kernel[axis];
            windows *= out[2 + axis];
            const Tensor along =
                reshape(begins(slice(u, 1, sample_axis, sample_axis + 1), plane[axis], kernel[axis], out[2 + axis]),
                        begin_shape) +
                reshape(arange(0, kernel[axis], 1, {DType::i64, x.device()}), element_shape);
            indices = indices.defined() ? indices * plane[axis] + along : along;
        }
        indices = reshape(indices, {planes * windows, kernel.numel()});
        const Tensor rows = reshape(x.detach(), {planes, plane.numel()});
        const Tensor window_elements = reshape(gather(rows, 1, reshape(indices, {planes, windows * kernel.numel()})),
                                               {planes * windows, kernel.numel()});
        indices = reshape(gather(indices, 1, argmax(window_elements, 1, true)), out);
    }
    const bool unbatched = detail::is_unbatched(input, N);
    const Tensor values = detail::drop_batch_if(detail::gather_at(x, indices), unbatched);
    if (!with_indices) return {call.result(values), Tensor()};
    const MaxPooled pooled{values, detail::drop_batch_if(indices, unbatched)};
    call.results({pooled.values, pooled.indices});
    return pooled;
}

}  // namespace

Tensor fractional_max_pool2d(const Tensor& x, const FractionalPool2dParameters& options, const Tensor& samples,
                             const std::optional<Generator>& generator) {
    return fractional("fractional_max_pool2d", x, options, samples, generator, false).values;
}
Tensor fractional_max_pool3d(const Tensor& x, const FractionalPool3dParameters& options, const Tensor& samples,
                             const std::optional<Generator>& generator) {
    return fractional("fractional_max_pool3d", x, options, samples, generator, false).values;
}
MaxPooled fractional_max_pool2d_with_indices(const Tensor& x, const FractionalPool2dParameters& options,
                                             const Tensor& samples, const std::optional<Generator>& generator) {
    return fractional("fractional_max_pool2d_with_indices", x, options, samples, generator, true);
}
MaxPooled fractional_max_pool3d_with_indices(const Tensor& x, const FractionalPool3dParameters& options,
                                             const Tensor& samples, const std::optional<Generator>& generator) {
    return fractional("fractional_max_pool3d_with_indices", x, options, samples, generator, true);
}

}  // namespace declivity
