#include "graph.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "runtime/per_device.hpp"

namespace declivity::detail {
namespace {

// A graph may be a chain of a million nodes, whose nested destructors would overflow the stack. The outermost
// destructor keeps a list, to which nested ones move the nodes they own.
thread_local std::vector<std::shared_ptr<GradNode>>* doomed = nullptr;

template <class Release>
void release_flat(Release&& release) {
    if (doomed != nullptr) {
        release(*doomed);
        return;
    }
    std::vector<std::shared_ptr<GradNode>> list;
    doomed = &list;
    release(list);
    while (!list.empty()) {
        const std::shared_ptr<GradNode> node = std::move(list.back());
        list.pop_back();
    }
    doomed = nullptr;
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
    static std::atomic<bool> ever{false};
    return ever;
}

std::uint64_t next_sequence() {
    static std::atomic<std::uint64_t> sequence{0};
    return ++sequence;
}

Edge edge_of(const Tensor& tensor) {
    if (!tensor.defined()) return {};
    const auto& state = tensor.state();
    if (state->node) return {.node = state->node, .output = state->output};
    if (state->requires_grad) return {.leaf = state};
    return {};
}

void add_to_grad(const TensorState& tensor, Tensor present, const Tensor& gradient) {
    struct Adding {
        std::mutex mutex;
        std::condition_variable done;
        std::vector<const TensorState*> to;
    };
    auto& adding = per_device<Adding>(tensor.value.device());
    {
        std::unique_lock lock(adding.mutex);
        adding.done.wait(lock, [&] { return std::ranges::find(adding.to, &tensor) == adding.to.end(); });
        adding.to.push_back(&tensor);
    }
    struct Done {
        Adding& adding;
        const TensorState& tensor;
        ~Done() {
            {
                const std::scoped_lock lock(adding.mutex);
                std::erase(adding.to, &tensor);
            }
            adding.done.notify_all();
        }
    } const done{adding, tensor};
    present.add_(gradient);
}

}  // namespace declivity::detail
