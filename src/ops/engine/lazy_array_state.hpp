// Layer 2, private. State of a LazyArray: elements, an expression, or an output of an operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/runtime/scope.hpp>

#include "access.hpp"
#include "expression_node.hpp"
#include "runtime/capture.hpp"
#include "pending_access.hpp"

namespace declivity::ops {

class Operation;

/// Cost of an expression, including the pending values within it. Common subexpressions are counted repeatedly.
struct Measure {
    int inputs = 0, nodes = 0, numbers = 0;
    bool costly = false;  // contains functions such as exp, more expensive than storing their result

    Measure& operator+=(const Measure& other) {
        inputs += other.inputs;
        nodes += other.nodes;
        numbers += other.numbers;
        costly = costly || other.costly;
        return *this;
    }
};

Measure measure(const Expression& expression);
/// Returns whether one kernel can compute it.
bool fits(const Measure& measure);

struct LazyArrayState final : PendingLaunch, std::enable_shared_from_this<LazyArrayState> {
    LazyArrayState(const Device& on, DType type, const Shape& size) : device(on), dtype(type), shape(size) {}

    const Device device;
    const DType dtype;
    const Shape shape;
    const ScopePath scope = Scope::path();  // of the call, for errors
    const std::uint64_t capture =
        Capture::current_number();  // that was active on creation; values created before a capture are not part of it
    std::optional<Scalar> constant = {};  // a number of shape (), known to functions that use it; immutable
    std::atomic<bool> computed{false};
    View view = {};                             // if computed; before, without a buffer, the layout in the base
    std::uint64_t version = 0;                  // of its memory when computed
    Expression expression = {};                 // if pending
    std::shared_ptr<Operation> operation = {};  // or this
    std::size_t output = 0;                     // of the operation
    LazyArray base = {};                        // or this, of which it is a view
    int placeholder = -1;                       // or the placeholder of a formula (formula.hpp), never computed
    Measure measure = {};                       // of the expression
    bool inlined = false;                       // a kernel computed it without storing it
    std::vector<std::weak_ptr<PendingLaunch>> readers =
        {};  // pending values that read it; moved to its memory once that exists

    /// Returns whether it cannot be inlined: an output of an operation, a view, or a formula's placeholder.
    [[nodiscard]] bool is_opaque() const { return operation != nullptr || base || placeholder >= 0; }
    /// Returns whether functions of it may become the epilogue of its operation.
    [[nodiscard]] bool fuses_epilogue() const { return operation != nullptr && output == 0; }
    void launch() override { compute(); }
    [[nodiscard]] bool pending() const noexcept override { return !computed.load(std::memory_order_acquire); }
    /// @param destination where the elements may be stored, instead of new memory
    void compute(const std::optional<View>& destination = std::nullopt);
    /// The launch lock must be held.
    void computed_as(const View& result);

  private:
    /// Computes it as the epilogue of the operation whose first output is `first`.
    void compute_with_epilogue(LazyArrayState& first, const Expression& epilogue,
                               const std::optional<View>& destination);
};

/// Calls visit(state) for each leaf of the expression itself that is a lazy array.
template <class Visit>
void for_each_value(const Expression& expression, Visit&& visit) {
    if (!expression) return;
    const ExpressionNode& node = *expression.node();
    if (node.kind == ExpressionNode::Kind::value) visit(*state_of(node.source));
    for (const Expression& input : node.inputs) for_each_value(input, visit);
}

/// Calls visit(view) for each leaf of the expression itself that is a view or a computed lazy array.
template <class Visit>
void for_each_view(const Expression& expression, Visit&& visit) {
    if (!expression) return;
    const ExpressionNode& node = *expression.node();
    if (node.kind == ExpressionNode::Kind::view) visit(node.view);
    if (node.kind == ExpressionNode::Kind::value && node.source.computed()) visit(node.source.view());
    for (const Expression& input : node.inputs) for_each_view(input, visit);
}

/// Returns whether the expression itself has leaves that are lazy arrays.
bool has_values(const Expression& expression);
/// Computes the inputs created before the current capture, which its kernels must not recompute in each replay.
void compute_older(const Expression& expression);

}  // namespace declivity::ops
