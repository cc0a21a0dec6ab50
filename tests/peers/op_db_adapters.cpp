// Adapters that call Declivity's functions with the positional and named arguments of PyTorch's operators.
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

Dims axes_of(A& a, std::size_t position, const char* name) { return a.dims(position, name, Dims{}); }

/// A shape with as many axes as x, all of size 1.
Shape ones_of(const Tensor& x) {
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) shape.push_back(1);
    return shape;
}

bool keep(A& a, std::size_t position = 2) { return a.flag(position, "keepdim", false); }

/// The correction, by either of PyTorch's argument names.
double correction_of(A& a, std::size_t position) {
    if (a.has(position, "correction") && position >= a.positional_count()) return a.number(position, "correction", 1);
    return a.flag(position, "unbiased", true) ? 1 : 0;
}

void add_elementwise(Table& all) {
#define UNARY(torch, call) all[torch] = [](A& a) { return Tensors{call(a.tensor(0))}; }
    UNARY("abs", abs);
    UNARY("acos", acos);
    UNARY("acosh", acosh);
    UNARY("asin", asin);
    UNARY("asinh", asinh);
    UNARY("atan", atan);
    UNARY("atanh", atanh);
    UNARY("bitwise_not", bitwise_not);
    UNARY("ceil", ceil);
    UNARY("cos", cos);
    UNARY("cosh", cosh);
    UNARY("digamma", digamma);
    UNARY("erf", erf);
    UNARY("erfc", erfc);
    UNARY("erfinv", erfinv);
    UNARY("exp", exp);
    UNARY("exp2", exp2);
    UNARY("expm1", expm1);
    UNARY("floor", floor);
    UNARY("frac", frac);
    UNARY("isfinite", isfinite);
    UNARY("isinf", isinf);
    UNARY("isnan", isnan);
    UNARY("lgamma", lgamma);
    UNARY("log", log);
    UNARY("log10", log10);
    UNARY("log1p", log1p);
    UNARY("log2", log2);
    UNARY("logical_not", logical_not);
    UNARY("neg", neg);
    UNARY("reciprocal", reciprocal);
    UNARY("round", round);
    UNARY("rsqrt", rsqrt);
    UNARY("sigmoid", sigmoid);
    UNARY("sign", sign);
    UNARY("sin", sin);
    UNARY("sinh", sinh);
    UNARY("sqrt", sqrt);
    UNARY("square", square);
    UNARY("tan", tan);
    UNARY("tanh", tanh);
    UNARY("trunc", trunc);
    for (const char* name :
         {"relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid", "logsigmoid", "softsign", "tanhshrink"})
        all[fmt::format("nn.functional.{}", name)] = [name = std::string(name)](A& a) {
            a.ignore("inplace");
            const Tensor x = a.tensor(0);
            return Tensors{name == "relu"          ? relu(x)
                           : name == "relu6"       ? relu6(x)
                           : name == "selu"        ? selu(x)
                           : name == "silu"        ? silu(x)
                           : name == "mish"        ? mish(x)
                           : name == "hardswish"   ? hardswish(x)
                           : name == "hardsigmoid" ? hardsigmoid(x)
                           : name == "logsigmoid"  ? logsigmoid(x)
                           : name == "softsign"    ? softsign(x)
                                                   : tanhshrink(x)};
        };
    all["nn.functional.elu"] = [](A& a) {
        a.ignore("inplace");
        return Tensors{elu(a.tensor(0), a.scalar(1, "alpha", 1.0))};
    };
    all["nn.functional.celu"] = [](A& a) {
        a.ignore("inplace");
        return Tensors{celu(a.tensor(0), a.number(1, "alpha", 1))};
    };
    all["nn.functional.leaky_relu"] = [](A& a) {
        a.ignore("inplace");
        return Tensors{leaky_relu(a.tensor(0), a.scalar(1, "negative_slope", 0.01))};
    };
    all["nn.functional.softplus"] = [](A& a) {
        return Tensors{softplus(a.tensor(0), a.scalar(1, "beta", 1.0), a.scalar(2, "threshold", 20.0))};
    };
    all["nn.functional.hardtanh"] = [](A& a) {
        a.ignore("inplace");
        const Scalar low = a.scalar(1, "min_val", -1), high = a.scalar(2, "max_val", 1);
        if (!is_floating(a.tensor(0).dtype()) && (low.is_floating() || high.is_floating()))
            throw UnsupportedSample("bounds that are no integers, which PyTorch rounds");
        return Tensors{hardtanh(a.tensor(0), low, high)};
    };
    all["nn.functional.threshold"] = [](A& a) {
        a.ignore("inplace");
        return Tensors{threshold(a.tensor(0), a.scalar(1, "threshold"), a.scalar(2, "value"))};
    };
    all["nn.functional.softshrink"] = [](A& a) { return Tensors{softshrink(a.tensor(0), a.scalar(1, "lambd", 0.5))}; };
    all["nn.functional.hardshrink"] = [](A& a) { return Tensors{hardshrink(a.tensor(0), a.scalar(1, "lambd", 0.5))}; };
    all["nn.functional.gelu"] = [](A& a) {
        return Tensors{a.word(1, "approximate", "none") == "tanh" ? gelu_tanh(a.tensor(0)) : gelu(a.tensor(0))};
    };
    all["nn.functional.prelu"] = [](A& a) { return Tensors{prelu(a.tensor(0), a.tensor(1, "weight"))}; };
    all["nn.functional.glu"] = [](A& a) { return Tensors{glu(a.tensor(0), a.integer(1, "dim", -1))}; };
    all["nan_to_num"] = [](A& a) {
        const auto optional = [&](std::size_t position, const char* name) -> std::optional<double> {
            const double value = a.number(position, name, std::numeric_limits<double>::quiet_NaN());
            return std::isnan(value) ? std::nullopt : std::optional(value);
        };
        return Tensors{nan_to_num(a.tensor(0), a.number(1, "nan", 0), optional(2, "posinf"), optional(3, "neginf"))};
    };
    for (int n = 0; n < 5; ++n)
        all[fmt::format("polygamma.polygamma_n_{}", n)] = [n](A& a) {
            return Tensors{polygamma(a.integer(1, "n", n), a.tensor(0))};
        };

#define BINARY(torch, call) \
    all[torch] = [](A& a) { return Tensors{call(a.tensor_or_number(0), a.tensor_or_number(1, "other"))}; }
    BINARY("atan2", atan2);
    BINARY("bitwise_and", bitwise_and);
    BINARY("bitwise_or", bitwise_or);
    BINARY("bitwise_xor", bitwise_xor);
    BINARY("bitwise_left_shift", bitwise_left_shift);
    BINARY("bitwise_right_shift", bitwise_right_shift);
    BINARY("copysign", copysign);
    BINARY("eq", eq);
    BINARY("ne", ne);
    BINARY("lt", lt);
    BINARY("le", le);
    BINARY("gt", gt);
    BINARY("ge", ge);
    BINARY("floor_divide", floor_divide);
    BINARY("fmod", fmod);
    BINARY("heaviside", heaviside);
    BINARY("hypot", hypot);
    BINARY("logaddexp", logaddexp);
    BINARY("logical_and", logical_and);
    BINARY("logical_or", logical_or);
    BINARY("logical_xor", logical_xor);
    BINARY("maximum", maximum);
    BINARY("minimum", minimum);
    BINARY("max.binary", maximum);
    BINARY("min.binary", minimum);
    BINARY("remainder", remainder);
    all["add"] = [](A& a) {
        const Scalar alpha = a.scalar(9, "alpha", 1);
        const TensorOrScalar b = a.tensor_or_number(1, "other");
        if (b.is_scalar())
            return Tensors{a.tensor(0) + (alpha.is_floating() || b.scalar().is_floating()
                                              ? Scalar(b.scalar().to_double() * alpha.to_double())
                                              : Scalar(b.scalar().to<std::int64_t>() * alpha.to<std::int64_t>()))};
        return Tensors{a.has(9, "alpha") ? a.tensor(0) + b.tensor() * alpha : a.tensor(0) + b.tensor()};
    };
    all["sub"] = [](A& a) {
        const Scalar alpha = a.scalar(9, "alpha", 1);
        const TensorOrScalar b = a.tensor_or_number(1, "other");
        if (b.is_scalar()) throw UnsupportedSample("a number");
        return Tensors{a.has(9, "alpha") ? a.tensor(0) - b.tensor() * alpha : a.tensor(0) - b.tensor()};
    };
    all["mul"] = [](A& a) {
        const TensorOrScalar b = a.tensor_or_number(1, "other");
        return Tensors{b.is_scalar() ? a.tensor(0) * b.scalar() : a.tensor(0) * b.tensor()};
    };
    all["true_divide"] = all["div.no_rounding_mode"] = [](A& a) {
        a.ignore("rounding_mode");
        const TensorOrScalar b = a.tensor_or_number(1, "other");
        return Tensors{b.is_scalar() ? a.tensor(0) / b.scalar() : a.tensor(0) / b.tensor()};
    };
    all["pow"] = [](A& a) {
        const TensorOrScalar x = a.tensor_or_number(0), b = a.tensor_or_number(1, "exponent");
        if (x.is_scalar()) return Tensors{pow(x.scalar(), b.tensor())};
        return Tensors{b.is_scalar() ? pow(x.tensor(), b.scalar()) : pow(x.tensor(), b.tensor())};
    };
    all["where"] = [](A& a) {
        // PyTorch's samples are (x, condition, other).
        return Tensors{where(a.tensor(1), a.tensor(0), a.tensor_or_number(2))};
    };
    all["lerp"] = [](A& a) {
        return Tensors{lerp(a.tensor(0), a.tensor_or_number(1, "end"), a.tensor_or_number(2, "weight"))};
    };
    all["addcmul"] = [](A& a) {
        return Tensors{addcmul(a.tensor(0), a.tensor(1), a.tensor(2), a.scalar(9, "value", 1))};
    };
    all["addcdiv"] = [](A& a) {
        return Tensors{addcdiv(a.tensor(0), a.tensor(1), a.tensor(2), a.scalar(9, "value", 1))};
    };
    all["clamp"] = [](A& a) {
        if (!a.is_given(1, "min"))
            return Tensors{a.is_given(2, "max") ? clamp_max(a.tensor(0), a.tensor_or_number(2, "max")) : a.tensor(0)};
        if (!a.is_given(2, "max")) return Tensors{clamp_min(a.tensor(0), a.tensor_or_number(1, "min"))};
        const TensorOrScalar low = a.tensor_or_number(1, "min"), high = a.tensor_or_number(2, "max");
        if (low.is_scalar() && high.is_scalar()) return Tensors{clamp(a.tensor(0), low.scalar(), high.scalar())};
        return Tensors{low.is_scalar() ? clamp(a.tensor(0), low.scalar(), high.tensor())
                                       : clamp(a.tensor(0), low.tensor(), high)};
    };
}

void add_reductions(Table& all) {
    const auto reduction = [&](const char* name, Tensor (*call)(const Tensor&, const Dims&, bool)) {
        all[name] = [call](A& a) { return Tensors{call(a.tensor(0), axes_of(a, 1, "dim"), keep(a))}; };
    };
    reduction("sum", [](const Tensor& x, const Dims& axes, bool keepdim) { return sum(x, axes, keepdim); });
    reduction("mean", [](const Tensor& x, const Dims& axes, bool keepdim) { return mean(x, axes, keepdim); });
    reduction("prod", [](const Tensor& x, const Dims& axes, bool keepdim) { return prod(x, axes, keepdim); });
    reduction("amax", amax);
    reduction("amin", amin);
    reduction("logsumexp", logsumexp);
    // PyTorch returns u8 for u8, and bool for all others.
    const auto select_bytes = [](const Tensor& x, const Tensor& condition) {
        return x.dtype() == DType::u8 ? condition.to(DType::u8) : condition;
    };
    all["all"] = [select_bytes](A& a) {
        const Tensor x = a.tensor(0);
        return Tensors{select_bytes(x, declivity::all(x, axes_of(a, 1, "dim"), keep(a)))};
    };
    all["any"] = [select_bytes](A& a) {
        const Tensor x = a.tensor(0);
        return Tensors{select_bytes(x, any(x, axes_of(a, 1, "dim"), keep(a)))};
    };
    reduction("count_nonzero", count_nonzero);
    reduction("max.reduction_no_dim", [](const Tensor& x, const Dims&, bool) { return max(x); });
    reduction("min.reduction_no_dim", [](const Tensor& x, const Dims&, bool) { return min(x); });
    all["aminmax"] = [](A& a) {
        const MinMax both = aminmax(a.tensor(0), axes_of(a, 1, "dim"), keep(a, 9));
        return Tensors{both.min, both.max};
    };
    for (const char* name : {"var", "var.unbiased"})
        all[name] = [name = std::string(name)](A& a) {
            if (name == "var.unbiased") return Tensors{var(a.tensor(0), {}, a.flag(1, "unbiased", true) ? 1 : 0)};
            const double correction = correction_of(a, 9);
            return Tensors{var(a.tensor(0), axes_of(a, 1, "dim"), correction, keep(a, 9))};
        };
    for (const char* name : {"std", "std.unbiased"})
        all[name] = [name = std::string(name)](A& a) {
            if (name == "std.unbiased") return Tensors{stddev(a.tensor(0), {}, a.flag(1, "unbiased", true) ? 1 : 0)};
            const double correction = correction_of(a, 9);
            return Tensors{stddev(a.tensor(0), axes_of(a, 1, "dim"), correction, keep(a, 9))};
        };
    for (const char* name : {"argmax", "argmin"})
        all[name] = [name = std::string(name)](A& a) {
            const auto call = name == "argmax" ? argmax : argmin;
            const Tensor x = a.tensor(0);
            const bool kept = keep(a);
            if (a.is_given(1, "dim")) return Tensors{call(x, a.integer(1, "dim"), kept)};
            return Tensors{reshape(call(reshape(x, {x.numel()}), 0, false), kept ? ones_of(x) : Shape{})};
        };
    for (const char* name : {"cumsum", "cumprod", "logcumsumexp"})
        all[name] = [name = std::string(name)](A& a) {
            const auto call = name == "cumsum" ? cumsum : name == "cumprod" ? cumprod : logcumsumexp;
            if (name == "logcumsumexp") a.loosen(200);
            return Tensors{call(a.tensor(0), a.integer(1, "dim"))};
        };
    for (const char* name : {"cummax", "cummin"})
        all[name] = [name = std::string(name)](A& a) {
            const CumulativeExtreme both = (name == "cummax" ? cummax : cummin)(a.tensor(0), a.integer(1, "dim"));
            return Tensors{both.values, both.indices};
        };
    all["sort"] = [](A& a) {
        if (!a.flag(9, "stable", false)) a.compare_first();
        const std::int64_t axis = a.integer(1, "dim", -1);
        const Sorted both = sort(a.tensor(0), axis, a.flag(2, "descending", false));
        return Tensors{both.values, both.indices};
    };
    all["msort"] = [](A& a) { return Tensors{sort(a.tensor(0), 0).values}; };
    all["argsort"] = [](A& a) {
        if (!a.flag(9, "stable", false) && !is_floating(a.tensor(0).dtype())) throw UnsupportedSample("equal elements");
        const std::int64_t axis = a.integer(1, "dim", -1);
        return Tensors{argsort(a.tensor(0), axis, a.flag(2, "descending", false))};
    };
    all["kthvalue"] = [](A& a) {
        a.compare_first();
        const Sorted both = kthvalue(a.tensor(0), a.integer(1, "k"), a.integer(2, "dim", -1), keep(a, 3));
        return Tensors{both.values, both.indices};
    };
    all["median"] = [](A& a) {
        if (!a.has(1, "dim")) return Tensors{median(a.tensor(0))};
        const Sorted both = median(a.tensor(0), a.integer(1, "dim"), keep(a));
        return Tensors{both.values, both.indices};
    };
    all["mode"] = [](A& a) {
        a.compare_first();
        const Sorted both = mode(a.tensor(0), a.integer(1, "dim", -1), keep(a));
        return Tensors{both.values, both.indices};
    };
    all["quantile"] = [](A& a) {
        const std::string interpolation = a.word(9, "interpolation", "linear");
        const bool kept = keep(a, 3);
        const Tensor x = a.tensor(0);
        const std::int64_t axis = a.integer(2, "dim", -99);
        const Tensor flattened_input = axis == -99 ? reshape(x, {x.numel()}) : x;
        // Over all elements: the caller reshapes.
        const bool without_axis = axis == -99;
        const auto shaped = [&](const Tensor& result, bool several) {
            if (!without_axis || !kept) return result;
            Shape shape = ones_of(x);
            if (several) shape.insert(0, result.size(0));
            return reshape(result, shape);
        };
        const TensorOrScalar q = a.tensor_or_number(1, "q");
        if (q.is_scalar())
            return Tensors{shaped(quantile(flattened_input, q.scalar().to_double(), without_axis ? 0 : axis,
                                           kept && !without_axis, interpolation),
                                  false)};
        if (q.tensor().requires_grad()) a.loosen(1e300);  // q is a number here, without a gradient
        const std::vector<double> quantiles = q.tensor().detach().to(DType::f64).to_vector<double>();
        if (q.tensor().rank() == 0)
            return Tensors{shaped(
                quantile(flattened_input, quantiles[0], without_axis ? 0 : axis, kept && !without_axis, interpolation),
                false)};
        return Tensors{shaped(
            quantile(flattened_input, quantiles, without_axis ? 0 : axis, kept && !without_axis, interpolation), true)};
    };
    all["topk"] = [](A& a) {
        a.ignore("sorted");
        const std::int64_t k = a.integer(1, "k"), axis = a.integer(2, "dim", -1);
        a.compare_first();
        const TopK both = topk(a.tensor(0), k, axis, a.flag(3, "largest", true));
        if (a.has(4)) a.flag(4, "sorted", true);
        return Tensors{both.values, both.indices};
    };
    for (const char* name : {"unique", "unique_consecutive"})
        all[name] = [consecutive = std::string(name) == "unique_consecutive"](A& a) {
            const std::int64_t axis = a.integer(9, "dim", -99);
            a.ignore("sorted");
            const bool inverse = a.flag(9, "return_inverse", false), counts = a.flag(9, "return_counts", false);
            const Tensor x = a.tensor(0);
            const Unique unique_result = axis == -99 ? (consecutive ? unique_consecutive(x) : unique(x))
                                                     : (consecutive ? unique_consecutive(x, axis) : unique(x, axis));
            Tensors results{unique_result.values};
            if (inverse) results.push_back(unique_result.inverse);
            if (counts) results.push_back(unique_result.counts);
            return results;
        };
    all["searchsorted"] = [](A& a) {
        const bool to_int32 = a.flag(9, "out_int32", false);
        const Tensor sorter = a.tensor_or_none(9, "sorter");
        const bool right = a.flag(9, "right", false) || a.word(9, "side", "left") == "right";
        const Tensor rows = sorter.defined() ? take_along_axis(a.tensor(0), sorter, -1) : a.tensor(0);
        const Tensor found = searchsorted(rows, a.tensor(1), right);
        return Tensors{to_int32 ? found.to(DType::i32) : found};
    };
    all["bucketize"] = [](A& a) {
        const bool to_int32 = a.flag(9, "out_int32", false);
        const Tensor found = bucketize(a.tensor(0), a.tensor(1), a.flag(9, "right", false));
        return Tensors{to_int32 ? found.to(DType::i32) : found};
    };
    all["histogram"] = [](A& a) {
        HistogramOptions options{.weight = a.tensor_or_none(9, "weight"), .density = a.flag(9, "density", false)};
        if (a.is_given(9, "range")) {
            const std::vector<double> range = a.numbers(9, "range");
            options.low = range[0], options.high = range[1];
        }
        if (a.raw(1, "bins").is_number()) return tensors_of(histogram(a.tensor(0), a.integer(1, "bins"), options));
        return tensors_of(histogram(a.tensor(0), a.tensor(1, "bins"), options));
    };
    all["histc"] = [](A& a) {
        return Tensors{histc(a.tensor(0), a.integer(1, "bins", 100), a.number(2, "min", 0), a.number(3, "max", 0))};
    };
    all["bincount"] = [](A& a) {
        const Tensor weights = a.tensor_or_none(1, "weights");
        const bool integer_weights = weights.defined() && !is_floating(weights.dtype());  // which PyTorch sums in f64
        return Tensors{
            bincount(a.tensor(0), integer_weights ? weights.to(DType::f64) : weights, a.integer(2, "minlength", 0))};
    };
    all["softmax"] = [](A& a) { return Tensors{softmax(a.tensor(0), a.integer(1, "dim"))}; };
    all["log_softmax"] = [](A& a) { return Tensors{log_softmax(a.tensor(0), a.integer(1, "dim"))}; };
}

void add_indexing(Table& all) {
    all["gather"] = [](A& a) {
        a.ignore("sparse_grad");
        return Tensors{gather(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"))};
    };
    all["take_along_dim"] = [](A& a) {
        if (!a.has(2, "dim")) throw UnsupportedSample("no axis");
        return Tensors{take_along_axis(a.tensor(0), a.tensor(1), a.integer(2, "dim"))};
    };
    all["take"] = [](A& a) { return Tensors{take(a.tensor(0), a.tensor(1))}; };
    all["scatter"] = [](A& a) {
        const Tensor x = a.tensor(0), index = a.tensor(2, "index");
        const std::int64_t axis = a.integer(1, "dim");
        const std::string reduce = a.word(9, "reduce", "");
        const TensorOrScalar src = a.tensor_or_number(3, a.has(3, "src") ? "src" : "value");
        if (!reduce.empty())
            return Tensors{scatter_reduce(
                x, axis, index,
                src.is_scalar() ? full(index.shape(), src.scalar(), {x.dtype(), x.device()}) : src.tensor(),
                reduce == "add" ? ScatterReduction::sum : ScatterReduction::prod)};
        return Tensors{src.is_scalar() ? scatter(x, axis, index, src.scalar()) : scatter(x, axis, index, src.tensor())};
    };
    all["scatter_add"] = [](A& a) {
        return Tensors{scatter_add(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "src"))};
    };
    constexpr std::pair<const char*, ScatterReduction> reductions[] = {{"sum", ScatterReduction::sum},
                                                                       {"prod", ScatterReduction::prod},
                                                                       {"mean", ScatterReduction::mean},
                                                                       {"amax", ScatterReduction::amax},
                                                                       {"amin", ScatterReduction::amin}};
    for (const auto& [name, kind] : reductions)
        all[fmt::format("scatter_reduce.{}", name)] = [kind = kind](A& a) {
            (void)a.word(4, "reduce", "");
            return Tensors{scatter_reduce(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "src"),
                                          kind, a.flag(5, "include_self", true))};
        };
    all["index_select"] = [](A& a) {
        return Tensors{index_select(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"))};
    };
    all["index_add"] = [](A& a) {
        return Tensors{index_add(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "source"),
                                 a.scalar(9, "alpha", 1))};
    };
    all["index_copy"] = [](A& a) {
        return Tensors{index_copy(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "source"))};
    };
    all["index_fill"] = [](A& a) {
        const TensorOrScalar value = a.tensor_or_number(3, "value");
        return Tensors{index_fill(a.tensor(0), a.integer(1, "dim"), a.tensor(2, "index"), value)};
    };
    all["index_put"] = [](A& a) {
        return Tensors{
            index_put(a.tensor(0), a.tensors(1, "indices"), a.tensor(2, "values"), a.flag(3, "accumulate", false))};
    };
    all["masked_fill"] = [](A& a) {
        return Tensors{masked_fill(a.tensor(0), a.tensor(1, "mask"), a.tensor_or_number(2, "value"))};
    };
    all["masked_select"] = [](A& a) { return Tensors{masked_select(a.tensor(0), a.tensor(1, "mask"))}; };
    all["masked_scatter"] = [](A& a) {
        return Tensors{masked_scatter(a.tensor(0), a.tensor(1, "mask"), a.tensor(2, "source"))};
    };
    all["nonzero"] = [](A& a) {
        if (a.flag(9, "as_tuple", false)) throw UnsupportedSample("as_tuple");
        return Tensors{nonzero(a.tensor(0))};
    };
    all["argwhere"] = [](A& a) { return Tensors{nonzero(a.tensor(0))}; };
    all["nn.functional.one_hot"] = [](A& a) { return Tensors{one_hot(a.tensor(0), a.integer(1, "num_classes", -1))}; };
}

void add_shapes(Table& all) {
    all["reshape"] = all["view"] = [](A& a) { return Tensors{reshape(a.tensor(0), a.dims(1, "shape"))}; };
    all["permute"] = [](A& a) { return Tensors{permute(a.tensor(0), a.dims(1, "dims"))}; };
    all["transpose"] = [](A& a) { return Tensors{transpose(a.tensor(0), a.integer(1, "dim0"), a.integer(2, "dim1"))}; };
    all["expand"] = all["broadcast_to"] = [](A& a) { return Tensors{expand(a.tensor(0), a.dims(1, "size"))}; };
    all["unsqueeze"] = [](A& a) { return Tensors{unsqueeze(a.tensor(0), a.integer(1, "dim"))}; };
    all["squeeze"] = all["squeeze.multiple"] = [](A& a) {
        if (a.has(1, "dim") && a.dims(1, "dim").rank() == 0) throw UnsupportedSample("an empty list of axes");
        return Tensors{squeeze(a.tensor(0), axes_of(a, 1, "dim"))};
    };
    all["movedim"] = [](A& a) {
        const Dims from = a.dims(1, "source"), to = a.dims(2, "destination");
        return Tensors{movedim(a.tensor(0), from, to)};
    };
    all["unflatten"] = [](A& a) { return Tensors{unflatten(a.tensor(0), a.integer(1, "dim"), a.dims(2, "sizes"))}; };
    all["broadcast_tensors"] = [](A& a) {
        Tensors given;
        for (std::size_t i = 0; i < a.positional_count(); ++i) given.push_back(a.tensor(i));
        return broadcast_tensors(given);
    };
    all["stack"] = [](A& a) { return Tensors{stack(a.tensors(0), a.integer(1, "dim", 0))}; };
    all["cat"] = [](A& a) { return Tensors{cat(a.tensors(0), a.integer(1, "dim", 0))}; };
    all["split"] = [](A& a) { return split(a.tensor(0), a.integer(1, "split_size"), a.integer(2, "dim", 0)); };
    all["split.list_args"] = all["split_with_sizes"] = [](A& a) {
        return split(a.tensor(0), a.dims(1, "split_size"), a.integer(2, "dim", 0));
    };
    all["chunk"] = [](A& a) { return chunk(a.tensor(0), a.integer(1, "chunks"), a.integer(2, "dim", 0)); };
    all["unbind"] = [](A& a) { return unbind(a.tensor(0), a.integer(1, "dim", 0)); };
    all["repeat"] = [](A& a) { return Tensors{repeat(a.tensor(0), a.dims(1, "repeats"))}; };
    all["tile"] = [](A& a) { return Tensors{tile(a.tensor(0), a.dims(1, "dims"))}; };
    all["repeat_interleave"] = [](A& a) {
        const bool has_axis = a.has(2, "dim");
        Tensor x = a.tensor(0);
        if (!has_axis) x = reshape(x, {x.numel()});
        const std::int64_t axis = has_axis ? a.integer(2, "dim") : 0;
        const TensorOrScalar repeats = a.tensor_or_number(1, "repeats");
        if (repeats.is_scalar()) return Tensors{repeat_interleave(x, repeats.scalar().to<std::int64_t>(), axis)};
        if (repeats.tensor().numel() == 1) throw UnsupportedSample("one number as a tensor");
        return Tensors{repeat_interleave(x, repeats.tensor(), axis)};
    };
    all["flip"] = [](A& a) { return Tensors{flip(a.tensor(0), a.dims(1, "dims"))}; };
    all["roll"] = [](A& a) { return Tensors{roll(a.tensor(0), a.dims(1, "shifts"), axes_of(a, 2, "dims"))}; };
    all["rot90"] = [](A& a) {
        const Dims axes = a.dims(2, "dims", Dims{0, 1});
        return Tensors{rot90(a.tensor(0), a.integer(1, "k", 1), axes[0], axes[1])};
    };
    all["meshgrid.variadic_tensors"] = [](A& a) {
        Tensors given;
        for (std::size_t i = 0; i < a.positional_count(); ++i) given.push_back(a.tensor(i));
        return meshgrid(given, a.word(99, "indexing", "ij"));
    };
    all["meshgrid.list_of_tensors"] = [](A& a) { return meshgrid(a.tensors(0), a.word(99, "indexing", "ij")); };
    all["cartesian_prod"] = [](A& a) {
        Tensors given;
        for (std::size_t i = 0; i < a.positional_count(); ++i) given.push_back(a.tensor(i));
        return Tensors{cartesian_prod(given)};
    };
    all["diagonal"] = all["linalg.diagonal"] = [](A& a) {
        return Tensors{
            diagonal(a.tensor(0), a.integer(1, "offset", 0), a.integer(2, "dim1", 0), a.integer(3, "dim2", 1))};
    };
    all["linalg.diagonal"] = [](A& a) {
        return Tensors{
            diagonal(a.tensor(0), a.integer(9, "offset", 0), a.integer(9, "dim1", -2), a.integer(9, "dim2", -1))};
    };
    all["tril"] = [](A& a) { return Tensors{tril(a.tensor(0), a.integer(1, "diagonal", 0))}; };
    all["triu"] = [](A& a) { return Tensors{triu(a.tensor(0), a.integer(1, "diagonal", 0))}; };
    all["diag"] = [](A& a) { return Tensors{diag(a.tensor(0), a.integer(1, "diagonal", 0))}; };
    all["diag_embed"] = [](A& a) {
        return Tensors{
            diag_embed(a.tensor(0), a.integer(1, "offset", 0), a.integer(2, "dim1", -2), a.integer(3, "dim2", -1))};
    };
    all["nn.functional.pixel_shuffle"] = [](A& a) {
        return Tensors{pixel_shuffle(a.tensor(0), a.integer(1, "upscale_factor"))};
    };
    all["nn.functional.pixel_unshuffle"] = [](A& a) {
        return Tensors{pixel_unshuffle(a.tensor(0), a.integer(1, "downscale_factor"))};
    };
    all["slice"] = [](A& a) {
        const std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();
        return Tensors{slice(a.tensor(0), a.integer(1, "dim", 0), a.integer(2, "start", 0),
                             a.integer(3, "end", max_int64), a.integer(4, "step", 1))};
    };
    all["select"] = [](A& a) { return Tensors{select(a.tensor(0), a.integer(1, "dim"), a.integer(2, "index"))}; };
    all["select_scatter"] = [](A& a) {
        return Tensors{select_scatter(a.tensor(0), a.tensor(1), a.integer(2, "dim"), a.integer(3, "index"))};
    };
}

std::vector<void (*)(Table&)>& files() {
    static std::vector<void (*)(Table&)> all;
    return all;
}

const Adapters elementwise{add_elementwise}, reductions{add_reductions}, indexing{add_indexing}, shapes{add_shapes};

}  // namespace

Adapters::Adapters(void (*add)(Table& all)) { files().push_back(add); }

Table adapters() {
    Table all;
    for (const auto add : files()) add(all);
    // Adapters that leave an argument unread do not support the sample.
    for (auto& [name, adapter] : all)
        adapter = [call = adapter](Arguments& a) {
            auto results = call(a);
            a.require_all_used();
            return results;
        };
    return all;
}

}  // namespace declivity::peers
