// Mathematical functions composed of others.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

/// The n-th derivative of cot(u) as a polynomial in c = cot(u), lowest power first: p(c)' = p'(c) (-1 - c^2).
std::vector<double> derivative_of_cotangent(std::int64_t n) {
    std::vector<double> p{0, 1};
    for (; n > 0; --n) {
        std::vector<double> next(p.size() + 1);
        for (std::size_t power = 1; power < p.size(); ++power) {
            const double factor = -static_cast<double>(power) * p[power];
            next[power - 1] += factor;
            next[power + 1] += factor;
        }
        p = std::move(next);
    }
    return p;
}

/// Largest finite number of a type.
double max_finite(DType type) {
    switch (type) {
        case DType::f64:
            return std::numeric_limits<double>::max();
        case DType::f16:
            return 65504;
        case DType::bf16:
            return 0x1.fep127;
        default:
            return std::numeric_limits<float>::max();
    }
}

/// Two operands for the call record: numbers among them are attributes.
class Pair {
  public:
    Pair(const TensorOrScalar& a, const TensorOrScalar& b) {
        add("a", a);
        add("b", b);
    }
    [[nodiscard]] std::span<const CallInput> inputs() const { return {inputs_.data(), input_count_}; }
    [[nodiscard]] std::span<const CallAttribute> attributes() const { return {attributes_.data(), attribute_count_}; }

  private:
    void add(std::string_view name, const TensorOrScalar& operand) {
        if (operand.is_scalar()) attributes_[attribute_count_++] = {name, operand.scalar()};
        else inputs_[input_count_++] = {name, operand.tensor()};
    }
    std::array<CallInput, 2> inputs_;
    std::array<CallAttribute, 2> attributes_;
    std::size_t input_count_ = 0, attribute_count_ = 0;
};

void require_pair(const char* name, const TensorOrScalar& a, const TensorOrScalar& b) {
    if (a.is_scalar() && b.is_scalar())
        throw ValueError(fmt::format("{}: expected a tensor among its inputs, got numbers", name));
    for (const TensorOrScalar* tensor_or_scalar : {&a, &b})
        if (!tensor_or_scalar->is_scalar() && !tensor_or_scalar->tensor().defined())
            throw ValueError(fmt::format("{}: expected 2 tensors, got an undefined one", name));
}

/// Two operands, and their promoted type.
struct Operands {
    Tensor a, b;
    DType type;
};

/// Converts both to tensors of one type; with f16 and bf16 both are f32, in which numbers keep their value. With `real`
/// integers become f32.
Operands promote(const char* name, const TensorOrScalar& a, const TensorOrScalar& b, bool real) {
    require_pair(name, a, b);
    const auto dtype_name = [](const TensorOrScalar& operand) {
        return name_of(operand.is_scalar() ? dtype_of(operand.scalar()) : operand.tensor().dtype());
    };
    DType type = DType::f32;
    try {
        type = result_type(a, b);
    } catch (const TypeError&) {
        throw TypeError(fmt::format("{}: expected types with a common type, got {}, {} (convert with .to(DType))", name,
                                    dtype_name(a), dtype_name(b)));
    }
    if (real && !is_floating(type)) type = DType::f32;
    const Device device = a.is_scalar() ? b.tensor().device() : a.tensor().device();
    const DType compute = compute_type(type);
    const auto convert = [&](const TensorOrScalar& operand) {
        return operand.is_scalar() ? full({}, operand.scalar(), {compute, device}) : operand.tensor().to(compute);
    };
    return {convert(a), convert(b), type};
}

/// Integers and 16-bit floats upcast to f32, to avoid rounding each intermediate result.
Tensor in_compute_type(const Tensor& x) { return is_floating(x.dtype()) ? detail::upcast(x) : x.to(DType::f32); }
/// Converts back to the type of x if that is a floating-point type.
Tensor rounded_as(const Tensor& x, const Tensor& y) { return is_floating(x.dtype()) ? y.to(x.dtype()) : y; }

bool all_16bit(const Tensor& x, const Tensor& a, const Tensor& b) {
    return detail::both_16bit(x, a) && detail::both_16bit(x, b);
}

}  // namespace

Tensor polygamma(std::int64_t n, const Tensor& x) {
    const FunctionCall call("polygamma", {{"x", x}}, {{"n", n}});
    call.require_defined({"x"});
    if (n < 0 || n > 20) throw ValueError(fmt::format("polygamma: expected n from 0 to 20, got {}", n));
    if (n == 0) return call.result(digamma(x));
    if (is_16bit_float(x.dtype()))
        return call.result(detail::in_f32(
            x.dtype(), [n](const Tensor& upcast) { return polygamma(n, upcast); }, x));
    const auto order = static_cast<double>(n);
    // (-1)^(n + 1) n! zeta(n + 1, x); below zero by the derivatives of digamma(1 - x) - digamma(x) = pi cot(pi x).
    const Tensor positive = x > 0;
    const double factor = (n % 2 == 0 ? -1 : 1) * std::tgamma(order + 1);
    const Tensor above = factor * elementwise(Function::hurwitz_zeta, {where(positive, x, 1 - x)}, {order + 1});
    const Tensor t = where(positive, 0.25, x - round(x));
    // cot(pi t), which is small where t is near a half: there as the tangent of the distance to the half.
    const Tensor near = abs(t) < 0.25, rest = where(t < 0, -0.5, 0.5) - t;
    const Tensor c = where(near, reciprocal(tan(std::numbers::pi * where(near, t, 0.25))),
                           tan(std::numbers::pi * where(near, 0.25, rest)));
    const std::vector<double> p = derivative_of_cotangent(n);
    Tensor sum = c * p.back() + p[p.size() - 2];
    for (std::size_t power = p.size() - 2; power-- > 0;) sum = sum * c + p[power];
    const Tensor below = (n % 2 == 0 ? 1.0 : -1.0) * above - std::pow(std::numbers::pi, order + 1) * sum;
    return call.result(where(positive, above, below));
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
    const FunctionCall call("addcmul", {{"x", x}, {"a", a}, {"b", b}}, {{"value", value}});
    call.require_defined({"x", "a", "b"});
    if (all_16bit(x, a, b)) {
        const auto sum = [&](const Tensor& u, const Tensor& v, const Tensor& w) { return u + v * w * value; };
        return call.result(detail::in_f32(x.dtype(), sum, x, a, b));
    }
    return call.result(x + a * b * value);
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
    const FunctionCall call("addcdiv", {{"x", x}, {"a", a}, {"b", b}}, {{"value", value}});
    call.require_defined({"x", "a", "b"});
    if (all_16bit(x, a, b)) {
        const auto sum = [&](const Tensor& u, const Tensor& v, const Tensor& w) { return u + v / w * value; };
        return call.result(detail::in_f32(x.dtype(), sum, x, a, b));
    }
    return call.result(x + a / b * value);
}

Tensor pow(const Tensor& x, Scalar exponent) {
    const auto apply = [](Function function, const Tensor& tensor) {
        return elementwise(function, {tensor}, {}, "pow");
    };
    const double p = exponent.to_double();
    if (!x.defined() || !is_floating(x.dtype()) || !is_floating(result_type(x, exponent)))
        return elementwise(Function::pow_scalar, {x}, {exponent}, "pow");
    if (p == 2) return apply(Function::square, x);
    if (p == 0.5) return apply(Function::sqrt, x);
    if (p == -0.5) return apply(Function::rsqrt, x);
    if (p == -1) return apply(Function::reciprocal, x);
    // In two steps; with f16 and bf16 only the result is rounded.
    const Tensor upcast = detail::upcast(x);
    if (p == 3) return rounded_as(x, apply(Function::square, upcast) * upcast);
    return elementwise(Function::pow_scalar, {x}, {exponent}, "pow");
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
    const FunctionCall call("nan_to_num", {{"x", x}},
                            {{"nan", nan}, {"posinf", posinf.value_or(NAN)}, {"neginf", neginf.value_or(NAN)}});
    call.require_defined({"x"});
    if (!is_floating(x.dtype())) return call.result(x);
    const double max_value = max_finite(x.dtype()), infinity = std::numeric_limits<double>::infinity();
    return call.result(
        where(isnan(x), nan,
              where(x == infinity, posinf.value_or(max_value), where(x == -infinity, neginf.value_or(-max_value), x))));
}

Tensor logaddexp2(const TensorOrScalar& a, const TensorOrScalar& b) {
    const Pair pair(a, b);
    const FunctionCall call("logaddexp2", "logaddexp2", pair.inputs(), pair.attributes());
    const auto [x, y, type] = promote("logaddexp2", a, b, true);
    const Tensor sum = logaddexp(x * std::numbers::ln2, y * std::numbers::ln2);
    return call.result((sum * std::numbers::log2e).to(type));
}

Tensor xlogy(const TensorOrScalar& a, const TensorOrScalar& b) {
    const Pair pair(a, b);
    const FunctionCall call("xlogy", "xlogy", pair.inputs(), pair.attributes());
    const auto [x, y, type] = promote("xlogy", a, b, true);
    const Tensor skipped = (x == 0) & ((y <= 0) | (y == std::numeric_limits<double>::infinity()));
    return call.result((x * log(where(skipped, 1.0, y))).to(type));
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
    const FunctionCall call("logit", {{"x", x}}, {{"eps", eps.value_or(NAN)}});
    call.require_defined({"x"});
    Tensor p = in_compute_type(x);
    // clamp() would differ: above 1/2 the bounds cross, and the lower one takes precedence.
    if (eps) p = where(logical_not(p < *eps), clamp_max(p, 1 - *eps), *eps);
    return call.result(rounded_as(x, log(p) - log1p(-p)));
}

Tensor ldexp(const TensorOrScalar& a, const TensorOrScalar& b) {
    const Pair pair(a, b);
    const FunctionCall call("ldexp", "ldexp", pair.inputs(), pair.attributes());
    require_pair("ldexp", a, b);
    if (!a.is_scalar() && !b.is_scalar() && detail::both_16bit(a.tensor(), b.tensor())) {
        const auto scaled = [](const Tensor& x, const Tensor& power) { return x * pow(2.0, power); };
        return call.result(detail::in_f32(a.tensor().dtype(), scaled, a.tensor(), b.tensor()));
    }
    if (b.is_scalar()) return call.result(a.tensor() * std::exp2(b.scalar().to_double()));
    const Tensor power = pow(2.0, b.tensor());
    return call.result(a.is_scalar() ? power * a.scalar() : a.tensor() * power);
}

Tensor deg2rad(const Tensor& x) {
    const FunctionCall call("deg2rad", {{"x", x}});
    call.require_defined({"x"});
    return call.result(x * (std::numbers::pi / 180));
}

Tensor rad2deg(const Tensor& x) {
    const FunctionCall call("rad2deg", {{"x", x}});
    call.require_defined({"x"});
    return call.result(x * (180 / std::numbers::pi));
}

Tensor sinc(const Tensor& x) {
    const FunctionCall call("sinc", {{"x", x}});
    call.require_defined({"x"});
    const Tensor t = in_compute_type(x) * std::numbers::pi, small = abs(t) < 0.25;
    // Near 0 by its series, which equals it to the precision of f64, so that derivatives keep their digits, at 0 as
    // well.
    const Tensor s = square(where(small, t, 0.0));
    Tensor series = 1 - s * (1.0 / 110);
    for (const double factor : {72.0, 42.0, 20.0, 6.0}) series = 1 - s * (1 / factor) * series;
    const Tensor far = where(small, 1.0, t);
    return call.result(rounded_as(x, where(small, series, sin(far) / far)));
}

Tensor signbit(const Tensor& x) {
    const FunctionCall call("signbit", {{"x", x}});
    call.require_defined({"x"});
    if (x.dtype() == DType::boolean) return call.result(x & false);
    return call.result(is_floating(x.dtype()) ? copysign(1.0, x.detach()) < 0 : x < 0);
}

Tensor fmin(const TensorOrScalar& a, const TensorOrScalar& b) {
    const Pair pair(a, b);
    const FunctionCall call("fmin", "fmin", pair.inputs(), pair.attributes());
    const auto [x, y, type] = promote("fmin", a, b, false);
    return call.result(where(isnan(y), x, where(isnan(x), y, minimum(x, y))).to(type));
}

Tensor fmax(const TensorOrScalar& a, const TensorOrScalar& b) {
    const Pair pair(a, b);
    const FunctionCall call("fmax", "fmax", pair.inputs(), pair.attributes());
    const auto [x, y, type] = promote("fmax", a, b, false);
    return call.result(where(isnan(y), x, where(isnan(x), y, maximum(x, y))).to(type));
}

}  // namespace declivity
