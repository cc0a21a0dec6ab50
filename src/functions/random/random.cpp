#include <declivity/functions/random.hpp>

#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/random_distributions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

using MaybeGenerator = std::optional<Generator>;

CallAttribute type_of(const TensorOptions& options) { return {"dtype", options.dtype}; }

void require_type(const char* function, DType dtype) {
    if (!is_floating(dtype))
        throw TypeError(fmt::format("{}: expected f32, f64, f16 or bf16, got {}", function, name_of(dtype)));
}

void require_above_0(const char* function, const char* name, double value) {
    if (!(value > 0) || !std::isfinite(value))
        throw ValueError(fmt::format("{}: expected a finite {} above 0, got {}", function, name, value));
}

void require_finite(const char* function, const char* name, double value) {
    if (!std::isfinite(value)) throw ValueError(fmt::format("{}: expected a finite {}, got {}", function, name, value));
}

/// Options for the type in which numbers are computed.
TensorOptions compute_options(const TensorOptions& options) { return {compute_type(options.dtype), options.device}; }

/// A parameter in the type of the computation, dense, without a graph.
Tensor parameter(const Tensor& x) { return x.detach().to(compute_type(x.dtype())); }

TensorOptions like(const Tensor& x) { return {compute_type(x.dtype()), x.device()}; }

ops::RandomCall random_call(const char* function, const Tensor& x, DType dtype, std::int64_t count,
                            const MaybeGenerator& generator) {
    Shape shape = x.shape();
    shape.push_back(count);
    (void)ops::bytes_of(shape, dtype, function);
    if (!generator) return ops::take_random(x.device(), dtype, shape.numel());
    ops::require_same_device(function, x.device(), generator->device());
    return generator->take(function, dtype, shape);
}

/// Uniform in (0, 1) from two draws, with finer steps towards 0: the smallest value decides in a selection among many.
Tensor fine_uniform(const Shape& shape, const TensorOptions& options, const MaybeGenerator& generator) {
    const bool is_f64 = options.dtype == DType::f64;
    const double step = is_f64 ? 0x1p-53 : 0x1p-24;
    const Tensor coarse = rand(shape, options, generator), fine = rand(shape, options, generator);
    return minimum(coarse + (fine + step / 2) * step, 1 - step);
}

Tensor gumbel_noise(const Shape& shape, const TensorOptions& options, const MaybeGenerator& generator) {
    return -log(-log1p(-fine_uniform(shape, options, generator)));
}

Tensor log_gamma_draw(const char* function, const Tensor& concentration, bool logarithm,
                      const MaybeGenerator& generator) {
    const Tensor alpha = parameter(concentration);
    const ops::RandomCall random = random_call(function, alpha, alpha.dtype(), ops::kRandomGammaNumbers, generator);
    const ops::View out = ops::View::make(alpha.device(), alpha.dtype(), alpha.shape());
    ops::random_gamma(function, alpha.dense_view(), logarithm, random, out);
    return Tensor(out);
}

Shape common_shape(const char* function, const Tensor& a, const Tensor& b) {
    ops::require_same_device(function, a.device(), b.device());
    return broadcast_shapes(function, a.shape(), b.shape());
}

}  // namespace

Tensor exponential(const Shape& shape, double rate, const TensorOptions& options, const MaybeGenerator& generator) {
    const FunctionCall call("exponential", {}, {{"shape", shape}, {"rate", rate}, type_of(options)});
    require_type("exponential", options.dtype);
    require_above_0("exponential", "rate", rate);
    return call.result((log1p(-rand(shape, compute_options(options), generator)) / -rate).to(options.dtype));
}

Tensor truncated_normal(const Shape& shape, double mean, double std, double low, double high,
                        const TensorOptions& options, const MaybeGenerator& generator) {
    const FunctionCall call(
        "truncated_normal", {},
        {{"shape", shape}, {"mean", mean}, {"std", std}, {"low", low}, {"high", high}, type_of(options)});
    require_type("truncated_normal", options.dtype);
    require_finite("truncated_normal", "mean", mean);
    require_above_0("truncated_normal", "std", std);
    if (!(low < high)) throw ValueError(fmt::format("truncated_normal: expected low < high, got {} and {}", low, high));
    // erf of the bounds, between which erf of the numbers is uniform.
    const auto erf_of = [&](double bound) { return std::erf((bound - mean) / std * std::sqrt(0.5)); };
    const double from = erf_of(low), to = erf_of(high);
    const Tensor u = rand(shape, compute_options(options), generator);
    return call.result(
        clamp(erfinv(u * (to - from) + from) * (std * std::sqrt(2.0)) + mean, low, high).to(options.dtype));
}

Tensor log_normal(const Shape& shape, double mean, double std, const TensorOptions& options,
                  const MaybeGenerator& generator) {
    const FunctionCall call("log_normal", {}, {{"shape", shape}, {"mean", mean}, {"std", std}, type_of(options)});
    require_type("log_normal", options.dtype);
    require_finite("log_normal", "mean", mean);
    require_above_0("log_normal", "std", std);
    return call.result(exp(normal(shape, mean, std, compute_options(options), generator)).to(options.dtype));
}

namespace {

/// location + scale z for samples z of the standard distribution.
template <class Standard>
Tensor location_scale(const char* function, const Shape& shape, const char* name, double location, double scale,
                      const TensorOptions& options, const Standard& standard) {
    const FunctionCall call(function, {}, {{"shape", shape}, {name, location}, {"scale", scale}, type_of(options)});
    require_type(function, options.dtype);
    require_finite(function, name, location);
    require_above_0(function, "scale", scale);
    return call.result((standard(compute_options(options)) * scale + location).to(options.dtype));
}

}  // namespace

Tensor cauchy(const Shape& shape, double median, double scale, const TensorOptions& options,
              const MaybeGenerator& generator) {
    return location_scale("cauchy", shape, "median", median, scale, options, [&](const TensorOptions& compute_options) {
        return tan((rand(shape, compute_options, generator) - 0.5) * 3.14159265358979323846);
    });
}

Tensor laplace(const Shape& shape, double mean, double scale, const TensorOptions& options,
               const MaybeGenerator& generator) {
    return location_scale("laplace", shape, "mean", mean, scale, options, [&](const TensorOptions& compute_options) {
        // u - 1/2 in (-1/2, 1/2), symmetric around 0.
        const double half_step = compute_options.dtype == DType::f64 ? 0x1p-54 : 0x1p-25;
        const Tensor v = rand(shape, compute_options, generator) - (0.5 - half_step);
        return -log1p(abs(v) * -2.0) * sign(v);
    });
}

Tensor gumbel(const Shape& shape, double mode, double scale, const TensorOptions& options,
              const MaybeGenerator& generator) {
    return location_scale("gumbel", shape, "mode", mode, scale, options, [&](const TensorOptions& compute_options) {
        return gumbel_noise(shape, compute_options, generator);
    });
}

Tensor geometric(const Shape& shape, double probability, const TensorOptions& options,
                 const MaybeGenerator& generator) {
    const FunctionCall call("geometric", {}, {{"shape", shape}, {"probability", probability}, type_of(options)});
    if (!(probability > 0 && probability <= 1))
        throw ValueError(fmt::format("geometric: expected a probability in (0, 1], got {}", probability));
    if (probability == 1) return call.result(ones(shape, options));
    const TensorOptions compute_options{options.dtype == DType::f64 ? DType::f64 : DType::f32, options.device};
    const Tensor trials = ceil(log1p(-rand(shape, compute_options, generator)) * (1 / std::log1p(-probability)));
    return call.result(maximum(trials, 1).to(options.dtype));
}

Tensor bernoulli(const Tensor& probability, const MaybeGenerator& generator) {
    const FunctionCall call("bernoulli", {{"probability", probability}});
    call.require_defined({"probability"});
    require_type("bernoulli", probability.dtype());
    const Tensor p = parameter(probability);
    return call.result((rand(p.shape(), like(p), generator) < p).to(probability.dtype()));
}

Tensor normal(const Tensor& mean, const Tensor& std, const MaybeGenerator& generator) {
    const FunctionCall call("normal", {{"mean", mean}, {"std", std}});
    call.require_defined({"mean", "std"});
    const DType type = result_type(mean, std);
    require_type("normal", type);
    const Shape shape = common_shape("normal", mean, std);
    const DType compute = compute_type(type);
    const Tensor noise = randn(shape, {compute, mean.device()}, generator);
    return call.result((noise * std.detach().to(compute) + mean.detach().to(compute)).to(type));
}

Tensor poisson(const Tensor& rate, const MaybeGenerator& generator) {
    const FunctionCall call("poisson", {{"rate", rate}});
    call.require_defined({"rate"});
    require_type("poisson", rate.dtype());
    const Tensor rates = parameter(rate);
    const ops::RandomCall random = random_call("poisson", rates, DType::f32, ops::kRandomPoissonNumbers, generator);
    const ops::View out = ops::View::make(rates.device(), rates.dtype(), rates.shape());
    ops::random_poisson("poisson", rates.dense_view(), random, out);
    return call.result(Tensor(out).to(rate.dtype()));
}

Tensor gamma(const Tensor& concentration, double rate, const MaybeGenerator& generator) {
    const FunctionCall call("gamma", {{"concentration", concentration}}, {{"rate", rate}});
    call.require_defined({"concentration"});
    require_type("gamma", concentration.dtype());
    require_above_0("gamma", "rate", rate);
    return call.result((log_gamma_draw("gamma", concentration, false, generator) / rate).to(concentration.dtype()));
}

Tensor beta(const Tensor& a, const Tensor& b, const MaybeGenerator& generator) {
    const FunctionCall call("beta", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    const DType type = result_type(a, b);
    require_type("beta", type);
    const Shape shape = common_shape("beta", a, b);
    const DType compute = compute_type(type);
    // The share of the first gamma variate, computed from logarithms, since both may underflow.
    const auto draw = [&](const Tensor& x) {
        return log_gamma_draw("beta", expand(x.detach().to(compute), shape), true, generator);
    };
    const Tensor log_a = draw(a), log_b = draw(b);
    return call.result(sigmoid(log_a - log_b).to(type));
}

Tensor dirichlet(const Tensor& concentration, const MaybeGenerator& generator) {
    const FunctionCall call("dirichlet", {{"concentration", concentration}});
    call.require_defined({"concentration"});
    require_type("dirichlet", concentration.dtype());
    if (concentration.rank() == 0)
        throw ShapeError("dirichlet: expected concentrations of at least one axis, got a tensor without axes");
    return call.result(
        softmax(log_gamma_draw("dirichlet", concentration, true, generator), -1).to(concentration.dtype()));
}

Tensor categorical(const Tensor& logits, std::int64_t axis, const MaybeGenerator& generator) {
    const FunctionCall call("categorical", {{"logits", logits}}, {{"axis", axis}});
    call.require_defined({"logits"});
    require_type("categorical", logits.dtype());
    const int along = normalize_axis("categorical", axis, logits.rank());
    if (logits.shape()[along] == 0)
        throw ShapeError(fmt::format("categorical: expected elements along axis {}, got logits of shape {}", axis,
                                     logits.shape().str()));
    const Tensor x = parameter(logits);
    return call.result(argmax(x + gumbel_noise(x.shape(), like(x), generator), along));
}

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement, const MaybeGenerator& generator) {
    const FunctionCall call("multinomial", {{"weights", weights}}, {{"count", count}, {"replacement", replacement}});
    call.require_defined({"weights"});
    require_type("multinomial", weights.dtype());
    if (weights.rank() != 1 && weights.rank() != 2)
        throw ShapeError(
            fmt::format("multinomial: expected weights of shape (C) or (N, C), got {}", weights.shape().str()));
    const std::int64_t categories = weights.shape().back();
    if (count < 1 || (!replacement && count > categories) || categories == 0)
        throw ValueError(
            fmt::format("multinomial: expected a count of at least 1, and without replacement at most the "
                        "{} categories, got {}",
                        categories, count));
    const Tensor w = parameter(weights);
    if (!replacement) return call.result(topk(log(w) + gumbel_noise(w.shape(), like(w), generator), count, -1).indices);
    Shape shape = w.shape();
    shape[w.rank() - 1] = count;
    const Tensor sums = cumsum(w, -1), total = slice(sums, -1, categories - 1, categories);
    // Below the total, even if the product is rounded up, so that no element of weight 0 is selected.
    const double below = 1 - (w.dtype() == DType::f64 ? 0x1p-53 : 0x1p-24);
    const Tensor found = searchsorted(sums, minimum(rand(shape, like(w), generator) * total, total * below), true);
    return call.result(minimum(found, categories - 1));  // if no weight is above 0, or one is NaN
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, std::int64_t axis, const MaybeGenerator& generator) {
    const FunctionCall call("gumbel_softmax", {{"logits", logits}}, {{"tau", tau}, {"hard", hard}, {"axis", axis}});
    call.require_defined({"logits"});
    require_type("gumbel_softmax", logits.dtype());
    require_above_0("gumbel_softmax", "tau", tau);
    const int along = normalize_axis("gumbel_softmax", axis, logits.rank());
    const Tensor noise = gumbel_noise(logits.shape(), like(logits), generator).to(logits.dtype());
    const Tensor soft = softmax((logits + noise) / tau, along);
    if (!hard) return call.result(soft);
    Shape line;
    for (int i = 0; i < logits.rank(); ++i) line.push_back(i == along ? logits.shape()[i] : 1);
    const Tensor positions = reshape(arange(0, line[along], 1, {DType::i64, logits.device()}), line);
    const Tensor hard_sample = (argmax(soft.detach(), along, true) == positions).to(logits.dtype());
    return call.result(soft + (hard_sample - soft.detach()));
}

}  // namespace declivity
