// Splits an expression into kernels: the fused part, additional outputs, and values computed first.
#include "lowering.hpp"

#include <algorithm>
#include <atomic>

#include "operation_state.hpp"
#include "ops/support/sharing.hpp"

namespace declivity::ops {

using Node = ExpressionNode;
using Kind = Node::Kind;

Measure measure(const Expression& expression) {
    if (!expression) return {};
    const Node& node = *expression.node();
    switch (node.kind) {
        case Kind::view:
            return {.inputs = 1};
        case Kind::value: {
            const LazyArrayState& state = *state_of(node.source);
            return state.computed.load(std::memory_order_acquire) || state.is_opaque() ? Measure{.inputs = 1}
                                                                                       : state.measure;
        }
        case Kind::constant:
            return {.numbers = 1};
        case Kind::operator_result:
            return {.inputs = 1};
        case Kind::random:
            return {.inputs = 1,
                    .nodes = 1,
                    .numbers = static_cast<int>(node.parameters.size()) + 1,
                    .costly = true};  // its first block is a number
        default:
            break;
    }
    Measure all{.nodes = 1, .numbers = static_cast<int>(node.parameters.size())};
    for (const Expression& input : node.inputs) all += measure(input);
    if (node.kind == Kind::apply) all.costly = all.costly || info(node.function).costly;
    if (node.kind == Kind::gradient)
        all.costly = all.costly || info(node.function).gradient_info[static_cast<std::size_t>(node.input)].costly;
    return all;
}

bool fits(const Measure& measure) {
    return measure.inputs <= kMaxInputs && measure.nodes <= kMaxNodes && measure.numbers <= kMaxNumbers;
}

Expression Lowering::run(const Expression& expression, const LazyArrayState* result) {
    for (;;) try {
            yields_ = lock_.yields();
            if (!launch_operations(expression, result)) {
                reset();
                continue;
            }
            result_ = result;
            room_ = std::clamp(kMaxInputs - measure(expression).inputs, 0, static_cast<int>(kMaxExtraOutputs));
            return lower(expression);
        } catch (const RestartLowering&) {
            reset();
        }
}

bool Lowering::above_operation(const Expression& expression) {
    for (;;) try {
            return gather(expression);
        } catch (const RestartLowering&) {
            reset();
        }
}

void Lowering::reset() noexcept {
    references_.clear();
    leaves_.clear();
    seen_.clear();
    nodes_.clear();
    values_.clear();
    stored_.clear();
    operation_ = nullptr;
}

/// Blocks while another thread has the value in flight and has yielded the lock.
void Lowering::wait_if_busy(const LazyArrayState& state) {
    const PendingLaunch* const busy = lock_.busy(&state)                  ? static_cast<const PendingLaunch*>(&state)
                                      : lock_.busy(state.operation.get()) ? state.operation.get()
                                                                          : nullptr;
    if (busy != nullptr && lock_.wait_for(busy)) throw RestartLowering{};
}

/// May yield the lock, which invalidates all inspected state.
Expression Lowering::compute(LazyArrayState& state) {
    state.compute();
    if (lock_.yields() != yields_) throw RestartLowering{};
    return Expression(state.view);
}

Lowering::Reference* Lowering::find(const LazyArrayState* state) {
    const auto found = std::ranges::find(references_, state, &Reference::state);
    return found == references_.end() ? nullptr : &*found;
}

/// Returns whether there are references from outside of this kernel.
bool Lowering::is_shared(const Reference& reference) const {
    const auto is_shared_leaf = [&](const Leaf& leaf) {
        return leaf.state == reference.state && leaf.uses > leaf.counted_uses;
    };
    return ops::is_shared(reference.state->weak_from_this(), reference.count) ||
           std::ranges::any_of(leaves_, is_shared_leaf);
}

void Lowering::count_use(const Expression& leaf) {
    const Node* node = leaf.node().get();
    const auto known = std::ranges::find(leaves_, node, &Leaf::node);
    if (known != leaves_.end()) ++known->counted_uses;
    else leaves_.push_back({node, state_of(node->source).get(), handles_to(leaf.node()), 1});
}

/// Counts references, bottom up. @return whether an output of an operation is among them
bool Lowering::gather(const Expression& expression) {
    if (!expression) return false;
    const Node& node = *expression.node();
    if (node.kind == Kind::value && !node.source.computed() && state_of(node.source)->fuses_epilogue())
        count_use(expression);
    for (const auto& [seen, below] : seen_)
        if (seen == &node) return below;
    bool below = false;
    if (node.kind == Kind::value && !node.source.computed()) {
        LazyArrayState& state = *state_of(node.source);
        wait_if_busy(state);
        if (Reference* known = find(&state)) {
            ++known->count;
            below = known->below_operation;
        } else {
            below = state.is_opaque() || gather(state.expression);
            references_.push_back({&state, 1, below});
        }
    }
    for (const Expression& input : node.inputs) below = gather(input) || below;
    seen_.emplace_back(&node, below);
    return below;
}

/// Launches operations that cannot fuse the rest as their epilogue. Returns false if something was computed, so that
/// the inspection must be repeated.
bool Lowering::launch_operations(const Expression& expression, const LazyArrayState* result) {
    gather(expression);
    LazyArrayState* first = nullptr;
    int operations = 0;
    for (const Reference& reference : references_) {
        if (!reference.below_operation) continue;
        const LazyArrayState& state = *reference.state;
        const bool fits =
            result != nullptr && state.shape == result->shape &&
            (state.dtype == result->dtype || (state.fuses_epilogue() && state.operation->fuses_output_cast()));
        // If a value between the operation and here is shared, the epilogue ends there.
        if (is_shared(reference) || (state.is_opaque() && !(fits && state.fuses_epilogue()))) {
            reference.state->compute();
            return false;
        }
        if (!state.is_opaque()) continue;
        if (++operations == 1) first = reference.state;
    }
    if (operations > 1) {
        first->compute();
        return false;
    }
    operation_ = first;
    return true;
}

Expression Lowering::lower(const Expression& expression) {
    if (!expression) return {};
    for (const auto& [from, to] : nodes_)
        if (from == expression.node().get()) return to;
    const Node& node = *expression.node();
    const Expression lowered = node.kind == Kind::value ? lower(*state_of(node.source)) : lower(expression, node);
    nodes_.emplace_back(&node, lowered);
    return lowered;
}

Expression Lowering::lower(const Expression& expression, const Node& node) {
    InlineVector<Expression, 5> inputs;
    bool changed = false;
    for (const Expression& input : node.inputs) {
        // Broadcasting would recompute small values repeatedly.
        const bool stretches = input && input.node()->kind == Kind::value && !(input.shape() == node.shape);
        inputs.push_back(stretches ? compute(*state_of(input.node()->source)) : lower(input));
        changed = changed || inputs.back().node() != input.node();
    }
    return changed ? with_inputs(node, std::span(inputs.begin(), inputs.size())) : expression;
}

Expression Lowering::lower(LazyArrayState& state) {
    for (const auto& [from, to] : values_)
        if (from == &state) return to;
    const Expression lowered = inline_value(state);
    values_.emplace_back(&state, lowered);
    return lowered;
}

namespace {

/// Upcasts of f16 and bf16 values to f32: recomputing them from half of the bytes is cheaper than storing them.
bool upcasts_to_f32(const Expression& expression) {
    const Node& node = *expression.node();
    return node.kind == Kind::cast && is_16bit_float(node.inputs[0].dtype()) && !is_16bit_float(node.dtype);
}

}  // namespace

Expression Lowering::inline_value(LazyArrayState& state) {
    if (state.computed.load(std::memory_order_acquire)) return Expression(state.view);
    if (&state == operation_) return Expression::operator_result(state.dtype, state.shape);
    // Another reference may never be evaluated, so a shared value need not be stored at first; but it must not be
    // computed by two kernels.
    const bool store =
        is_shared(*find(&state)) && (state.inlined || state.measure.costly) && !upcasts_to_f32(state.expression);
    const bool has_room =
        result_ != nullptr && operation_ == nullptr && std::ssize(stored_) < room_ && state.shape == result_->shape;
    if (store && !has_room) return compute(state);
    state.inlined = true;
    Expression lowered = lower(state.expression);
    if (store && std::ssize(stored_) == room_) return compute(state);  // its inputs used up the additional outputs
    if (store) stored_.push_back({state.shared_from_this(), lowered});
    return lowered;
}

}  // namespace declivity::ops
