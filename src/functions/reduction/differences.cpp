// Differences of neighbours and of tensors, integrals, membership.
#include <algorithm>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/statistics.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

/// Neighbours along an axis: all elements but the last, and all but the first.
Tensor left_of(const Tensor& x, int along) { return slice(x, along, 0, std::max<std::int64_t>(0, x.size(along) - 1)); }
Tensor right_of(const Tensor& x, int along) {
    return slice(x, along, std::min<std::int64_t>(1, x.size(along)), x.size(along));
}

}  // namespace

Tensor diff(const Tensor& x, std::int64_t n, std::int64_t axis, const Tensor& prepend, const Tensor& append) {
    const FunctionCall call("diff", {{"x", x}, {"prepend", prepend}, {"append", append}}, {{"n", n}, {"axis", axis}});
    call.require_defined({"x"});
    if (x.rank() == 0) throw ShapeError("diff: expected at least one axis, got a tensor without axes");
    const int along = normalize_axis("diff", axis, x.rank());
    if (n < 0) throw ValueError(fmt::format("diff: expected n of at least 0, got {}", n));
    if (n == 0) return call.result(x);
    std::vector<Tensor> parts;
    for (const Tensor& part : {prepend, x, append}) {
        if (!part.defined()) continue;
        Shape expected = x.shape();
        if (part.rank() == x.rank()) expected[along] = part.size(along);
        ops::require_shape("diff", "what is joined to x", part.shape(), expected);
        parts.push_back(part);
    }
    Tensor y = parts.size() == 1 ? x : concat(std::move(parts), along);
    const DType type = y.dtype();
    if (n > 1) y = upcast(y);
    for (std::int64_t remaining = std::min(n, y.size(along)); remaining > 0; --remaining)
        y = y.dtype() == DType::boolean ? right_of(y, along) != left_of(y, along)
                                        : right_of(y, along) - left_of(y, along);
    return call.result(y.to(type));
}

namespace {

/// Checks y, and returns the axis of samples.
int samples_along(const char* name, const Tensor& y, std::int64_t axis) {
    if (y.dtype() == DType::boolean) throw TypeError(fmt::format("{}: expected y of a numeric type, got bool", name));
    return normalize_axis(name, axis, y.rank());
}

/// Differences of the positions x of samples, with as many axes as y.
Tensor distances(const char* name, const Tensor& y, const Tensor& x, int along) {
    if (x.dtype() == DType::boolean) throw TypeError(fmt::format("{}: expected x of a numeric type, got bool", name));
    ops::require_same_device(name, y.device(), x.device());
    Shape shape;
    if (x.rank() == 1) {
        for (int i = 0; i < y.rank(); ++i) shape.push_back(i == along ? x.numel() : 1);
    } else {
        for (int i = x.rank(); i < y.rank(); ++i) shape.push_back(1);
        for (const std::int64_t size : x.shape()) shape.push_back(size);
    }
    // Neither is broadcast along the axis of samples.
    bool fits = shape.rank() == y.rank() && shape[along] == y.size(along);
    for (int i = 0; fits && i < y.rank(); ++i)
        fits = i == along || shape[i] == y.size(i) || shape[i] == 1 || y.size(i) == 1;
    if (!fits)
        throw ShapeError(fmt::format("{}: expected x of {} samples along axis {} of {}, got {}", name, y.size(along),
                                     along, y.shape().str(), x.shape().str()));
    const Tensor positions = reshape(x, shape);
    return right_of(positions, along) - left_of(positions, along);
}

Tensor zeros_without_axis(const Tensor& y, int along) {
    Shape shape = y.shape();
    shape.erase(along);
    return zeros(shape, {y.dtype(), y.device()});
}

/// f16 and bf16 are computed in f32, and rounded once.
Tensor rounded_as(const Tensor& y, const Tensor& result) {
    return is_16bit_float(y.dtype()) ? result.to(y.dtype()) : result;
}

}  // namespace

Tensor trapezoid(const Tensor& y, Scalar dx, std::int64_t axis) {
    const FunctionCall call("trapezoid", {{"y", y}}, {{"dx", dx}, {"axis", axis}});
    call.require_defined({"y"});
    const int along = samples_along("trapezoid", y, axis);
    if (y.size(along) == 0) return call.result(zeros_without_axis(y, along));
    const Tensor upcast_y = upcast(y), ends = select(upcast_y, along, 0) + select(upcast_y, along, -1);
    return call.result(rounded_as(y, (sum(upcast_y, {along}) - ends * 0.5) * dx.to_double()));
}

Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis) {
    const FunctionCall call("trapezoid", {{"y", y}, {"x", x}}, {{"axis", axis}});
    call.require_defined({"y", "x"});
    const int along = samples_along("trapezoid", y, axis);
    if (y.size(along) == 0) return call.result(zeros_without_axis(y, along));
    const Tensor upcast_y = upcast(y), dx = distances("trapezoid", y, upcast(x), along);
    return call.result(rounded_as(y, sum((left_of(upcast_y, along) + right_of(upcast_y, along)) * dx, {along}) / 2));
}

Tensor cumulative_trapezoid(const Tensor& y, Scalar dx, std::int64_t axis) {
    const FunctionCall call("cumulative_trapezoid", {{"y", y}}, {{"dx", dx}, {"axis", axis}});
    call.require_defined({"y"});
    const int along = samples_along("cumulative_trapezoid", y, axis);
    const Tensor upcast_y = upcast(y);
    const Tensor sums = cumsum((left_of(upcast_y, along) + right_of(upcast_y, along)) * dx, along);
    return call.result(rounded_as(y, sums / 2));
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis) {
    const FunctionCall call("cumulative_trapezoid", {{"y", y}, {"x", x}}, {{"axis", axis}});
    call.require_defined({"y", "x"});
    const int along = samples_along("cumulative_trapezoid", y, axis);
    const Tensor upcast_y = upcast(y), dx = distances("cumulative_trapezoid", y, upcast(x), along);
    const Tensor sums = cumsum((left_of(upcast_y, along) + right_of(upcast_y, along)) * dx, along);
    return call.result(rounded_as(y, sums / 2));
}

Tensor dist(const Tensor& a, const Tensor& b, double p) {
    const FunctionCall call("dist", {{"a", a}, {"b", b}}, {{"p", p}});
    call.require_defined({"a", "b"});
    ops::require_real("dist", "a", a.dtype());
    ops::require_real("dist", "b", b.dtype());
    (void)broadcast_shapes("dist", a.shape(), b.shape());
    const DType type = result_type(a, b);
    return call.result(norm(a.to(compute_type(type)) - b.to(compute_type(type)), p).to(type));
}

namespace {

void require_close(const char* name, const Tensor& a, const Tensor& b, double rtol, double atol) {
    ops::require_alike(name, "a", a.dtype(), a.device(), "b", b.dtype(), b.device());
    (void)broadcast_shapes(name, a.shape(), b.shape());
    if (!(rtol >= 0) || !(atol >= 0))
        throw ValueError(fmt::format("{}: expected rtol and atol of at least 0, got {} and {}", name, rtol, atol));
}

}  // namespace

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
    const FunctionCall call("isclose", {{"a", a}, {"b", b}},
                            {{"rtol", rtol}, {"atol", atol}, {"equal_nan", equal_nan}});
    call.require_defined({"a", "b"});
    require_close("isclose", a, b, rtol, atol);
    Tensor close = a == b;
    if (equal_nan && is_floating(a.dtype())) close = close | (isnan(a) & isnan(b));
    if (rtol == 0 && atol == 0) return call.result(close);
    const DType compute = is_floating(a.dtype()) ? compute_type(a.dtype()) : DType::f32;
    const Tensor y = b.to(compute), error = abs(a.to(compute) - y);
    return call.result(close | (isfinite(error) & (error <= abs(y * rtol) + atol)));
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
    const FunctionCall call("allclose", {{"a", a}, {"b", b}},
                            {{"rtol", rtol}, {"atol", atol}, {"equal_nan", equal_nan}});
    call.require_defined({"a", "b"});
    require_close("allclose", a, b, rtol, atol);
    const Tensor close = call.result(all(isclose(a, b, rtol, atol, equal_nan)).to(DType::u8));
    return close.item<std::uint8_t>() != 0;
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert) {
    const FunctionCall call("isin", {{"elements", elements}, {"test_elements", test_elements}}, {{"invert", invert}});
    call.require_defined({"elements", "test_elements"});
    ops::require_same_device("isin", elements.device(), test_elements.device());
    if (test_elements.numel() == 0)
        return call.result(full(elements.shape(), invert, {DType::boolean, elements.device()}));
    DType type = result_type(elements, test_elements);
    if (type == DType::boolean) type = DType::u8;
    const Tensor values = elements.detach().to(type);
    const Tensor sorted = sort(reshape(test_elements.detach().to(type), {test_elements.numel()})).values;
    const Tensor position = minimum(searchsorted(sorted, values), test_elements.numel() - 1),
                 found = take(sorted, position);
    return call.result(invert ? found != values : found == values);
}

}  // namespace declivity
