#include <declivity/runtime/buffer.hpp>

#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "process.hpp"
#include "access.hpp"
#include "capture.hpp"
#include "opencl/command_list_state.hpp"
#include "opencl/device_state.hpp"
#include "opencl/transfers.hpp"
#include "pending_access.hpp"

namespace declivity {
namespace {

using detail::Block;

void check_range(std::string_view function, const Buffer& buffer, std::size_t offset, std::size_t bytes) {
    if (!buffer) throw ValueError(fmt::format("{}: expected a buffer, got an empty handle", function));
    if (bytes == 0 && buffer.size() == 0) return;  // a view of an empty tensor may begin anywhere
    if (offset > buffer.size() || bytes > buffer.size() - offset)
        throw ShapeError(fmt::format("{}: expected a range inside the buffer of {} bytes, got {} bytes at byte {}",
                                     function, buffer.size(), bytes, offset));
}

}  // namespace

Buffer::Buffer(const Device& device, std::size_t bytes, BufferUse use) {
    Capture* const capture = use == BufferUse::compute ? Capture::current() : nullptr;
    state_ = capture != nullptr && &capture->state().step.device == &state_of(device)
                 ? capture->state().allocate(bytes)
                 : state_of(device).pool.allocate(bytes, use);
}

std::size_t Buffer::size() const noexcept { return state_ ? state_->size : 0; }

std::uint64_t Buffer::version() const noexcept { return state_ ? state_->version.load() : 0; }

void Buffer::bump_version() const noexcept {
    if (!state_ || after_fork()) return;
    if (Capture* const capture = Capture::current()) capture->state().write(*this);
    else if (auto* const scope = detail::HostCallScope::current(); scope != nullptr && scope->capture != nullptr)
        scope->capture->write_by_host_call(*this);
    state_->version.fetch_add(1);
    write_enqueued();
}

std::uint64_t Buffer::contents() const noexcept { return state_ ? state_->contents.load() : 0; }

void Buffer::write_enqueued() const noexcept {
    if (!state_ || after_fork()) return;
    state_->contents.fetch_add(1);  // before the lookup of derived values, see DerivedCache::add
    if (state_->has_derived.load()) state_->device.derived.drop(*state_);
}

void Buffer::move_to_scope(const ScopePath& scope) const {
    detail::refuse_after_fork("Buffer::move_to_scope");
    if (state_->slab != nullptr) state_->device.pool.move_to_scope(*state_, scope);
}

namespace detail {

std::shared_ptr<const void> find_derived(const Buffer& buffer, const DerivedKey& key) {
    if (!buffer || after_fork()) return nullptr;
    const Block& block = block_of(buffer);
    return block.has_derived.load() ? block.device.derived.find(block, key) : nullptr;
}

bool accepts_derived(const Buffer& buffer, const DerivedKey& key, std::uint64_t bytes, int after_uses) {
    if (!buffer || after_fork()) return false;
    const Block& block = block_of(buffer);
    return block.device.derived.accepts(block, key, bytes, after_uses);
}

void cache_derived(const Buffer& buffer, const DerivedKey& key, std::shared_ptr<const void> value, std::uint64_t bytes,
                   std::uint64_t made_from) {
    if (!buffer || after_fork()) return;
    const Block& block = block_of(buffer);
    block.device.derived.add(block, key, std::move(value), bytes, made_from);
}

std::atomic<PendingAccess*>& pending_access_of(const Buffer& buffer) noexcept {
    return block_of(buffer).pending_access;
}

void before_read(const Buffer& buffer) {
    if (!buffer) return;
    if (PendingAccess* const access = block_of(buffer).pending_access.load(std::memory_order_acquire))
        access->launch_writers();
}

void before_write(const Buffer& buffer) {
    if (!buffer) return;
    if (Capture* const capture = Capture::current()) capture->state().launched_readers(buffer);
    Block& block = block_of(buffer);
    // Repeats until there are none: while this thread blocks on one reader, another thread may yield the launch lock to
    // compile, and its in-flight launch then becomes a reader.
    for (bool found = true; found;) {
        found = block.reads.wait_on_compute_queue();
        PendingAccess* const access = block.pending_access.load(std::memory_order_acquire);
        if (access != nullptr && access->launch_readers()) found = true;
    }
}

bool is_exclusive(const Buffer& buffer, long handles) {
    if (!buffer || buffer.use_count() != handles) return false;
    const Block& block = block_of(buffer);
    if (block.slab == nullptr || block.use != BufferUse::compute) return false;
    // A replay would read what this call has written instead of its original input.
    if (Capture* const capture = Capture::current(); capture != nullptr && !capture->state().is_own(block))
        return false;
    return !block.reads.pending();
}

}  // namespace detail

Device Buffer::device() const {
    if (!state_) throw ValueError("Buffer::device: expected a buffer, got an empty handle");
    return device_of(state_->device);
}

void upload(const Buffer& destination, std::size_t offset, std::span<const std::byte> source) {
    check_range("upload", destination, offset, source.size());
    if (source.empty()) return;
    if (Capture* const capture = Capture::current()) capture->refuse("upload from the host");
    detail::enqueue_upload(block_of(destination), offset, source);
}

Event upload_async(const Buffer& destination, std::size_t offset, std::span<const std::byte> source) {
    check_range("upload_async", destination, offset, source.size());
    if (source.empty()) return {};
    const Block& block = block_of(destination);
    if (block.use != BufferUse::transfer)
        throw ValueError(
            "upload_async: expected a buffer made with BufferUse::transfer, got one made with BufferUse::compute");
    return detail::enqueue_upload_async(block, offset, source);
}

Event download(const Buffer& source, std::size_t offset, std::span<std::byte> destination) {
    check_range("download", source, offset, destination.size());
    if (destination.empty()) return {};
    if (Capture* const capture = Capture::current()) capture->refuse("a read to the host");
    return detail::enqueue_download(source, offset, destination);
}

void read(const Buffer& source, std::size_t offset, std::span<std::byte> destination) {
    const Event done = download(source, offset, destination);
    try {
        done.wait();
    } catch (...) {
        if (source) detail::wait_for_reads(block_of(source));  // `destination` may be freed after this
        throw;
    }
}

void copy(const Buffer& source, std::size_t source_offset, const Buffer& destination, std::size_t destination_offset,
          std::size_t bytes) {
    check_range("copy", source, source_offset, bytes);
    check_range("copy", destination, destination_offset, bytes);
    if (bytes == 0) return;
    const Block& from = block_of(source);
    const Block& to = block_of(destination);
    if (&from.device != &to.device)
        throw DeviceError(fmt::format("copy: expected both buffers on one device, got '{}' and '{}'",
                                      from.device.context.info.name, to.device.context.info.name));
    if (Capture* const capture = Capture::current())
        detail::capture_copy(*capture, source, source_offset, destination, destination_offset, bytes);
    detail::enqueue_copy(from, source_offset, to, destination_offset, bytes);
}

void fill(const Buffer& destination, std::size_t offset, std::size_t bytes, std::span<const std::byte> pattern) {
    check_range("fill", destination, offset, bytes);
    const std::size_t unit = pattern.size();
    if (unit == 0 || unit > 16 || (unit & (unit - 1)) != 0 || bytes % unit != 0 || offset % unit != 0)
        throw ValueError(
            fmt::format("fill: expected a pattern of 1, 2, 4, 8 or 16 bytes that divides offset and size, got "
                        "{} bytes for {} bytes at byte {}",
                        unit, bytes, offset));
    if (bytes == 0) return;
    if (Capture* const capture = Capture::current())
        detail::capture_fill(*capture, destination, offset, bytes, pattern);
    detail::enqueue_fill(block_of(destination), offset, bytes, pattern);
}

}  // namespace declivity
