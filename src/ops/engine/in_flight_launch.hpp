// Layer 2, private. A launch in progress, as seen by other threads while the launch lock is yielded.
#pragma once

#include <memory>
#include <vector>

#include "operation_state.hpp"
#include "lazy_array_state.hpp"
#include "launch_lock.hpp"

namespace declivity::ops {

/// A value or operation that this thread launches, registered from taking the lock until it is launched or has failed.
class InFlightLaunch final : public LaunchLock::InFlight {
  public:
    InFlightLaunch(LaunchLock& lock, LazyArrayState& value) : InFlight(lock), value_(&value) {}
    InFlightLaunch(LaunchLock& lock, Operation& operation) : InFlight(lock), operation_(&operation) {}

    /// The expression over views that its kernel will read: writers of these views wait for the launch. Null, or valid
    /// until the launch ends.
    void will_read(const Expression* expression) noexcept { expression_ = expression; }
    /// The operations of the same batched launch.
    void batches_with(const std::vector<std::shared_ptr<Operation>>* batch) noexcept { batch_ = batch; }

    /// The newest launch in flight of this thread. The lock must be held.
    [[nodiscard]] static InFlightLaunch* last(const LaunchLock& lock) noexcept {
        return static_cast<InFlightLaunch*>(lock.in_flight());
    }

  private:
    void on_yield(std::vector<const PendingLaunch*>& busy) override {
        if (value_ != nullptr) owner_ = value_->shared_from_this();
        else owner_ = operation_->shared_from_this();
        busy.push_back(owner_.get());
        if (batch_ != nullptr)
            for (const auto& item : *batch_) busy.push_back(item.get());
        if (expression_ != nullptr)
            for_each_view(*expression_, [&](const View& view) { add_reader(view.buffer, owner_); });
    }

    LazyArrayState* value_ = nullptr;
    Operation* operation_ = nullptr;
    const Expression* expression_ = nullptr;
    const std::vector<std::shared_ptr<Operation>>* batch_ = nullptr;
    std::shared_ptr<PendingLaunch> owner_;  // other threads may release theirs meanwhile
};

}  // namespace declivity::ops
