// Layer 1, private. Cache of values that operators derive from the contents of device memory, such as packed or
// transformed weights.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/buffer.hpp>

namespace declivity::detail {

/// Key of a derived value: the byte range of the buffer that it was computed from, and the name of the layout.
struct DerivedKey {
    std::uint64_t offset = 0, bytes = 0;  // of the byte range
    std::string kind = {};                // includes everything else that the value depends on
};

/// A value derived from the contents of a buffer by a higher layer, such as packed weights. Null if there is none.
[[nodiscard]] DECLIVITY_API std::shared_ptr<const void> find_derived(const Buffer& buffer, const DerivedKey& key);
/// Returns whether cache_derived() would store such a value: one exists already, or there is room within
/// Device::packed_weights_limit(). One value is cached per byte range. Wrapped foreign memory has no cache, since it
/// may be written without notice.
/// @param after_uses number of calls with unchanged contents before the result is true, so that no value is derived for
/// a single use
[[nodiscard]] DECLIVITY_API bool accepts_derived(const Buffer& buffer, const DerivedKey& key, std::uint64_t bytes,
                                                 int after_uses = 0);
/// Caches a value until the contents change, the memory is freed, or the memory is needed for an allocation.
/// @param made_from Buffer::contents() before the value was derived; if it has changed since, nothing is cached
DECLIVITY_API void cache_derived(const Buffer& buffer, const DerivedKey& key, std::shared_ptr<const void> value,
                                 std::uint64_t bytes, std::uint64_t made_from);

/// One cache for each device. A value is valid for one contents version of the memory (Buffer::contents()); it is
/// dropped when the memory is written or freed. The total size is limited to a share of the device's memory, and any
/// value may be evicted at any time, since it can be recomputed. Thread-safe.
class DerivedCache {
  public:
    explicit DerivedCache(std::uint64_t limit) : limit_(limit) {}

    [[nodiscard]] std::shared_ptr<const void> find(const Block& block, const DerivedKey& key);
    [[nodiscard]] bool accepts(const Block& block, const DerivedKey& key, std::uint64_t bytes, int after_uses);
    void add(const Block& block, const DerivedKey& key, std::shared_ptr<const void> value, std::uint64_t bytes,
             std::uint64_t made_from);
    /// Drops the values derived from a block.
    void drop(const Block& block) noexcept;
    void clear() noexcept;

    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::uint64_t limit() const;
    /// Evicts the least recently used values until the others fit.
    void set_limit(std::uint64_t limit);

  private:
    /// The value of one range of a block, at most one for each range.
    struct Entry {
        DerivedKey key = {};
        std::shared_ptr<const void> value = {};  // null: requested, but not created yet
        std::uint64_t bytes = 0;
        std::uint64_t contents = 0;  // contents version of the memory
        std::uint64_t used = 0;      // number of the last call that used it
        int uses = 0;                // before a value exists
        int others = 0;              // consecutive requests for another value of the same range
    };
    using Values = std::vector<std::shared_ptr<const void>>;  // freed after the lock is released

    Entry* entry_of(const Block& block, const DerivedKey& key);
    void release_value(Entry& entry, Values& gone);
    /// @param idle evict only entries unused for this many calls
    bool make_room(std::uint64_t bytes, std::uint64_t idle, Values& gone);

    mutable std::mutex mutex_;
    std::unordered_map<const Block*, std::vector<Entry>> entries_;
    std::uint64_t bytes_ = 0, limit_, calls_ = 0;
};

}  // namespace declivity::detail
