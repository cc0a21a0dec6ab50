#include "pending_access.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/process.hpp"
#include "runtime/weak_list.hpp"

namespace declivity::ops {
namespace {

class ReadersAndWriters final : public declivity::detail::PendingAccess {
  public:
    void add_reader(const std::weak_ptr<PendingLaunch>& reader) { readers_.add(reader); }

    void add_writer(std::shared_ptr<PendingLaunch> writer) {
        const std::lock_guard lock(mutex_);
        writers_.push_back(std::move(writer));
        has_writers_.store(true, std::memory_order_release);
    }

    bool launch_readers() override {
        if (readers_.empty()) return false;
        declivity::detail::refuse_after_fork("write in place");
        readers_.drain([](PendingLaunch& reader) { reader.launch(); });  // stays pending on failure
        return true;
    }

    void launch_writers() override {
        if (!has_writers_.load(std::memory_order_acquire)) return;
        declivity::detail::refuse_after_fork("a pending value");
        for (;;) {
            std::shared_ptr<PendingLaunch> first;
            {
                const std::lock_guard lock(mutex_);
                if (writers_.empty()) {
                    has_writers_.store(false, std::memory_order_release);
                    return;
                }
                first = writers_.front();
            }
            first->launch();  // stays pending on failure
            const std::lock_guard lock(mutex_);
            std::erase(writers_, first);
        }
    }

    /// Returns whether there are no writers, and no readers but `reader`.
    [[nodiscard]] bool is_free(const PendingLaunch* reader) {
        if (has_writers_.load(std::memory_order_acquire)) return false;
        if (readers_.empty()) return true;
        declivity::detail::refuse_after_fork("is_unshared");
        return !readers_.any_of([&](const PendingLaunch& other) { return &other != reader && other.pending(); });
    }

  private:
    declivity::detail::WeakList<PendingLaunch> readers_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<PendingLaunch>> writers_;
    std::atomic<bool> has_writers_{false};
};

/// Null if the buffer has none yet.
ReadersAndWriters* find(const Buffer& buffer) {
    return static_cast<ReadersAndWriters*>(
        declivity::detail::pending_access_of(buffer).load(std::memory_order_acquire));
}

ReadersAndWriters& of(const Buffer& buffer) {
    auto& access = declivity::detail::pending_access_of(buffer);
    declivity::detail::PendingAccess* found = access.load(std::memory_order_acquire);
    if (found == nullptr) {
        auto created = std::make_unique<ReadersAndWriters>();
        if (access.compare_exchange_strong(found, created.get(), std::memory_order_acq_rel)) found = created.release();
    }
    return static_cast<ReadersAndWriters&>(*found);
}

}  // namespace

void add_reader(const Buffer& buffer, const std::weak_ptr<PendingLaunch>& reader) {
    if (buffer) of(buffer).add_reader(reader);
}

void launch_readers(const Buffer& buffer) { declivity::detail::before_write(buffer); }

void add_writer(const Buffer& buffer, std::shared_ptr<PendingLaunch> writer) {
    of(buffer).add_writer(std::move(writer));
}

void launch_writers(const Buffer& buffer) { declivity::detail::before_read(buffer); }

bool is_unshared(const Buffer& buffer, long handles, const PendingLaunch* reader) {
    if (!declivity::detail::is_exclusive(buffer, handles)) return false;
    ReadersAndWriters* const access = find(buffer);
    return access == nullptr || access->is_free(reader);
}

}  // namespace declivity::ops
