#include "followers.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "ops/support/sharing.hpp"
#include "region_view.hpp"

namespace declivity::detail {
namespace {

/// Live followers, with their region.
std::vector<std::pair<std::shared_ptr<TensorState>, std::shared_ptr<const Region>>> living(const TensorState& whole) {
    std::vector<std::pair<std::shared_ptr<TensorState>, std::shared_ptr<const Region>>> out;
    if (!whole.followers) return out;
    const auto lock = lock_tensor(whole);
    for (const Follower& follower : *whole.followers)
        if (auto part = follower.part.lock()) out.emplace_back(std::move(part), follower.region);
    return out;
}

}  // namespace

void follow(const Tensor& whole, const Tensor& part, std::shared_ptr<const Region> region) {
    const auto lock = lock_tensor(*whole.state());  // parts of one tensor may be made by several threads
    auto& all = whole.state()->followers;
    if (!all) all = std::make_shared<std::vector<Follower>>();
    if (all->size() == all->capacity()) std::erase_if(*all, [](const Follower& item) { return item.part.expired(); });
    all->push_back({part.state(), std::move(region)});
}

void release_followers(const TensorState& whole) {
    for (const auto& [part, region] : living(whole)) part->value = {};
}

void refresh_followers(const Tensor& whole) {
    for (const auto& [part, region] : living(*whole.state())) {
        const Tensor now = part_of(whole, *region);
        part->value = now.state()->value;
        part->output = now.state()->output;
        part->shares = now.state()->shares;
        const std::shared_ptr<GradNode> before = std::exchange(part->node, now.state()->node);
    }
}

bool follows(const TensorState& whole, const Tensor& part) {
    for (const auto& [one, region] : living(whole))
        if (one == part.state()) return true;
    return false;
}

long count_followers(const TensorState& whole) {
    long count = 0;
    for (const auto& [part, region] : living(whole)) count += part->shares == whole.shares ? 1 : 0;
    return count;
}

bool shares_memory(const TensorState& tensor) {
    return tensor.shares && ops::is_shared(tensor.shares) && ops::is_shared(tensor.shares, 1 + count_followers(tensor));
}

}  // namespace declivity::detail
