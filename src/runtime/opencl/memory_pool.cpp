#include "memory_pool.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "runtime/environment.hpp"

namespace declivity::detail {
namespace {

constexpr std::size_t kFirstSlab = std::size_t{32} << 20;
constexpr std::size_t kLargestSlab = std::size_t{1} << 30;
constexpr std::size_t kAlignment = 256;  // bytes: at least a cache line, and the alignment of every vector type

bool ran_out(cl_int status) {
    return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES ||
           status == CL_OUT_OF_HOST_MEMORY;
}

}  // namespace

std::string readable_bytes(std::uint64_t bytes) {
    const auto number = static_cast<double>(bytes);
    if (bytes < 1024) return fmt::format("{} B", bytes);
    if (number < 0x1p20) return fmt::format("{:.1f} KiB", number / 0x1p10);
    return number < 0x1p30 ? fmt::format("{:.1f} MiB", number / 0x1p20) : fmt::format("{:.2f} GiB", number / 0x1p30);
}

MemoryPool::MemoryPool(const DeviceContext& device, Queues& queues, DerivedCache& derived,
                       std::function<void()> reclaim)
    : device_(device),
      queues_(queues),
      derived_(derived),
      reclaim_(std::move(reclaim)),
      alignment_(std::max(kAlignment, device.info.alignment)),
      limit_(environment().memory_limit.get().value_or(~std::uint64_t{0})),
      exact_(environment().exact_pool.get()) {}

std::size_t MemoryPool::reserved_for(std::size_t bytes) const {
    // In exact mode a memory checker must see the first byte past the end. A cl_mem of 0 bytes does not exist.
    return exact_ ? std::max<std::size_t>(bytes, 1) : round_up(std::max<std::size_t>(bytes, 1), alignment_);
}

std::shared_ptr<Block> MemoryPool::allocate(std::size_t bytes, BufferUse use) {
    refuse_after_fork("allocation");
    std::unique_lock lock(mutex_);
    if (bytes > largest()) throw_exhausted(bytes);
    const std::size_t reserved = reserved_for(bytes);
    std::shared_ptr<Block> block;
    if (use == BufferUse::transfer) block = take_transfer(bytes, reserved);
    if (!block) block = take(bytes, reserved);
    if (!block && grow(reserved)) block = take(bytes, reserved);
    if (!block) {
        // Pending kernels may still use released memory: it is free only after the queue has finished.
        lock.unlock();
        derived_.clear();
        reclaim_();
        queues_.finish();
        lock.lock();
        release_cached_locked();
        block = take(bytes, reserved);
        if (!block && grow(reserved)) block = take(bytes, reserved);
    }
    if (!block) throw_exhausted(bytes);
    block->use = use;
    count(block->reserved);
    lock.unlock();
    if (use == BufferUse::transfer && block->readers_done() == nullptr) block->readers_done = queues_.compute_marker();
    return block;
}

std::shared_ptr<Block> MemoryPool::take(std::size_t bytes, std::size_t reserved) {
    const FreeParts::Part* const part = free_.find(reserved, exact_);
    if (part == nullptr) return nullptr;
    Slab& slab = *part->slab;
    auto block = block_in(slab, part->offset, bytes);  // first, since it may fail
    free_.take(*part, reserved, Scope::path());
    block->slab = &slab;
    block->owner = this;
    block->reserved = reserved;
    return block;
}

std::shared_ptr<Block> MemoryPool::block_in(const Slab& slab, std::size_t offset, std::size_t bytes) {
    if (after_fork()) refuse_after_fork(fmt::format("allocation of {} bytes", bytes));
    try {
        return std::make_shared<Block>(device_.owner, nullptr, slab.memory, offset, bytes);
    } catch (const cl::Error& error) {  // formatted on error only
        throw_status(error.err(), fmt::format("allocation of {} bytes", bytes), device_.info.name);
    }
}

std::shared_ptr<Block> MemoryPool::take_transfer(std::size_t bytes, std::size_t reserved) {
    const auto found = std::ranges::find(transfer_cache_, reserved, &TransferPart::reserved);
    if (found == transfer_cache_.end()) return nullptr;
    auto block = block_in(*found->slab, found->offset, bytes);
    block->slab = found->slab;
    block->owner = this;
    block->reserved = reserved;
    block->readers_done = std::move(found->readers_done);
    found->slab->parts.at(found->offset).scope = Scope::path();
    transfer_cache_.erase(found);
    return block;
}

std::size_t MemoryPool::largest() const {
    const std::uint64_t said = device_.info.max_allocation == 0 ? kLargestSlab : device_.info.max_allocation;
    return static_cast<std::size_t>(std::min<std::uint64_t>(said, ~std::size_t{0} - alignment_));
}

bool MemoryPool::grow(std::size_t reserved) {
    const std::size_t device_limit = largest();
    if (reserved > device_limit) return false;
    // Each slab is as large as all before together: few slabs, and at most twice the memory needed.
    std::size_t size =
        std::max(reserved, std::min({kLargestSlab, std::max<std::size_t>(kFirstSlab, static_cast<std::size_t>(total_)),
                                     device_limit, static_cast<std::size_t>(device_.info.global_memory / 8 + 1)}));
    if (exact_) size = reserved;
    for (;;) {
        if (total_ <= limit_ && size <= limit_ - total_) {
            if (cl::Buffer memory = device_memory(size); memory() != nullptr) {
                auto slab = std::make_unique<Slab>();
                slab->memory = std::move(memory);
                slab->size = size;
                slab->number = next_slab_++;
                free_.add(*slab);
                slabs_.emplace(slab->number, std::move(slab));
                total_ += size;
                return true;
            }
        }
        if (size == reserved) return false;
        size = std::max(reserved, size / 2);
    }
}

/// Returns an empty buffer if the device is out of memory.
cl::Buffer MemoryPool::device_memory(std::size_t bytes) const {
    try {
        cl::Buffer memory(device_.context, CL_MEM_READ_WRITE, bytes);
        // GPU drivers allocate memory at its first use, where a failure would fail a launch and the pool could not
        // retry; the migration allocates it now. In exact mode this would cost a command for every tensor.
        if (!exact_) {
            const cl_mem raw = memory();
            const cl_int status = clEnqueueMigrateMemObjects(
                queues_.compute(), 1, &raw, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
            if (ran_out(status)) return {};
        }
        return memory;
    } catch (const cl::Error& error) {
        if (ran_out(error.err())) return {};
        throw_status(error.err(), fmt::format("allocation of {} bytes", bytes), device_.info.name);
    }
}

void MemoryPool::count(std::size_t reserved) {
    metrics_.in_use += reserved;
    metrics_.peak = std::max(metrics_.peak, metrics_.in_use);
}

void MemoryPool::drop_derived(const Block& block) noexcept {
    if (block.has_derived.load()) derived_.drop(block);
}

void MemoryPool::release(Block& block) noexcept {
    drop_derived(block);
    try {
        cl::Event readers_done;
        if (block.use == BufferUse::transfer) try {
                readers_done = queues_.compute_marker();
            } catch (const Error&) {
                // The next owner of the part enqueues a marker, or waits for the whole queue.
            }
        const std::scoped_lock lock(mutex_);
        metrics_.in_use -= block.reserved;
        if (block.use == BufferUse::transfer && !exact_) {
            transfer_cache_.push_back({block.slab, block.offset, block.reserved, std::move(readers_done)});
        } else {
            free_.release(*block.slab, block.offset);
            if (exact_) release_cached_locked();  // OpenCL itself keeps the memory until pending kernels have run
        }
    } catch (...) {
        // A destructor cannot report: the part stays allocated, a harmless leak.
    }
}

std::vector<ScopeMemory> MemoryPool::by_scope_locked() const {
    std::map<std::string_view, ScopeMemory> sums;
    for (const auto& [number, slab] : slabs_)
        for (const auto& [offset, part] : slab->parts) {
            if (part.free) continue;
            ScopeMemory& sum = sums[part.scope.str()];
            sum.bytes += part.size;
            ++sum.blocks;
        }
    // Parts reserved for the next batch are cached, not in use.
    for (const TransferPart& part : transfer_cache_) {
        ScopeMemory& sum = sums[part.slab->parts.at(part.offset).scope.str()];
        sum.bytes -= part.reserved;
        --sum.blocks;
    }
    std::vector<ScopeMemory> out;
    for (auto& [scope, sum] : sums) {
        sum.scope = scope;
        if (sum.blocks > 0) out.push_back(std::move(sum));
    }
    std::ranges::stable_sort(out, std::greater<>(), &ScopeMemory::bytes);
    return out;
}

std::vector<ScopeMemory> MemoryPool::by_scope() const {
    const std::scoped_lock lock(mutex_);
    return by_scope_locked();
}

void MemoryPool::move_to_scope(const Block& block, const ScopePath& scope) {
    if (block.arena) return;  // counted for the captured step
    const std::scoped_lock lock(mutex_);
    block.slab->parts.at(block.offset).scope = scope;
}

MemoryStats MemoryPool::metrics() const {
    const std::scoped_lock lock(mutex_);
    MemoryStats metrics = metrics_;
    metrics.cached = total_ - metrics.in_use;
    return metrics;
}

void MemoryPool::reset_peak() {
    const std::scoped_lock lock(mutex_);
    metrics_.peak = metrics_.in_use;
}

void MemoryPool::release_cached() {
    // The copy of a discarded batch may still be in flight.
    queues_.finish(queues_.transfer, "wait for the transfer queue");
    const std::scoped_lock lock(mutex_);
    release_cached_locked();
}

void MemoryPool::release_cached_locked() {
    for (; !transfer_cache_.empty(); transfer_cache_.pop_front()) {
        // Kernels may still be reading it: the next owner must not overwrite it before they have finished.
        const TransferPart& part = transfer_cache_.front();
        checked("wait for the readers of a batch", device_.info.name, [&] {
            if (part.readers_done() != nullptr) part.readers_done.wait();
            else queues_.finish(queues_.compute, "wait for the compute queue");
        });
        free_.release(*part.slab, part.offset);
    }
    for (auto slab = slabs_.begin(); slab != slabs_.end();) {
        const Slab& candidate = *slab->second;
        if (candidate.parts.size() == 1 && candidate.parts.begin()->second.free) {
            free_.remove(candidate);
            total_ -= candidate.size;
            slab = slabs_.erase(slab);
        } else {
            ++slab;
        }
    }
}

void MemoryPool::throw_exhausted(std::size_t bytes) const {
    constexpr std::size_t named = 5;
    std::string holders;
    const auto scopes = by_scope_locked();
    for (std::size_t i = 0; i < std::min(named, scopes.size()); ++i)
        holders +=
            fmt::format("{}{} {}", i == 0 ? "" : ", ", scopes[i].scope.empty() ? "outside of modules" : scopes[i].scope,
                        readable_bytes(scopes[i].bytes));
    if (scopes.size() > named) holders += " and others";
    throw OutOfMemory(fmt::format(
        "memory pool of '{}': expected {} bytes, but {}; in use {} bytes, cached {} bytes, peak {} bytes, device "
        "memory {} bytes, largest single buffer {} bytes. {}{}{}A smaller batch needs less, and so do checkpoint() "
        "around parts of the "
        "network and storage as f16 or bf16",
        device_.info.name, bytes,
        limit_ < ~std::uint64_t{0} ? fmt::format("the device or DECLIVITY_MEMORY_LIMIT ({} bytes) is exhausted", limit_)
                                   : "the device is exhausted",
        metrics_.in_use, total_ - metrics_.in_use, metrics_.peak, device_.info.global_memory,
        device_.info.max_allocation, holders.empty() ? "" : "Largest users: ", holders, holders.empty() ? "" : ". "));
}

}  // namespace declivity::detail
