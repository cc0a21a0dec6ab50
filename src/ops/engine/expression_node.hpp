// Layer 2, private. What an Expression is made of.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <declivity/ops/random.hpp>
#include <declivity/ops/lazy_array.hpp>

#include "ops/support/inline_vector.hpp"
#include "expression.hpp"

namespace declivity::ops {

enum class Distribution : std::uint8_t { uniform, normal, bernoulli };

struct ExpressionNode {
    enum class Kind : std::uint8_t { view, value, constant, operator_result, apply, gradient, cast, random };
    Kind kind = {};
    DType dtype = {};
    Shape shape = {};
    View view = {};          // kind view; random: where seed and base lie
    LazyArray source = {};   // kind value
    Scalar value = {};       // kind constant
    Function function = {};  // kinds apply, gradient
    int input = 0;           // kind gradient: with respect to which input
    // apply: the function's; gradient: g, then the function's, then y (empty if unused); cast: one
    InlineVector<Expression, 5> inputs = {};
    InlineVector<Scalar, 3> parameters = {};  // random: low, width and most; mean and deviation; probability
    Distribution distribution = {};           // kind random
    std::int64_t random_offset = 0;           // numbers of the call that are left out, behind the base
};

// What a kernel may grow to. All its arguments together have 1024 bytes (the least that OpenCL grants): 9 operands of
// 80, numbers of 8.
constexpr int kMaxInputs = 8, kMaxNodes = 24, kMaxNumbers = 16;

/// Another node of the same kind over other inputs.
Expression with_inputs(const ExpressionNode& node, std::span<const Expression> inputs);

/// The expression with another one in place of operator_result().
Expression with_result(const Expression& expression, const Expression& result);

/// The expression with others in place of some leaves: those for which `leaf` gives one.
Expression with_leaves(const Expression& expression, const std::function<Expression(const ExpressionNode&)>& leaf);

/// A part of an expression that its kernel stores besides the whole, of the same shape.
struct AlsoStored {
    Expression part;
    View to;  // dense
};
constexpr std::size_t kMaxAlso = 2;

/// evaluate(expression, out), with parts of it. They and the inputs are kMaxInputs at most.
void evaluate(const Expression& expression, const View& out, std::span<const AlsoStored> also);

/// Whether a node of `whole` is the root of `part`.
bool is_part_of(const Expression& whole, const Expression& part);

/// Whether find_donatable_input() is worth asking.
bool may_reuse_memory(const Expression& expression, DType dtype, const Shape& shape);
/// Memory of an input that the result may be written to, element by element, since nobody can tell: it has the result's
/// type and shape, the expression alone leads to it, and nobody but `reader` still has to read it. @param handles to
/// the expression itself
std::optional<View> find_donatable_input(const Expression& expression, long handles, DType dtype, const Shape& shape,
                                         const PendingLaunch* reader);

/// Whether a kernel of its own can compute it.
bool fits_one_kernel(const Expression& expression);

/// An expression over views alone: values that are not computed are inlined into it, or computed first.
Expression over_views(const Expression& expression);

/// Calls `launch` with a value that waits, as an expression over views, for a kernel that reads it once and does not
/// store it. Nobody writes what it is made from meanwhile. False, as when `launch` gives false: its elements are there,
/// or are better computed first, since an operator below takes its functions up, or since it was asked for before.
bool launch_chain(const LazyArray& value, const std::function<bool(const Expression&)>& launch);

/// The type that literals and parameters of a function have; its inputs', where it gives bool.
DType working_type(const ExpressionNode& node);

/// @throws ValueError naming `function` when the type is an integer that cannot hold the value
void require_fits(std::string_view function, const Scalar& value, DType type);

}  // namespace declivity::ops
