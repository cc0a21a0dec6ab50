// x.add_(y), x &= y and their like.
#include <array>
#include <span>
#include <utility>

#include <declivity/functions/elementwise.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/in_place.hpp"
#include "divisor.hpp"
#include "functions/support/in_place_arithmetic.hpp"
#include "ops/engine/expression.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::become;
using detail::checked_state;
using detail::written_in_graph;

namespace {

/// Memory that may be written in place.
ops::View writable(const Tensor& tensor, std::string_view function) {
    const ops::View& view = tensor.view();
    detail::require_no_overlap(function, view);
    return view;
}

void require_stretches(std::string_view function, const Shape& made, const Shape& wanted, const Tensor& other) {
    if (!(made == wanted))
        throw ShapeError(fmt::format("{}: expected a shape that broadcasts to {}, got {}", function, wanted.str(),
                                     other.shape().str()));
}

/// Operand of a write: a tensor in the type of `to`, or a number.
TensorOrScalar in_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other) {
    detail::require_fits_type_of(function, to, other);
    if (other.is_scalar() || other.tensor().dtype() == to.dtype()) return other;
    return other.tensor().to(to.dtype());
}

/// A function of a tensor and a number, which is its parameter.
struct WithNumber {
    ops::Function function;
    Scalar number;
};

WithNumber with_number(ops::Function function, const Scalar& number) {
    switch (function) {
        case ops::Function::add:
            return {ops::Function::add_scalar, number};
        case ops::Function::sub:
            return {ops::Function::add_scalar, -number};
        default:  // mul
            return {ops::Function::mul_scalar, number};
    }
}

void apply_in_place(const WithNumber& change, std::string_view name, const Tensor& to) {
    if (written_in_graph(to, name)) return become(to, elementwise(change.function, {to}, {change.number}, name));
    const ops::View place = writable(to, name);
    const ops::Expression operands[] = {place};
    const Scalar parameters[] = {change.number};
    ops::evaluate(ops::Expression::apply(change.function, operands, parameters, name), place);
    to.bump_version();
}

/// Writes the result of a function of `to` and `other` into `to`.
void write_result(std::string_view name, const Tensor& to, const Tensor& made, const TensorOrScalar& other) {
    if (!other.is_scalar()) require_stretches(name, made.shape(), to.shape(), other.tensor());
    Tensor(to).copy_(made.to(to.dtype()));
}

void apply_in_place(ops::Function function, std::string_view name, const Tensor& to, const TensorOrScalar& given) {
    checked_state(to.state(), name);
    const std::array inputs{CallInput{"x", to}, given.is_scalar() ? CallInput{} : CallInput{"other", given.tensor()}};
    const std::array attributes{given.is_scalar() ? CallAttribute{"other", given.scalar()} : CallAttribute{}};
    const FunctionCall call(name, name, std::span(inputs).first(given.is_scalar() ? 1 : 2),
                            std::span(attributes).first(given.is_scalar() ? 1 : 0));
    call.results({to});
    const TensorOrScalar other = in_type_of(name, to, given);
    if (function == ops::Function::div) detail::require_divisible(name, to);
    // With f16 and bf16, an operand of another type is not rounded to theirs first.
    const bool keeps = !given.is_scalar() && is_16bit_float(to.dtype()) && is_floating(given.tensor().dtype()) &&
                       given.tensor().dtype() != to.dtype();
    if (keeps) return write_result(name, to, elementwise(function, {to, given}, {}, name), given);
    if (to.dtype() == DType::boolean)
        return write_result(name, to, elementwise(function, {to, other}, {}, name), given);
    if (other.is_scalar() && function == ops::Function::div) {
        const detail::Factors by = detail::factors_of(to.dtype(), other.scalar().to_double());
        apply_in_place(WithNumber{ops::Function::mul_scalar, by.first}, name, to);
        if (by.second != 1) apply_in_place(WithNumber{ops::Function::mul_scalar, by.second}, name, to);
        return;
    }
    if (other.is_scalar()) return apply_in_place(with_number(function, other.scalar()), name, to);
    if (written_in_graph(to, name, other.tensor())) {
        Tensor made = elementwise(function, {to, other}, {}, name);
        require_stretches(name, made.shape(), to.shape(), other.tensor());
        return become(to, made.dtype() == to.dtype() ? std::move(made) : made.to(to.dtype()));
    }
    const ops::View place = writable(to, name);
    const ops::Expression operands[] = {place, other.tensor().view()};
    const auto made = ops::Expression::apply(function, operands, {}, name);
    require_stretches(name, made.shape(), place.shape, other.tensor());
    ops::evaluate(made, place);
    to.bump_version();
}

}  // namespace

Tensor& operator&=(Tensor& x, const TensorOrScalar& other) {
    detail::require_fits_type_of("operator&=", x, other);
    write_result("operator&=", x, elementwise(ops::Function::bitwise_and, {x, other}, {}, "operator&="), other);
    return x;
}
Tensor& operator|=(Tensor& x, const TensorOrScalar& other) {
    detail::require_fits_type_of("operator|=", x, other);
    write_result("operator|=", x, elementwise(ops::Function::bitwise_or, {x, other}, {}, "operator|="), other);
    return x;
}
Tensor& operator^=(Tensor& x, const TensorOrScalar& other) {
    detail::require_fits_type_of("operator^=", x, other);
    write_result("operator^=", x, elementwise(ops::Function::bitwise_xor, {x, other}, {}, "operator^="), other);
    return x;
}

Tensor& Tensor::add_(TensorOrScalar other) {
    apply_in_place(ops::Function::add, "add_", *this, other);
    return *this;
}
Tensor& Tensor::sub_(TensorOrScalar other) {
    apply_in_place(ops::Function::sub, "sub_", *this, other);
    return *this;
}
Tensor& Tensor::mul_(TensorOrScalar other) {
    apply_in_place(ops::Function::mul, "mul_", *this, other);
    return *this;
}
Tensor& Tensor::div_(TensorOrScalar other) {
    apply_in_place(ops::Function::div, "div_", *this, other);
    return *this;
}

}  // namespace declivity
