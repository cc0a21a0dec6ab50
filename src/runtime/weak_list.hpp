// Layer 1, private. A list of weak handles that several threads add to and take from.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace declivity::detail {

template <typename T>
class WeakList {
  public:
    void add(std::weak_ptr<T> item) {
        const std::lock_guard lock(mutex_);
        if (items_.size() >= limit_) {
            std::erase_if(items_, [](const auto& other) { return other.expired(); });
            limit_ = std::max<std::size_t>(8, items_.size() * 2);
        }
        items_.push_back(std::move(item));
        any_.store(true, std::memory_order_release);
    }

    /// Takes no lock: an empty list costs one load.
    [[nodiscard]] bool empty() const noexcept { return !any_.load(std::memory_order_acquire); }

    /// Takes all items out and calls `function` with each that is alive. If it throws, the item that failed and those
    /// after it are in the list again.
    template <typename Function>
    void drain(Function&& function) {
        std::vector<std::weak_ptr<T>> items;
        {
            const std::lock_guard lock(mutex_);
            items.swap(items_);
            any_.store(false, std::memory_order_release);
        }
        for (std::size_t i = 0; i < items.size(); ++i) {
            const auto item = items[i].lock();
            if (!item) continue;
            try {
                function(*item);
            } catch (...) {
                for (; i < items.size(); ++i) add(items[i]);
                throw;
            }
        }
    }

    template <typename Predicate>
    [[nodiscard]] bool any_of(Predicate&& predicate) const {
        std::vector<std::weak_ptr<T>> items;  // destroyed here, not under the lock
        {
            const std::lock_guard lock(mutex_);
            items = items_;
        }
        return std::ranges::any_of(items, [&](const auto& handle) {
            const auto item = handle.lock();
            return item && predicate(*item);
        });
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<T>> items_;
    std::size_t limit_ = 8;  // size of items_ from which on expired ones are removed
    std::atomic<bool> any_{false};
};

}  // namespace declivity::detail
