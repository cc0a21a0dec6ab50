#include "in_place.hpp"

#include <array>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "backward.hpp"
#include "divisor.hpp"
#include "followers.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/support/sharing.hpp"
#include "runtime/capture.hpp"
#include "capture_tracker.hpp"

namespace declivity {
namespace detail {

TensorState& checked_state(const std::shared_ptr<TensorState>& state, std::string_view function) {
    if (!state) throw ValueError(fmt::format("{}: expected a tensor, got an undefined one", function));
    return *state;
}

const ops::LazyArray& used_value(const std::shared_ptr<TensorState>& state, std::string_view function) {
    const ops::LazyArray& value = checked_state(state, function).value;
    if (auto* const notes = CaptureTracker::current()) notes->uses(state);
    return value;
}

bool written_in_graph(const Tensor& tensor, std::string_view function, const Tensor& source) {
    const TensorState& state = checked_state(tensor.state(), function);
    if (!any_requires_grad({tensor, source})) return false;
    if (state.requires_grad)
        throw ValueError(
            fmt::format("{}: expected a tensor that does not require a gradient, got one of shape {} that requires a "
                        "gradient; write under NoGrad, or to a detach()ed clone",
                        function, tensor.shape().str()));
    if (shares_memory(state))
        throw ValueError(
            fmt::format("{}: expected a tensor with unshared memory when grad mode is on, got one of shape "
                        "{} that is a view or has one (x[i], slice, reshape, detach, ...), which would have to "
                        "change with it; release the other, write to a clone(), or to a part of x by x[i] = value "
                        "or x[i] += value",
                        function, tensor.shape().str()));
    if (CaptureTracker::current() != nullptr && ops::capture_of(state.value) != Capture::current_number())
        Capture::current()->refuse(fmt::format("{} under a graph to a tensor from before the step", function),
                                   "it would have another value after each call",
                                   "write under NoGrad, or to a tensor of the step");
    return true;
}

void require_no_overlap(std::string_view function, const ops::View& view) {
    for (int axis = 0; axis < view.rank(); ++axis)
        if (view.shape[axis] > 1 && view.strides[axis] == 0)
            throw ShapeError(
                fmt::format("{}: expected a tensor whose elements do not share memory, got shape {} with strides {} "
                            "(write to a clone() of an expanded tensor)",
                            function, view.shape.str(), view.strides.str()));
}

void require_fits_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other) {
    if (!other.is_scalar()) checked_state(other.tensor().state(), function);
    const DType made = other.is_scalar() && !other.scalar().is_floating() && is_integer(to.dtype())
                           ? to.dtype()
                           : result_type(to, other);
    if (dtype_info(made).kind > dtype_info(to.dtype()).kind)
        throw TypeError(fmt::format("{}: expected a result that fits the tensor's type, {}, got one of {}", function,
                                    name_of(to.dtype()), name_of(made)));
}

void require_divisible(std::string_view function, const Tensor& to) {
    if (!is_floating(to.dtype()))
        throw TypeError(
            fmt::format("{}: expected a tensor of f32, f64, f16 or bf16, got {}", function, name_of(to.dtype())));
}

Tensor changed_part(const Tensor& part, ops::Function function, const char* name, const TensorOrScalar& value) {
    require_fits_type_of(name, part, value);
    if (function == ops::Function::div) require_divisible(name, part);
    return elementwise(function, {part, value}, {}, name);
}

void become(const Tensor& tensor, Tensor made) {
    TensorState& state = *tensor.state();
    // Destroyed last: it may own a whole graph.
    const TensorState before{.value = std::exchange(state.value, made.value()),
                             .node = std::exchange(state.node, made.state()->node)};
    state.output = made.state()->output;
    state.shares.reset();
    made = {};
    refresh_followers(tensor);
    if (auto* const notes = CaptureTracker::current()) notes->value_replaced(tensor.state());
}

Tensor alias(std::string_view name, const Tensor& x, const ops::LazyArray& result, GradientRule rule) {
    Tensor out = attach_backward(name, {x}, result, std::move(rule), RuleKind::differentiable);
    const ops::LazyArray& from = x.state()->value;
    const bool copied = from.computed() && result.computed() && !(from.view().buffer == result.view().buffer);
    if (!copied) share_memory(x, out);
    return out;
}

ops::LazyArray donated_elements(Tensor& x) {
    (void)x.value();  // reports the use to the capture tracker
    TensorState& state = *x.state();
    return !ops::is_shared(x.state()) && !state.requires_grad ? std::move(state.value) : state.value;
}

ops::View writable_view(const ops::LazyArray& x) {
    const ops::View& from = x.view();
    if (!ops::is_shared(x)) {
        from.buffer.launch_readers();
        if (ops::may_write(from)) return from;
    }
    const ops::View out = ops::View::make(from.device(), from.dtype, from.shape);
    ops::copy(from, out);
    return out;
}

}  // namespace detail

using detail::become;
using detail::checked_state;
using detail::used_value;
using detail::written_in_graph;

namespace {

/// Memory that may be written in place.
ops::View writable(const Tensor& tensor, std::string_view function) {
    const ops::View& view = tensor.view();
    detail::require_no_overlap(function, view);
    return view;
}

/// Unshared elements: those of `source` if it is donated.
Tensor own_elements(Tensor source) {
    const detail::TensorState& state = *source.state();
    const ops::LazyArray& value = state.value;
    const bool own = !ops::is_shared(source.state()) && !state.requires_grad && !state.shares &&
                     (state.node != nullptr || !ops::is_shared(value)) &&
                     (!value.computed() || (!ops::is_shared(value.view().buffer) && value.view().dense()));
    return own ? source : source.clone();
}

void require_stretches(std::string_view function, const Shape& made, const Shape& wanted, const Tensor& other) {
    if (!(made == wanted))
        throw ShapeError(fmt::format("{}: expected a shape that broadcasts to {}, got {}", function, wanted.str(),
                                     other.shape().str()));
}

void fill_in_place(std::string_view name, const Tensor& to, const Scalar& value) {
    checked_state(to.state(), name);
    const FunctionCall call(name, {{"x", to}}, {{"value", value}});
    call.results({to});
    if (written_in_graph(to, name)) {
        const ops::View filled = ops::View::make(to.device(), to.dtype(), to.shape());
        ops::fill(filled, value, name);
        return become(to, Tensor(filled));
    }
    ops::fill(writable(to, name), value, name);
    to.bump_version();
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

void Tensor::bump_version() const { used_value(state_, "bump_version").view().buffer.bump_version(); }

void Tensor::assign(const Tensor& other) {
    auto& state = checked_state(state_, "assign");
    if (state.node) throw ValueError(fmt::format("assign: expected a leaf, got the result of {}", state.node->name));
    const auto& from = checked_state(other.state_, "assign");
    if (auto* const notes = detail::CaptureTracker::current()) {
        notes->uses(state_);
        notes->uses(other.state_);
        notes->writes_grad(state_);
    }
    state.value = from.value;
    state.shares.reset();
    detail::share_memory(other, *this);
    detail::exchange_grad(state, {});
}

Tensor& Tensor::copy_(Tensor source) {
    const ops::LazyArray& to = checked_state(state_, "copy_").value;
    checked_state(source.state(), "copy_");
    const FunctionCall call("copy_", {{"x", *this}, {"source", source}});
    call.results({*this});
    ops::require_shape("copy_", "the source", source.shape(), to.shape());
    if (source.dtype() != to.dtype())
        throw TypeError(
            fmt::format("copy_: expected a source of type {}, got {}", name_of(to.dtype()), name_of(source.dtype())));
    const Device target = to.device();
    if (written_in_graph(*this, "copy_", source)) {
        if (!(source.device() == target)) source = source.to(target);
        become(*this, own_elements(std::exchange(source, {})));
        return *this;
    }
    const ops::View place = writable(*this, "copy_");
    const NoGrad no_grad;
    if (!(source.device() == target)) source = source.to(target);
    ops::evaluate_into("copy_", detail::release_value(std::exchange(source, {})), place);
    return *this;
}

Tensor& Tensor::fill_(Scalar value) {
    fill_in_place("fill_", *this, value);
    return *this;
}

Tensor& Tensor::zero_() {
    fill_in_place("zero_", *this, 0);
    return *this;
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
