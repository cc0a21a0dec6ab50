// Tensors of random numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <declivity/functions/elementwise.hpp>
#include <declivity/functions/math.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/default_device.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "ops/engine/lazy_array.hpp"
#include "ops/random/random.hpp"

namespace declivity {
namespace {

Device device_of(const TensorOptions& options) { return options.device ? *options.device : default_device(); }

/// Attribute common to all functions in this file.
CallAttribute type_of(const TensorOptions& options) { return {"dtype", options.dtype}; }

void require_floating(std::string_view function, const TensorOptions& options) {
    if (!is_floating(options.dtype))
        throw TypeError(
            fmt::format("{}: expected a floating type, got {} (for integers: uniform(shape, low, high, options), "
                        "rounded towards 0)",
                        function, name_of(options.dtype)));
}

/// Device of a tensor of random numbers.
Device device_for(std::string_view function, const TensorOptions& options, const std::optional<Generator>& generator) {
    if (generator && options.device && !(*options.device == generator->device()))
        throw DeviceError(fmt::format("{}: expected a generator on the tensor's device '{}', got one on '{}'", function,
                                      options.device->name(), generator->device().name()));
    return generator ? generator->device() : device_of(options);
}

/// Random numbers are generated in f32 or f64; other types are converted.
template <class MakeExpression>
Tensor random(std::string_view function, const Shape& shape, const TensorOptions& options,
              const std::optional<Generator>& generator, MakeExpression&& make_expression) {
    const Device device = device_for(function, options, generator);
    const DType dtype = options.dtype == DType::f64 ? DType::f64 : DType::f32;
    ops::require_supported(device, dtype);
    (void)ops::bytes_of(shape, dtype, function);
    const ops::RandomCall call =
        generator ? generator->take(function, dtype, shape) : ops::take_random(device, dtype, shape.numel());
    return Tensor(ops::make_lazy(make_expression(dtype, call), device)).to(options.dtype);
}

/// @throws ValueError unless the type represents the number exactly
void require_holds(std::string_view function, DType dtype, std::int64_t number) {
    const std::int64_t exact = dtype == DType::f64    ? std::int64_t{1} << 53
                               : dtype == DType::f32  ? std::int64_t{1} << 24
                               : dtype == DType::f16  ? std::int64_t{1} << 11
                               : dtype == DType::bf16 ? std::int64_t{1} << 8
                                                      : 0;
    const bool holds = exact != 0 ? number >= -exact && number <= exact : Scalar(number).fits(dtype);
    if (!holds)
        throw ValueError(fmt::format("{}: expected numbers representable in {}, got {} among them", function,
                                     name_of(dtype), number));
}

void require_tensor(std::string_view function, const Tensor& like) {
    if (!like.defined()) throw ValueError(fmt::format("{}: expected a tensor, got an undefined one", function));
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, const TensorOptions& options,
               const std::optional<Generator>& generator) {
    const FunctionCall call("uniform", {}, {{"shape", shape}, {"low", low}, {"high", high}, type_of(options)});
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high))
        throw ValueError(fmt::format("uniform: expected finite bounds, low <= high, got {} and {}", low, high));
    return call.result(
        random("uniform", shape, options, generator, [&](DType dtype, const ops::RandomCall& random_call) {
            return ops::random_uniform(dtype, shape, low, high, random_call);
        }));
}

Tensor normal(const Shape& shape, double mean, double std, const TensorOptions& options,
              const std::optional<Generator>& generator) {
    const FunctionCall call("normal", {}, {{"shape", shape}, {"mean", mean}, {"std", std}, type_of(options)});
    require_floating("normal", options);
    if (!(std >= 0) || !std::isfinite(std) || !std::isfinite(mean))
        throw ValueError(
            fmt::format("normal: expected a finite mean and a std of at least 0, got {} and {}", mean, std));
    return call.result(
        random("normal", shape, options, generator, [&](DType dtype, const ops::RandomCall& random_call) {
            return ops::random_normal(dtype, shape, mean, std, random_call);
        }));
}

Tensor rand(const Shape& shape, const TensorOptions& options, const std::optional<Generator>& generator) {
    const FunctionCall call("rand", {}, {{"shape", shape}, type_of(options)});
    require_floating("rand", options);
    return call.result(random("rand", shape, options, generator, [&](DType dtype, const ops::RandomCall& random_call) {
        return ops::random_uniform(dtype, shape, 0, 1, random_call);
    }));
}

Tensor randn(const Shape& shape, const TensorOptions& options, const std::optional<Generator>& generator) {
    const FunctionCall call("randn", {}, {{"shape", shape}, type_of(options)});
    require_floating("randn", options);
    return call.result(random("randn", shape, options, generator, [&](DType dtype, const ops::RandomCall& random_call) {
        return ops::random_normal(dtype, shape, 0, 1, random_call);
    }));
}

Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options,
                 const std::optional<Generator>& generator) {
    const FunctionCall call("bernoulli", {}, {{"shape", shape}, {"probability", probability}, type_of(options)});
    if (!(probability >= 0 && probability <= 1))
        throw ValueError(fmt::format("bernoulli: expected a probability in [0, 1], got {}", probability));
    return call.result(
        random("bernoulli", shape, options, generator, [&](DType dtype, const ops::RandomCall& random_call) {
            return ops::random_bernoulli(dtype, shape, probability, random_call);
        }));
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, const TensorOptions& options,
               const std::optional<Generator>& generator) {
    const FunctionCall call("randint", {}, {{"low", low}, {"high", high}, {"shape", shape}, type_of(options)});
    constexpr std::uint64_t max_range = std::uint64_t{1} << 48;
    if (low >= high || static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) > max_range)
        throw ValueError(fmt::format(
            "randint: expected low < high, and at most 2^48 numbers between them, got {} and {}", low, high));
    require_holds("randint", options.dtype, low);
    require_holds("randint", options.dtype, high - 1);
    // Two of 24 bits, which floats represent exactly.
    const TensorOptions bit_options{DType::f32, device_for("randint", options, generator)};
    const auto bits = [&] {
        return random("randint", shape, bit_options, generator,
                      [&](DType dtype, const ops::RandomCall& random_call) {
                          return ops::random_uniform(dtype, shape, 0, 0x1p24, random_call);
                      })
            .to(DType::i64);
    };
    const Tensor upper = bits(), lower = bits();
    return call.result((remainder(upper * 0x1000000 + lower, high - low) + low).to(options.dtype));
}

Tensor randperm(std::int64_t n, const TensorOptions& options, const std::optional<Generator>& generator) {
    const FunctionCall call("randperm", {}, {{"n", n}, type_of(options)});
    if (n < 0 || n > std::int64_t{1} << 32)
        throw ValueError(fmt::format("randperm: expected n from 0 to 2^32, got {}", n));
    require_holds("randperm", options.dtype, std::max<std::int64_t>(0, n - 1));
    const Device device = device_for("randperm", options, generator);
    const Generator source = generator ? *generator : Generator::default_of(device);
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    source.draw_on_host("randperm", [&](const ops::RandomPosition& position) {
        // Element i is swapped with one that is not before it, by two 32-bit words.
        std::array<std::uint32_t, 4> words{};
        for (std::uint64_t i = 0; i < order.size(); ++i) {
            if (i % 2 == 0) words = philox_block(position.seed, position.offset + i / 2);
            const std::uint64_t bits = std::uint64_t{words[i % 2 * 2]} << 32 | words[i % 2 * 2 + 1];
            std::swap(order[i], order[i + bits % (order.size() - i)]);
        }
        return (order.size() + 1) / 2;
    });
    return call.result(Tensor::from(order, {n}, device).to(options.dtype));
}

Tensor rand_like(const Tensor& like, const std::optional<Generator>& generator) {
    require_tensor("rand_like", like);
    return rand(like.shape(), {like.dtype(), like.device()}, generator);
}
Tensor randn_like(const Tensor& like, const std::optional<Generator>& generator) {
    require_tensor("randn_like", like);
    return randn(like.shape(), {like.dtype(), like.device()}, generator);
}
Tensor randint_like(const Tensor& like, std::int64_t low, std::int64_t high,
                    const std::optional<Generator>& generator) {
    require_tensor("randint_like", like);
    return randint(low, high, like.shape(), {like.dtype(), like.device()}, generator);
}

}  // namespace declivity
