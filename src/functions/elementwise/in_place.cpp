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

using detail::checked_state;
using detail::replace_value;
using detail::writable;
using detail::written_in_graph;

namespace {

void require_broadcasts_to(std::string_view function, const Shape& result, const Shape& target, const Tensor& other) {
    if (!(result == target))
        throw ShapeError(fmt::format("{}: expected a shape that broadcasts to {}, got {}", function, target.str(),
                                     other.shape().str()));
}

/// Operand of a write: a tensor in the type of `to`, or a number.
TensorOrScalar in_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other) {
    detail::require_fits_type_of(function, to, other);
    if (other.is_scalar() || other.tensor().dtype() == to.dtype()) return other;
    return other.tensor().to(to.dtype());
}

/// A function of a tensor whose parameter is a scalar.
struct ScalarFunction {
    ops::Function function;
    Scalar scalar;
};

ScalarFunction scalar_function(ops::Function function, const Scalar& scalar) {
    switch (function) {
        case ops::Function::add:
            return {ops::Function::add_scalar, scalar};
        case ops::Function::sub:
            return {ops::Function::add_scalar, -scalar};
        default:  // mul
            return {ops::Function::mul_scalar, scalar};
    }
}

void apply_in_place(const ScalarFunction& change, std::string_view name, const Tensor& to) {
    if (written_in_graph(to, name)) return replace_value(to, elementwise(change.function, {to}, {change.scalar}, name));
    const ops::View destination = writable(to, name);
    const ops::Expression operands[] = {destination};
    const Scalar parameters[] = {change.scalar};
    ops::evaluate(ops::Expression::apply(change.function, operands, parameters, name), destination);
    to.bump_version();
}

/// Writes the result of a function of `to` and `other` into `to`.
void write_result(std::string_view name, const Tensor& to, const Tensor& result, const TensorOrScalar& other) {
    if (!other.is_scalar()) require_broadcasts_to(name, result.shape(), to.shape(), other.tensor());
    Tensor(to).copy_(result.to(to.dtype()));
}

void apply_in_place(ops::Function function, std::string_view name, const Tensor& to, const TensorOrScalar& operand) {
    checked_state(state_of(to), name);
    const std::array inputs{CallInput{"x", to},
                            operand.is_scalar() ? CallInput{} : CallInput{"other", operand.tensor()}};
    const std::array attributes{operand.is_scalar() ? CallAttribute{"other", operand.scalar()} : CallAttribute{}};
    const FunctionCall call(name, name, std::span(inputs).first(operand.is_scalar() ? 1 : 2),
                            std::span(attributes).first(operand.is_scalar() ? 1 : 0));
    call.results({to});
    const TensorOrScalar other = in_type_of(name, to, operand);
    if (function == ops::Function::div) detail::require_divisible(name, to);
    // With f16 and bf16, an operand of another type is not rounded to theirs first.
    const bool keeps_operand_type = !operand.is_scalar() && is_16bit_float(to.dtype()) &&
                                    is_floating(operand.tensor().dtype()) && operand.tensor().dtype() != to.dtype();
    if (keeps_operand_type) return write_result(name, to, elementwise(function, {to, operand}, {}, name), operand);
    if (to.dtype() == DType::boolean)
        return write_result(name, to, elementwise(function, {to, other}, {}, name), operand);
    if (other.is_scalar() && function == ops::Function::div) {
        const detail::Factors factors = detail::factors_of(to.dtype(), other.scalar().to_double());
        apply_in_place(ScalarFunction{ops::Function::mul_scalar, factors.first}, name, to);
        if (factors.second != 1) apply_in_place(ScalarFunction{ops::Function::mul_scalar, factors.second}, name, to);
        return;
    }
    if (other.is_scalar()) return apply_in_place(scalar_function(function, other.scalar()), name, to);
    if (written_in_graph(to, name, other.tensor())) {
        Tensor result = elementwise(function, {to, other}, {}, name);
        require_broadcasts_to(name, result.shape(), to.shape(), other.tensor());
        return replace_value(to, result.dtype() == to.dtype() ? std::move(result) : result.to(to.dtype()));
    }
    const ops::View destination = writable(to, name);
    const ops::Expression operands[] = {destination, other.tensor().view()};
    const auto result = ops::Expression::apply(function, operands, {}, name);
    require_broadcasts_to(name, result.shape(), destination.shape, other.tensor());
    ops::evaluate(result, destination);
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
