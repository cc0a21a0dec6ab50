#include <declivity/tensor/creation.hpp>

#include <cmath>

#include <declivity/ops/arange.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "tensor_state.hpp"
#include "ops/engine/value.hpp"
#include "ops/random.hpp"

namespace declivity {
namespace {

ops::View make(std::string_view function, const Shape& shape, const TensorOptions& options) {
    return ops::View::make(options.device ? *options.device : default_device(), options.dtype, shape,
                           BufferUse::compute, function);
}

Tensor filled(std::string_view function, const Shape& shape, double value, const TensorOptions& options) {
    const ops::View out = make(function, shape, options);
    ops::fill(out, value, function);
    return Tensor(out);
}

void require_floating(std::string_view function, const TensorOptions& options) {
    if (!is_floating(options.dtype))
        throw TypeError(fmt::format(
            "{}: wants a floating type, got {} (whole numbers: uniform(shape, low, high, options), rounded towards 0)",
            function, name_of(options.dtype)));
}

/// Random numbers are made in f32 or f64; other types are converted.
template <class Numbers>
Tensor random(std::string_view function, const Shape& shape, const TensorOptions& options, Numbers&& numbers) {
    const Device device = options.device ? *options.device : default_device();
    const DType dtype = options.dtype == DType::f64 ? DType::f64 : DType::f32;
    ops::require_supported(device, dtype);
    (void)ops::bytes_of(shape, dtype, function);
    return Tensor(ops::value_of(numbers(dtype, ops::take_random(device, dtype, shape.numel())), device))
        .to(options.dtype);
}

}  // namespace

Tensor full(const Shape& shape, double value, const TensorOptions& options) {
    return filled("full", shape, value, options);
}

Tensor zeros(const Shape& shape, const TensorOptions& options) { return filled("zeros", shape, 0, options); }
Tensor ones(const Shape& shape, const TensorOptions& options) { return filled("ones", shape, 1, options); }

Tensor zeros_like(const Tensor& like) {
    detail::require_defined("zeros_like", like);
    return zeros(like.shape(), {like.dtype(), like.device()});
}

Tensor ones_like(const Tensor& like) {
    detail::require_defined("ones_like", like);
    return ones(like.shape(), {like.dtype(), like.device()});
}

Tensor arange(double start, double end, double step, const TensorOptions& options) {
    if (step == 0 || !std::isfinite(step) || !std::isfinite(start) || !std::isfinite(end))
        throw ValueError(fmt::format("arange: wants finite bounds and a finite step other than 0, got {}, {}, {}",
                                     start, end, step));
    const double steps = std::max(0.0, std::ceil((end - start) / step));
    if (!(steps < 0x1p63))
        throw ValueError(
            fmt::format("arange: wants a number of elements that fits into 63 bits, got {} of them", steps));
    const auto count = static_cast<std::int64_t>(steps);
    TensorOptions computed = options;
    computed.dtype = compute_type(options.dtype);
    const ops::View out = make("arange", {count}, computed);
    ops::arange(out, start, step);
    return Tensor(out).to(options.dtype);
}

void manual_seed(std::uint64_t seed) { ops::seed_all(seed); }

RandomState random_state(const Device& device) {
    const auto position = ops::random_position(device);
    return {position.seed, position.offset};
}

void set_random_state(const Device& device, const RandomState& state) {
    ops::set_random_position(device, {state.seed, state.offset});
}

Tensor uniform(const Shape& shape, double low, double high, const TensorOptions& options) {
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high))
        throw ValueError(fmt::format("uniform: wants finite bounds, low <= high, got {} and {}", low, high));
    return random("uniform", shape, options, [&](DType dtype, const ops::RandomCall& call) {
        return ops::random_uniform(dtype, shape, low, high, call);
    });
}

Tensor normal(const Shape& shape, double mean, double std, const TensorOptions& options) {
    require_floating("normal", options);
    if (!(std >= 0) || !std::isfinite(std) || !std::isfinite(mean))
        throw ValueError(fmt::format("normal: wants a finite mean and a std of at least 0, got {} and {}", mean, std));
    return random("normal", shape, options, [&](DType dtype, const ops::RandomCall& call) {
        return ops::random_normal(dtype, shape, mean, std, call);
    });
}

Tensor rand(const Shape& shape, const TensorOptions& options) {
    require_floating("rand", options);
    return random("rand", shape, options, [&](DType dtype, const ops::RandomCall& call) {
        return ops::random_uniform(dtype, shape, 0, 1, call);
    });
}

Tensor randn(const Shape& shape, const TensorOptions& options) {
    require_floating("randn", options);
    return random("randn", shape, options, [&](DType dtype, const ops::RandomCall& call) {
        return ops::random_normal(dtype, shape, 0, 1, call);
    });
}

Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options) {
    if (!(probability >= 0 && probability <= 1))
        throw ValueError(fmt::format("bernoulli: wants a probability in [0, 1], got {}", probability));
    return random("bernoulli", shape, options, [&](DType dtype, const ops::RandomCall& call) {
        return ops::random_bernoulli(dtype, shape, probability, call);
    });
}

}  // namespace declivity
