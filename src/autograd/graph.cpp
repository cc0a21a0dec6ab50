#include "graph.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "runtime/per_device.hpp"

namespace declivity::detail {
namespace {

// A graph may be a chain of a million nodes, whose nested destructors would overflow the stack. The outermost
// destructor keeps a list, to which nested ones move the nodes they own.
thread_local std::vector<std::shared_ptr<GradNode>>* pending_release = nullptr;

template <class Release>
void release_flat(Release&& release) {
    if (pending_release != nullptr) {
        release(*pending_release);
        return;
    }
    std::vector<std::shared_ptr<GradNode>> list;
    pending_release = &list;
    release(list);
    while (!list.empty()) {
        const std::shared_ptr<GradNode> node = std::move(list.back());
        list.pop_back();
    }
    pending_release = nullptr;
}

}  // namespace

void release_node(std::shared_ptr<GradNode> node) {
    if (node) release_flat([&](auto& list) { list.push_back(std::move(node)); });
}

GradNode::~GradNode() {
    release_flat([this](auto& list) {
        for (Edge& edge : edges)
            if (edge.node) list.push_back(std::move(edge.node));
        rule = nullptr;
        recompute = nullptr;
    });
}

TensorState::~TensorState() { release_node(std::move(node)); }

std::atomic<bool>& leaves_have_hooks() {
    static std::atomic<bool> registered{false};
    return registered;
}

std::uint64_t next_sequence() {
    static std::atomic<std::uint64_t> sequence{0};
    return ++sequence;
}

Edge edge_of(const Tensor& tensor) {
    if (!tensor.defined()) return {};
    const auto& state = state_of(tensor);
    if (state->node) return {.node = state->node, .output = state->output};
    if (state->requires_grad) return {.leaf = state};
    return {};
}

void add_to_grad(const TensorState& tensor, Tensor current, const Tensor& gradient) {
    struct Accumulation {
        std::mutex mutex;
        std::condition_variable done;
        std::vector<const TensorState*> leaves;
    };
    auto& accumulation = per_device<Accumulation>(tensor.value.device());
    {
        std::unique_lock lock(accumulation.mutex);
        accumulation.done.wait(
            lock, [&] { return std::ranges::find(accumulation.leaves, &tensor) == accumulation.leaves.end(); });
        accumulation.leaves.push_back(&tensor);
    }
    struct Done {
        Accumulation& accumulation;
        const TensorState& tensor;
        ~Done() {
            {
                const std::scoped_lock lock(accumulation.mutex);
                std::erase(accumulation.leaves, &tensor);
            }
            accumulation.done.notify_all();
        }
    } const done{accumulation, tensor};
    current.add_(gradient);
}

}  // namespace declivity::detail
