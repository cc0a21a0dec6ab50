#include "dependent_views.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "ops/support/sharing.hpp"
#include "region_view.hpp"

namespace declivity::detail {
namespace {

/// Live dependent views, with their region.
std::vector<std::pair<std::shared_ptr<TensorState>, std::shared_ptr<const Region>>> live_dependent_views(
    const TensorState& base) {
    std::vector<std::pair<std::shared_ptr<TensorState>, std::shared_ptr<const Region>>> out;
    if (!base.dependent_views) return out;
    const auto lock = lock_tensor(base);
    for (const DependentView& dependent_view : *base.dependent_views)
        if (auto part = dependent_view.part.lock()) out.emplace_back(std::move(part), dependent_view.region);
    return out;
}

}  // namespace

void add_dependent_view(const Tensor& base, const Tensor& part, std::shared_ptr<const Region> region) {
    const auto lock = lock_tensor(*state_of(base));  // parts of one tensor may be made by several threads
    auto& dependent_views = state_of(base)->dependent_views;
    if (!dependent_views) dependent_views = std::make_shared<std::vector<DependentView>>();
    if (dependent_views->size() == dependent_views->capacity())
        std::erase_if(*dependent_views, [](const DependentView& item) { return item.part.expired(); });
    dependent_views->push_back({state_of(part), std::move(region)});
}

void release_dependent_views(const TensorState& base) {
    for (const auto& [part, region] : live_dependent_views(base)) part->value = {};
}

void refresh_dependent_views(const Tensor& base) {
    for (const auto& [part, region] : live_dependent_views(*state_of(base))) {
        const Tensor updated = part_of(base, *region);
        part->value = state_of(updated)->value;
        part->output = state_of(updated)->output;
        part->shares = state_of(updated)->shares;
        const std::shared_ptr<GradNode> previous_node = std::exchange(part->node, state_of(updated)->node);
    }
}

bool is_dependent_view(const TensorState& base, const Tensor& part) {
    for (const auto& [dependent_view, region] : live_dependent_views(base))
        if (dependent_view == state_of(part)) return true;
    return false;
}

long count_dependent_views(const TensorState& base) {
    long count = 0;
    for (const auto& [part, region] : live_dependent_views(base)) count += part->shares == base.shares ? 1 : 0;
    return count;
}

bool shares_memory(const TensorState& tensor) {
    return tensor.shares && ops::is_shared(tensor.shares) &&
           ops::is_shared(tensor.shares, 1 + count_dependent_views(tensor));
}

}  // namespace declivity::detail
