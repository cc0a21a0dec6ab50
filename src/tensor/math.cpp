// Mathematical functions that are made of others.
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

/// The n-th derivative of cot(u) as a polynomial in c = cot(u), the lowest power first: p(c)' = p'(c) (-1 - c^2).
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

/// What the type's largest number is.
double largest(DType type) {
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

}  // namespace

Tensor polygamma(std::int64_t n, const Tensor& x) {
    const FunctionCall call("polygamma", {{"x", x}}, {{"n", n}});
    call.require_defined({"x"});
    if (n < 0 || n > 20) throw ValueError(fmt::format("polygamma: wants n from 0 to 20, got {}", n));
    if (n == 0) return call.result(digamma(x));
    const auto order = static_cast<double>(n);
    // (-1)^(n + 1) n! zeta(n + 1, x); below zero by the derivatives of digamma(1 - x) - digamma(x) = pi cot(pi x).
    const Tensor positive = x > 0;
    const double factor = (n % 2 == 0 ? -1 : 1) * std::tgamma(order + 1);
    const Tensor above = factor * elementwise(Function::hurwitz_zeta, {where(positive, x, 1 - x)}, {order + 1});
    const Tensor t = where(positive, 0.25, x - round(x));
    const Tensor c = reciprocal(tan(std::numbers::pi * t));
    const std::vector<double> p = derivative_of_cotangent(n);
    Tensor sum = c * p.back() + p[p.size() - 2];
    for (std::size_t power = p.size() - 2; power-- > 0;) sum = sum * c + p[power];
    const Tensor below = (n % 2 == 0 ? 1.0 : -1.0) * above - std::pow(std::numbers::pi, order + 1) * sum;
    return call.result(where(positive, above, below));
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
    const FunctionCall call("addcmul", {{"x", x}, {"a", a}, {"b", b}}, {{"value", value}});
    call.require_defined({"x", "a", "b"});
    return call.result(x + a * b * value);
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
    const FunctionCall call("addcdiv", {{"x", x}, {"a", a}, {"b", b}}, {{"value", value}});
    call.require_defined({"x", "a", "b"});
    return call.result(x + a / b * value);
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
    const FunctionCall call("nan_to_num", {{"x", x}},
                            {{"nan", nan}, {"posinf", posinf.value_or(NAN)}, {"neginf", neginf.value_or(NAN)}});
    call.require_defined({"x"});
    if (!is_floating(x.dtype())) return call.result(x);
    const double most = largest(x.dtype()), infinity = std::numeric_limits<double>::infinity();
    return call.result(where(
        isnan(x), nan, where(x == infinity, posinf.value_or(most), where(x == -infinity, neginf.value_or(-most), x))));
}

}  // namespace declivity
