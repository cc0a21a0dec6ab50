#include "followers.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "ops/support/sharing.hpp"
#include "region_view.hpp"

namespace declivity::detail {
namespace {

/// Live followers, with their region.
std::vector<std::pair<std::shared_ptr<TensorState>, std::shared_ptr<const Region>>> live_followers(
    const TensorState& base) {
    std::vector<std::pair<std::shared_ptr<TensorState>, std::shared_ptr<const Region>>> out;
    if (!base.followers) return out;
    const auto lock = lock_tensor(base);
    for (const Follower& follower : *base.followers)
        if (auto part = follower.part.lock()) out.emplace_back(std::move(part), follower.region);
    return out;
}

}  // namespace

void follow(const Tensor& base, const Tensor& part, std::shared_ptr<const Region> region) {
    const auto lock = lock_tensor(*state_of(base));  // parts of one tensor may be made by several threads
    auto& followers = state_of(base)->followers;
    if (!followers) followers = std::make_shared<std::vector<Follower>>();
    if (followers->size() == followers->capacity())
        std::erase_if(*followers, [](const Follower& item) { return item.part.expired(); });
    followers->push_back({state_of(part), std::move(region)});
}

void release_followers(const TensorState& base) {
    for (const auto& [part, region] : live_followers(base)) part->value = {};
}

void refresh_followers(const Tensor& base) {
    for (const auto& [part, region] : live_followers(*state_of(base))) {
        const Tensor updated = part_of(base, *region);
        part->value = state_of(updated)->value;
        part->output = state_of(updated)->output;
        part->shares = state_of(updated)->shares;
        const std::shared_ptr<GradNode> previous_node = std::exchange(part->node, state_of(updated)->node);
    }
}

bool follows(const TensorState& base, const Tensor& part) {
    for (const auto& [follower, region] : live_followers(base))
        if (follower == state_of(part)) return true;
    return false;
}

long count_followers(const TensorState& base) {
    long count = 0;
    for (const auto& [part, region] : live_followers(base)) count += part->shares == base.shares ? 1 : 0;
    return count;
}

bool shares_memory(const TensorState& tensor) {
    return tensor.shares && ops::is_shared(tensor.shares) && ops::is_shared(tensor.shares, 1 + count_followers(tensor));
}

}  // namespace declivity::detail
