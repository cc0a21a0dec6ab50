// Layer 2, private. Nodes of an Expression.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <declivity/ops/random.hpp>
#include <declivity/ops/lazy_array.hpp>

#include "ops/support/inline_vector.hpp"
#include "runtime/pending_access.hpp"
#include "expression.hpp"

namespace declivity::ops {

enum class Distribution : std::uint8_t { uniform, normal, bernoulli };

struct ExpressionNode {
    enum class Kind : std::uint8_t { view, value, constant, operator_result, apply, gradient, cast, random };
    Kind kind = {};
    DType dtype = {};
    Shape shape = {};
    View view = {};          // kind view; random: location of seed and base
    LazyArray source = {};   // kind value
    Scalar value = {};       // kind constant
    Function function = {};  // kinds apply, gradient
    int input = 0;           // kind gradient: index of the input
    // apply: the function's; gradient: g, then the function's, then y (empty if unused); cast: one
    InlineVector<Expression, 5> inputs = {};
    InlineVector<Scalar, 3> parameters = {};  // random: low, width and most; mean and deviation; probability
    Distribution distribution = {};           // kind random
    std::int64_t random_offset = 0;           // numbers of the call to skip after the base
};

// Limits of a kernel. All its arguments together have 1024 bytes (OpenCL's minimum): 9 operands of 80 bytes, numbers of
// 8.
constexpr int kMaxInputs = 8, kMaxNodes = 24, kMaxNumbers = 16;

/// Another node of the same kind over other inputs.
Expression with_inputs(const ExpressionNode& node, std::span<const Expression> inputs);

/// Replaces operator_result() in an expression.
Expression with_result(const Expression& expression, const Expression& result);

/// Replaces the leaves of an expression for which `leaf` returns an expression.
Expression with_leaves(const Expression& expression, const std::function<Expression(const ExpressionNode&)>& leaf);

/// A part of an expression that its kernel stores as an additional output of the same shape.
struct ExtraOutput {
    Expression part;
    View to;  // dense
};
constexpr std::size_t kMaxExtraOutputs = 2;

/// evaluate(expression, out) with additional outputs. Inputs and additional outputs are at most kMaxInputs.
void evaluate(const Expression& expression, const View& out, std::span<const ExtraOutput> extra_outputs);

/// Returns whether a node of `whole` is the root of `part`.
bool is_part_of(const Expression& whole, const Expression& part);

/// Returns whether find_donatable_input() may find one: a cheap test.
bool may_reuse_memory(const Expression& expression, DType dtype, const Shape& shape);
/// Finds the memory of an input into which the result may be written element by element, i.e. an input that can be
/// donated: it has the result's type and shape, is referenced by this expression only, and has no pending reader but
/// `reader`. @param handles number of handles to the expression itself
std::optional<View> find_donatable_input(const Expression& expression, long handles, DType dtype, const Shape& shape,
                                         const PendingLaunch* reader);

/// Returns whether a single kernel can compute it.
bool fits_one_kernel(const Expression& expression);

/// Converts to an expression over views only: pending values are inlined or computed first.
Expression over_views(const Expression& expression);

/// Calls `launch` with a pending value as an expression over views, for a kernel that reads it once and does not store
/// it; its inputs are protected from writes meanwhile. Returns false if `launch` does, if the value is computed, or if
/// it should be stored: an operation below fuses its functions as an epilogue, or it was inlined before.
bool launch_chain(const LazyArray& value, const std::function<bool(const Expression&)>& launch);

/// The type of a function's literals and parameters; that of its inputs if it returns bool.
DType working_type(const ExpressionNode& node);

/// @throws ValueError naming `function` if the type is an integer that cannot hold the value
void require_fits(std::string_view function, const Scalar& value, DType type);

}  // namespace declivity::ops
