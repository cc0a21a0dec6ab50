// Finds an input whose memory can be donated to the result.
#include <algorithm>

#include "elementwise_source.hpp"
#include "ops/support/sharing.hpp"

namespace declivity::ops {
namespace {

using Node = ExpressionNode;

constexpr std::size_t kMinBytes = 1 << 14;  // below this size, reuse is not worth compiling another kernel

/// Returns whether a node is a view of a whole buffer with the result's layout.
bool is_candidate(const Node& node, DType dtype, const Shape& shape) {
    const View& view = node.view;
    return node.kind == Node::Kind::view && view.dtype == dtype && view.shape == shape && view.offset == 0 &&
           view.dense() && view.bytes() == view.buffer.size();
}

}  // namespace

bool is_part_of(const Expression& expression, const Expression& part) {
    const Steps steps = steps_of(expression);
    return steps.find(part) < static_cast<int>(steps.nodes.size());
}

bool may_reuse_memory(const Expression& expression, DType dtype, const Shape& shape) {
    if (bytes_of(shape, dtype) < kMinBytes) return false;
    const Steps steps = steps_of(expression);
    return std::ranges::any_of(steps.nodes, [&](const Node* node) { return is_candidate(*node, dtype, shape); });
}

std::optional<View> find_donatable_input(const Expression& expression, long handles, DType dtype, const Shape& shape,
                                         const PendingLaunch* reader) {
    if (!may_reuse_memory(expression, dtype, shape)) return std::nullopt;
    const Steps steps = steps_of(expression);
    // Marks the nodes that only this expression references, users before their inputs.
    struct Use {
        const std::shared_ptr<const Node>* node = nullptr;
        long count = 0;
        bool unique = true;
    };
    std::vector<Use> uses(steps.nodes.size());
    uses.back() = {&expression.node(), handles};
    for (std::size_t at = steps.nodes.size(); at-- > 0;) {
        uses[at].unique = uses[at].unique && !is_shared(*uses[at].node, uses[at].count);
        for (const Expression& input : steps.nodes[at]->inputs) {
            if (!input) continue;
            Use& use = uses[static_cast<std::size_t>(steps.find(input))];
            use.node = &input.node();
            ++use.count;
            use.unique = use.unique && uses[at].unique;
        }
    }
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
        if (!is_candidate(*steps.nodes[at], dtype, shape)) continue;
        const View& view = steps.nodes[at]->view;
        long views = 0;
        bool same = true;
        for (std::size_t other = 0; other < steps.nodes.size(); ++other) {
            const Node& node = *steps.nodes[other];
            if (node.kind != Node::Kind::view || !(node.view.buffer == view.buffer)) continue;
            ++views;
            // Each element is read only by the work-item that writes it.
            same = same && uses[other].unique && same_elements(node.view, view);
        }
        if (same && may_write(view, views, reader)) return view;
    }
    return std::nullopt;
}

}  // namespace declivity::ops
