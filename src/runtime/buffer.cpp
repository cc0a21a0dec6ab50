#include <declivity/runtime/buffer.hpp>

#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "capture.hpp"
#include "opencl/command_list_state.hpp"
#include "opencl/device_state.hpp"
#include "opencl/transfers.hpp"

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
    block_ = capture != nullptr && &capture->state().step.device == &device.state()
                 ? capture->state().allocate(bytes)
                 : device.state().pool.allocate(bytes, use);
}

std::size_t Buffer::size() const noexcept { return block_ ? block_->size : 0; }

std::uint64_t Buffer::version() const noexcept { return block_ ? block_->version.load() : 0; }

void Buffer::bump_version() const noexcept {
    if (!block_ || after_fork()) return;
    if (Capture* const capture = Capture::current()) capture->state().write(*this);
    else if (auto* const scope = detail::HostCallScope::current(); scope != nullptr && scope->capture != nullptr)
        scope->capture->write_by_host_call(*this);
    block_->version.fetch_add(1);
    write_enqueued();
}

std::uint64_t Buffer::contents() const noexcept { return block_ ? block_->contents.load() : 0; }

void Buffer::write_enqueued() const noexcept {
    if (!block_ || after_fork()) return;
    block_->contents.fetch_add(1);  // before the lookup of derived values, see DerivedCache::add
    if (block_->has_derived.load()) block_->device.derived.drop(*block_);
}

std::shared_ptr<const void> Buffer::derived(const DerivedKey& key) const {
    if (!block_ || after_fork() || !block_->has_derived.load()) return nullptr;
    return block_->device.derived.find(*block_, key);
}

bool Buffer::accepts_derived(const DerivedKey& key, std::uint64_t bytes, int after_uses) const {
    return block_ && !after_fork() && block_->device.derived.accepts(*block_, key, bytes, after_uses);
}

void Buffer::cache_derived(const DerivedKey& key, std::shared_ptr<const void> value, std::uint64_t bytes,
                           std::uint64_t made_from) const {
    if (block_ && !after_fork()) block_->device.derived.add(*block_, key, std::move(value), bytes, made_from);
}

void Buffer::move_to_scope(const ScopePath& scope) const {
    detail::refuse_after_fork("Buffer::move_to_scope");
    if (block_->slab != nullptr) block_->device.pool.move_to_scope(*block_, scope);
}

void Buffer::add_reader(const std::weak_ptr<PendingLaunch>& reader) const {
    if (!block_) return;
    const std::lock_guard lock(block_->readers_mutex);
    auto& readers = block_->readers;
    if (readers.size() >= block_->many_readers) {
        std::erase_if(readers, [](const auto& item) { return item.expired(); });
        block_->many_readers = std::max<std::size_t>(8, readers.size() * 2);
    }
    readers.push_back(reader);
    block_->has_readers.store(true, std::memory_order_release);
}

void Buffer::launch_readers() const {
    if (!block_) return;
    if (Capture* const capture = Capture::current()) capture->state().launched_readers(*this);
    // Repeats until there are none: while this thread blocks on one reader, another thread may yield the launch lock to
    // compile, and its in-flight launch then becomes a reader.
    while (block_->has_readers.load(std::memory_order_acquire)) {
        detail::refuse_after_fork("write in place");
        std::vector<std::weak_ptr<PendingLaunch>> readers;
        {
            const std::lock_guard lock(block_->readers_mutex);
            readers.swap(block_->readers);
            block_->has_readers.store(false, std::memory_order_release);
        }
        // A launch that fails stays pending, and so do the readers after it.
        for (std::size_t i = 0; i < readers.size(); ++i) {
            const auto reader = readers[i].lock();
            if (!reader) continue;
            try {
                reader->launch();
            } catch (...) {
                for (; i < readers.size(); ++i) add_reader(readers[i]);
                throw;
            }
        }
    }
}

bool Buffer::is_unshared(long handles, const PendingLaunch* reader) const {
    if (!block_ || block_->slab == nullptr || block_->use != BufferUse::compute || use_count() != handles) return false;
    // A replay would read what this call has written instead of its original input.
    if (Capture* const capture = Capture::current(); capture != nullptr && !capture->state().is_own(*block_))
        return false;
    if (block_->has_writers.load(std::memory_order_acquire)) return false;
    if (!block_->has_readers.load(std::memory_order_acquire)) return true;
    detail::refuse_after_fork("Buffer::is_unshared");
    std::vector<std::weak_ptr<PendingLaunch>> readers;  // destroyed here, not under the lock
    {
        const std::lock_guard lock(block_->readers_mutex);
        readers = block_->readers;
    }
    return std::ranges::none_of(readers, [&](const auto& item) {
        const auto other = item.lock();
        return other && other.get() != reader && other->pending();
    });
}

void Buffer::add_writer(std::shared_ptr<PendingLaunch> writer) const {
    const std::lock_guard lock(block_->readers_mutex);
    block_->writers.push_back(std::move(writer));
    block_->has_writers.store(true, std::memory_order_release);
}

void Buffer::launch_writers() const {
    if (!block_ || !block_->has_writers.load(std::memory_order_acquire)) return;
    detail::refuse_after_fork("a pending value");
    for (;;) {
        std::shared_ptr<PendingLaunch> first;
        {
            const std::lock_guard lock(block_->readers_mutex);
            if (block_->writers.empty()) {
                block_->has_writers.store(false, std::memory_order_release);
                return;
            }
            first = block_->writers.front();
        }
        first->launch();  // stays pending on failure
        const std::lock_guard lock(block_->readers_mutex);
        std::erase(block_->writers, first);
    }
}

Device Buffer::device() const {
    if (!block_) throw ValueError("Buffer::device: expected a buffer, got an empty handle");
    return Device(&block_->device);
}

void upload(const Buffer& destination, std::size_t offset, std::span<const std::byte> source) {
    check_range("upload", destination, offset, source.size());
    if (source.empty()) return;
    if (Capture* const capture = Capture::current()) capture->refuse("upload from the host");
    detail::enqueue_upload(destination.block(), offset, source);
}

Event upload_async(const Buffer& destination, std::size_t offset, std::span<const std::byte> source) {
    check_range("upload_async", destination, offset, source.size());
    if (source.empty()) return {};
    const Block& block = destination.block();
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
        if (source) detail::wait_for_reads(source.block());  // `destination` may be freed after this
        throw;
    }
}

void copy(const Buffer& source, std::size_t source_offset, const Buffer& destination, std::size_t destination_offset,
          std::size_t bytes) {
    check_range("copy", source, source_offset, bytes);
    check_range("copy", destination, destination_offset, bytes);
    if (bytes == 0) return;
    const Block& from = source.block();
    const Block& to = destination.block();
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
    detail::enqueue_fill(destination.block(), offset, bytes, pattern);
}

}  // namespace declivity
