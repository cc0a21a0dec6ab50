// Layer 1, private. What layers above made from the contents of device memory and may use again, such as weights that
// are packed or transformed for a kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/buffer.hpp>

namespace declivity::detail {

/// One for each device. A value is valid for one state of the memory (Buffer::contents()); it is dropped when the
/// memory is written or freed. All values together take a bounded share of the device's memory, and any of them may be
/// dropped at any time, since it can be made again. Thread-safe.
class DerivedCache {
  public:
    explicit DerivedCache(std::uint64_t limit) : limit_(limit) {}

    [[nodiscard]] std::shared_ptr<const void> find(const Block& block, const DerivedKey& key);
    [[nodiscard]] bool accepts(const Block& block, const DerivedKey& key, std::uint64_t bytes, int after_uses);
    void add(const Block& block, const DerivedKey& key, std::shared_ptr<const void> value, std::uint64_t bytes,
             std::uint64_t made_from);
    /// Drops what was made from a block.
    void drop(const Block& block) noexcept;
    void clear() noexcept;

    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::uint64_t limit() const;
    /// Drops values, those that were not used for longest first, until the others fit.
    void set_limit(std::uint64_t limit);

  private:
    /// The value of one part of a block, which has one at most.
    struct Entry {
        DerivedKey key = {};
        std::shared_ptr<const void> value = {};  // null: asked for, and not made yet
        std::uint64_t bytes = 0;
        std::uint64_t contents = 0;  // of the memory
        std::uint64_t used = 0;      // the number of the call that used it last
        int uses = 0;                // before there is a value
        int others = 0;              // calls in a row that asked for another value of the same part
    };
    using Values = std::vector<std::shared_ptr<const void>>;  // freed outside of the lock

    Entry* entry_of(const Block& block, const DerivedKey& key);
    void release_value(Entry& entry, Values& gone);
    /// @param idle only of entries that were not used for so many calls
    bool make_room(std::uint64_t bytes, std::uint64_t idle, Values& gone);

    mutable std::mutex mutex_;
    std::unordered_map<const Block*, std::vector<Entry>> entries_;
    std::uint64_t bytes_ = 0, limit_, calls_ = 0;
};

}  // namespace declivity::detail
