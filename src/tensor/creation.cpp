#include <declivity/tensor/creation.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/ops/arange.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor_state.hpp"
#include "ops/engine/value.hpp"
#include "ops/random.hpp"

namespace declivity {
namespace {

Device device_of(const TensorOptions& options) { return options.device ? *options.device : default_device(); }

/// The attribute that all functions here have beside their own.
CallAttribute type_of(const TensorOptions& options) { return {"dtype", options.dtype}; }

ops::View make(std::string_view function, const Shape& shape, const TensorOptions& options) {
    return ops::View::make(device_of(options), options.dtype, shape, BufferUse::compute, function);
}

Tensor filled(std::string_view function, const Shape& shape, const Scalar& value, const TensorOptions& options) {
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
    const Device device = device_of(options);
    const DType dtype = options.dtype == DType::f64 ? DType::f64 : DType::f32;
    ops::require_supported(device, dtype);
    (void)ops::bytes_of(shape, dtype, function);
    return Tensor(ops::value_of(numbers(dtype, ops::take_random(device, dtype, shape.numel())), device))
        .to(options.dtype);
}

}  // namespace

Tensor full(const Shape& shape, Scalar value, const TensorOptions& options) {
    const FunctionCall call("full", {}, {{"shape", shape}, {"value", value}, type_of(options)});
    return call.result(filled("full", shape, value, options));
}

Tensor zeros(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("zeros", {}, {{"shape", shape}, type_of(options)});
    return call.result(filled("zeros", shape, 0, options));
}

Tensor ones(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("ones", {}, {{"shape", shape}, type_of(options)});
    return call.result(filled("ones", shape, 1, options));
}

Tensor zeros_like(const Tensor& like) {
    const FunctionCall call("zeros_like", {{"like", like}});
    call.require_defined({"like"});
    return call.result(filled("zeros_like", like.shape(), 0, {like.dtype(), like.device()}));
}

Tensor ones_like(const Tensor& like) {
    const FunctionCall call("ones_like", {{"like", like}});
    call.require_defined({"like"});
    return call.result(filled("ones_like", like.shape(), 1, {like.dtype(), like.device()}));
}

namespace {

std::int64_t count_of(const Scalar& start, const Scalar& end, const Scalar& step) {
    const auto numbers = {start, end, step};
    if (step.to_double() == 0 ||
        !std::ranges::all_of(numbers, [](const Scalar& n) { return std::isfinite(n.to_double()); }))
        throw ValueError(fmt::format("arange: wants finite bounds and a finite step other than 0, got {}, {}, {}",
                                     start.str(), end.str(), step.str()));
    const double steps = std::max(0.0, std::ceil((end.to_double() - start.to_double()) / step.to_double()));
    if (!(steps < 0x1p63))
        throw ValueError(
            fmt::format("arange: wants a number of elements that fits into 63 bits, got {} of them", steps));
    const auto whole = [](const Scalar& n) { return !n.is_floating() && n.fits(DType::i64); };
    if (steps == 0 || !std::ranges::all_of(numbers, whole)) return static_cast<std::int64_t>(steps);
    // Where doubles would round: the distance fits into 64 bits without a sign.
    const bool up = step.to<std::int64_t>() > 0;
    const std::uint64_t distance = up ? end.to<std::uint64_t>() - start.to<std::uint64_t>()
                                      : start.to<std::uint64_t>() - end.to<std::uint64_t>(),
                        by = up ? step.to<std::uint64_t>() : (-step).to<std::uint64_t>();
    return static_cast<std::int64_t>((distance - 1) / by + 1);
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& options) {
    const FunctionCall call("arange", {}, {{"start", start}, {"end", end}, {"step", step}, type_of(options)});
    const std::int64_t count = count_of(start, end, step);
    TensorOptions computed = options;
    computed.dtype = compute_type(options.dtype);
    const ops::View out = make("arange", {count}, computed);
    ops::arange(out, start, step);
    return call.result(Tensor(out).to(options.dtype));
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
    const FunctionCall call("uniform", {}, {{"shape", shape}, {"low", low}, {"high", high}, type_of(options)});
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high))
        throw ValueError(fmt::format("uniform: wants finite bounds, low <= high, got {} and {}", low, high));
    return call.result(random("uniform", shape, options, [&](DType dtype, const ops::RandomCall& numbers) {
        return ops::random_uniform(dtype, shape, low, high, numbers);
    }));
}

Tensor normal(const Shape& shape, double mean, double std, const TensorOptions& options) {
    const FunctionCall call("normal", {}, {{"shape", shape}, {"mean", mean}, {"std", std}, type_of(options)});
    require_floating("normal", options);
    if (!(std >= 0) || !std::isfinite(std) || !std::isfinite(mean))
        throw ValueError(fmt::format("normal: wants a finite mean and a std of at least 0, got {} and {}", mean, std));
    return call.result(random("normal", shape, options, [&](DType dtype, const ops::RandomCall& numbers) {
        return ops::random_normal(dtype, shape, mean, std, numbers);
    }));
}

Tensor rand(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("rand", {}, {{"shape", shape}, type_of(options)});
    require_floating("rand", options);
    return call.result(random("rand", shape, options, [&](DType dtype, const ops::RandomCall& numbers) {
        return ops::random_uniform(dtype, shape, 0, 1, numbers);
    }));
}

Tensor randn(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("randn", {}, {{"shape", shape}, type_of(options)});
    require_floating("randn", options);
    return call.result(random("randn", shape, options, [&](DType dtype, const ops::RandomCall& numbers) {
        return ops::random_normal(dtype, shape, 0, 1, numbers);
    }));
}

Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options) {
    const FunctionCall call("bernoulli", {}, {{"shape", shape}, {"probability", probability}, type_of(options)});
    if (!(probability >= 0 && probability <= 1))
        throw ValueError(fmt::format("bernoulli: wants a probability in [0, 1], got {}", probability));
    return call.result(random("bernoulli", shape, options, [&](DType dtype, const ops::RandomCall& numbers) {
        return ops::random_bernoulli(dtype, shape, probability, numbers);
    }));
}

}  // namespace declivity
