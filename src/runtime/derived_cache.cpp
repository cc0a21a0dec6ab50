#include "derived_cache.hpp"

#include <algorithm>
#include <utility>

#include "opencl/block.hpp"

namespace declivity::detail {
namespace {

/// Consecutive requests for a different value of the same range before it replaces the present one: inputs of two
/// alternating sizes must not cause a copy in each call.
constexpr int kPatience = 8;
/// Calls after which an unused value may be evicted. A model with more values than fit requests each of them in turn;
/// evicting the oldest would recreate all of them in each pass.
constexpr std::uint64_t kIdleCalls = 4096;

}  // namespace

DerivedCache::Entry* DerivedCache::entry_of(const Block& block, const DerivedKey& key) {
    const auto of_block = entries_.find(&block);
    if (of_block == entries_.end()) return nullptr;
    const auto found = std::ranges::find_if(of_block->second, [&](const Entry& entry) {
        return entry.key.offset == key.offset && entry.key.bytes == key.bytes;
    });
    return found == of_block->second.end() ? nullptr : &*found;
}

void DerivedCache::release_value(Entry& entry, Values& gone) {
    if (!entry.value) return;
    gone.push_back(std::move(entry.value));
    entry.value = nullptr;
    bytes_ -= std::exchange(entry.bytes, 0);
}

bool DerivedCache::make_room(std::uint64_t bytes, std::uint64_t idle, Values& gone) {
    if (bytes > limit_) return false;
    while (bytes_ > limit_ - bytes) {
        Entry* oldest = nullptr;
        for (auto& [block, entries] : entries_)
            for (Entry& entry : entries)
                if (entry.value && (oldest == nullptr || entry.used < oldest->used)) oldest = &entry;
        if (oldest == nullptr || calls_ - oldest->used < idle) return false;
        release_value(*oldest, gone);
    }
    return true;
}

std::shared_ptr<const void> DerivedCache::find(const Block& block, const DerivedKey& key) {
    const std::scoped_lock lock(mutex_);
    Entry* const entry = entry_of(block, key);
    // A writer changes the contents version before it drops the value.
    if (entry == nullptr || !entry->value || entry->contents != block.contents.load() || entry->key.kind != key.kind)
        return nullptr;
    entry->used = ++calls_;
    entry->others = 0;
    return entry->value;
}

bool DerivedCache::accepts(const Block& block, const DerivedKey& key, std::uint64_t bytes, int after_uses) {
    if (block.slab == nullptr) return false;
    Values gone;
    const std::scoped_lock lock(mutex_);
    ++calls_;
    Entry* entry = entry_of(block, key);
    if (entry == nullptr) {
        entry = &entries_[&block].emplace_back(Entry{.key = key});
        block.has_derived.store(true);
    }
    const std::uint64_t contents = block.contents.load();
    if (entry->contents != contents) {
        release_value(*entry, gone);
        *entry = {.key = key, .value = nullptr, .contents = contents};
    }
    if (entry->value && entry->key.kind == key.kind) return true;
    if (entry->value && ++entry->others <= kPatience) return false;
    if (entry->key.kind != key.kind) {
        release_value(*entry, gone);
        *entry = {.key = key, .value = nullptr, .contents = contents};
    }
    return entry->uses++ >= after_uses && make_room(bytes, kIdleCalls, gone);
}

void DerivedCache::add(const Block& block, const DerivedKey& key, std::shared_ptr<const void> value,
                       std::uint64_t bytes, std::uint64_t made_from) {
    if (block.slab == nullptr) return;  // external memory may be written without notice
    Values gone;
    const std::scoped_lock lock(mutex_);
    Entry* entry = entry_of(block, key);
    if (entry == nullptr) entry = &entries_[&block].emplace_back(Entry{.key = key});
    // In this order: a concurrent writer changes the contents version first, and looks up values afterwards.
    block.has_derived.store(true);
    if (block.contents.load() != made_from) {
        gone.push_back(std::move(value));
        return;
    }
    release_value(*entry, gone);
    if (!make_room(bytes, kIdleCalls, gone)) {
        gone.push_back(std::move(value));
        return;
    }
    *entry = {.key = key, .value = std::move(value), .bytes = bytes, .contents = made_from, .used = ++calls_};
    bytes_ += bytes;
}

void DerivedCache::drop(const Block& block) noexcept {
    std::vector<Entry> gone;  // freed after the lock is released
    const std::scoped_lock lock(mutex_);
    block.has_derived.store(false);
    const auto found = entries_.find(&block);
    if (found == entries_.end()) return;
    gone.swap(found->second);
    entries_.erase(found);
    for (const Entry& entry : gone) bytes_ -= entry.bytes;
}

void DerivedCache::clear() noexcept {
    std::unordered_map<const Block*, std::vector<Entry>> gone;
    const std::scoped_lock lock(mutex_);
    // A block left with has_derived set finds no entry, which is harmless.
    gone.swap(entries_);
    bytes_ = 0;
}

std::uint64_t DerivedCache::bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
}

std::uint64_t DerivedCache::limit() const {
    const std::scoped_lock lock(mutex_);
    return limit_;
}

void DerivedCache::set_limit(std::uint64_t limit) {
    Values gone;
    const std::scoped_lock lock(mutex_);
    limit_ = limit;
    (void)make_room(0, 0, gone);
}

}  // namespace declivity::detail
