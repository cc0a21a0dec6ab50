// Layer 2, private. What a Value stands for: elements, an expression, or an output of an operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/runtime/scope.hpp>

#include "expression_node.hpp"
#include "runtime/capture.hpp"

namespace declivity::ops {

class Operation;

/// What an expression costs, values within it that are not computed included. Counted as if nothing were shared.
struct Measure {
    int inputs = 0, nodes = 0, numbers = 0;
    bool costly = false;  // functions such as exp, more expensive than to store their result

    Measure& operator+=(const Measure& other) {
        inputs += other.inputs;
        nodes += other.nodes;
        numbers += other.numbers;
        costly = costly || other.costly;
        return *this;
    }
};

Measure measure(const Expression& expression);
/// Whether one kernel takes it.
bool fits(const Measure& measure);

struct LazyArrayState final : PendingLaunch, std::enable_shared_from_this<LazyArrayState> {
    LazyArrayState(const Device& on, DType type, const Shape& size) : device(on), dtype(type), shape(size) {}

    const Device device;
    const DType dtype;
    const Shape shape;
    const ScopePath scope = Scope::path();  // of the call, for errors
    const std::uint64_t capture =
        Capture::current_number();  // that was at work when it was made; what is older is no part of a recording
    std::optional<Scalar> constant =
        {};  // one number without axes, which whatever computes with it knows; fixed when made
    std::atomic<bool> computed{false};
    View view = {};                             // when computed; before, without a buffer, that of a base's elements
    std::uint64_t version = 0;                  // of its memory, then
    Expression expression = {};                 // until then
    std::shared_ptr<Operation> operation = {};  // or this
    std::size_t output = 0;                     // of the operation
    LazyArray base = {};                        // or this, whose elements it is in another layout
    int stands_for = -1;   // or it stands for elements of a formula (formula.hpp), and never has any
    Measure measure = {};  // of the expression
    bool inlined = false;  // a kernel computed it without storing it
    std::vector<std::weak_ptr<PendingLaunch>> readers =
        {};  // values to be made from it, until it has memory that knows them

    /// No expression, which may be inlined: an output of an operation, or another layout of a value.
    [[nodiscard]] bool is_opaque() const { return operation != nullptr || base || stands_for >= 0; }
    /// Whether what follows it may become the epilogue of its operation.
    [[nodiscard]] bool fuses_epilogue() const { return operation != nullptr && output == 0; }
    void launch() override { compute(); }
    [[nodiscard]] bool pending() const noexcept override { return !computed.load(std::memory_order_acquire); }
    /// @param place where the elements may go, in place of memory of their own
    void compute(const std::optional<View>& place = std::nullopt);
    /// With the values' lock held.
    void computed_as(const View& result);

  private:
    /// As the epilogue of the operation whose first output is `first`.
    void compute_behind(LazyArrayState& first, const Expression& epilogue, const std::optional<View>& place);
};

/// Calls visit(state) for each leaf of the expression itself that is a value.
template <class Visit>
void for_each_value(const Expression& expression, Visit&& visit) {
    if (!expression) return;
    const ExpressionNode& node = *expression.node();
    if (node.kind == ExpressionNode::Kind::value) visit(*node.source.state());
    for (const Expression& input : node.inputs) for_each_value(input, visit);
}

/// Calls visit(view) for each leaf of the expression itself that is a view, or a value that is computed.
template <class Visit>
void for_each_view(const Expression& expression, Visit&& visit) {
    if (!expression) return;
    const ExpressionNode& node = *expression.node();
    if (node.kind == ExpressionNode::Kind::view) visit(node.view);
    if (node.kind == ExpressionNode::Kind::value && node.source.computed()) visit(node.source.view());
    for (const Expression& input : node.inputs) for_each_view(input, visit);
}

/// Whether the expression itself has leaves that are values.
bool has_values(const Expression& expression);
/// Values from before a recording are not for its kernels to compute, over and over.
void compute_older(const Expression& expression);

}  // namespace declivity::ops
