#include <declivity/runtime/buffer.hpp>

#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "device_state.hpp"
#include "command_list_state.hpp"
#include "capture.hpp"

namespace declivity {
namespace {

using detail::Block;
using detail::DeviceState;

void check_range(std::string_view function, const Buffer& buffer, std::size_t offset, std::size_t bytes) {
    if (!buffer) throw ValueError(fmt::format("{}: expected a buffer, got an empty handle", function));
    if (bytes == 0 && buffer.size() == 0) return;  // a view of an empty tensor may begin anywhere
    if (offset > buffer.size() || bytes > buffer.size() - offset)
        throw ShapeError(fmt::format("{}: expected a range inside the buffer of {} bytes, got {} bytes at byte {}",
                                     function, buffer.size(), bytes, offset));
}

Event make_event(cl::Event event, const DeviceState& device) {
    return Event(std::make_shared<detail::EventState>(std::move(event), device.info.name));
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
    DeviceState& device = destination.block().device;
    device.staging.send(device.compute, destination.block(), offset, source, nullptr, nullptr);
}

Event upload_async(const Buffer& destination, std::size_t offset, std::span<const std::byte> source) {
    check_range("upload_async", destination, offset, source.size());
    if (source.empty()) return {};
    const Block& block = destination.block();
    if (block.use != BufferUse::transfer)
        throw ValueError(
            "upload_async: expected a buffer made with BufferUse::transfer, got one made with BufferUse::compute");
    DeviceState& device = block.device;
    std::vector<cl::Event> after;
    if (block.readers_done() != nullptr)
        after.push_back(detail::shared(block.readers_done, "upload_async", device.info.name));
    cl::Event done;
    device.staging.send(device.transfer, block, offset, source, after.empty() ? nullptr : &after, &done);
    detail::checked("upload_async", device.info.name, [&] { device.transfer.flush(); });
    return make_event(std::move(done), device);
}

namespace {

/// Shorter reads use the compute queue: synchronising a second queue takes longer than the copy.
constexpr std::size_t kOwnQueue = std::size_t{64} << 10;

/// @param after events to wait for, or null. If flushing fails, the command is no longer in flight on return.
cl::Event enqueue_read(const Block& block, std::size_t offset, std::span<std::byte> destination, cl::CommandQueue& on,
                       const std::vector<cl::Event>* after) {
    cl::Event done;
    block.device.submit(
        {.name = "copy to host", .bytes = static_cast<double>(destination.size())}, on,
        [&](cl::CommandQueue& queue, cl::Event* event) {
            queue.enqueueReadBuffer(block.memory, CL_FALSE, block.offset + offset, destination.size(),
                                    destination.data(), after, event);
            try {
                queue.flush();
            } catch (const cl::Error&) {
                DeviceState::wait_for(queue);  // after an error the caller may free `destination`
                throw;
            }
        },
        &done);
    return done;
}

}  // namespace

namespace detail {

bool InFlightRead::pending() const noexcept {
    const std::scoped_lock lock(mutex_);
    cl_int status = CL_COMPLETE;
    return done_() != nullptr &&
           clGetEventInfo(done_(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS &&
           status > CL_COMPLETE;
}

void InFlightRead::launch() {
    if (!pending()) return;
    const std::scoped_lock lock(mutex_);  // before the device's lock, as in start()
    const DeviceState::Enqueuing enqueuing(device_);
    checked("wait for a read", device_.info.name, [&] {
        const cl_event done = done_();
        const cl_int status = clEnqueueBarrierWithWaitList(device_.compute(), 1, &done, nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "clEnqueueBarrierWithWaitList");
    });
}

cl::Event InFlightRead::start(const Buffer& source, std::size_t offset, std::span<std::byte> destination) {
    const auto read = std::make_shared<InFlightRead>(source.block().device);
    read->device_.register_read(read);
    // Writers of the memory block on this mutex until there is an event to wait for.
    const std::scoped_lock lock(read->mutex_);
    source.add_reader(read);
    const std::vector<cl::Event> after{read->device_.compute_marker()};
    cl::Event done = enqueue_read(source.block(), offset, destination, read->device_.transfer, &after);
    try {
        read->done_ = shared(done, "download", read->device_.info.name);
    } catch (...) {
        DeviceState::wait_for(read->device_.transfer);  // after an error the caller may free `destination`
        throw;
    }
    return done;
}

void DeviceState::register_read(const std::shared_ptr<InFlightRead>& read) {
    std::vector<std::shared_ptr<InFlightRead>> over;  // freed after the lock is released
    const std::scoped_lock lock(reads_mutex_);
    const auto ended = std::ranges::partition(reads_, [](const auto& item) { return item->pending(); });
    over.assign(ended.begin(), ended.end());
    reads_.erase(ended.begin(), ended.end());
    reads_.push_back(read);
}

}  // namespace detail

Event download(const Buffer& source, std::size_t offset, std::span<std::byte> destination) {
    check_range("download", source, offset, destination.size());
    if (destination.empty()) return {};
    if (Capture* const capture = Capture::current()) capture->refuse("a read to the host");
    const Block& block = source.block();
    detail::refuse_after_fork("copy to host");
    return make_event(destination.size() < kOwnQueue
                          ? enqueue_read(block, offset, destination, block.device.compute, nullptr)
                          : detail::InFlightRead::start(source, offset, destination),
                      block.device);
}

void read(const Buffer& source, std::size_t offset, std::span<std::byte> destination) {
    const Event done = download(source, offset, destination);
    try {
        done.wait();
    } catch (...) {
        if (source)  // `destination` may be freed after this
            for (const cl::CommandQueue* queue : {&source.block().device.compute, &source.block().device.transfer})
                DeviceState::wait_for(*queue);
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
                                      from.device.info.name, to.device.info.name));
    if (Capture* const capture = Capture::current())
        detail::capture_copy(*capture, source, source_offset, destination, destination_offset, bytes);
    from.device.submit({.name = "copy", .bytes = 2.0 * static_cast<double>(bytes)}, from.device.compute,
                       [&](cl::CommandQueue& queue, cl::Event* event) {
                           queue.enqueueCopyBuffer(from.memory, to.memory, from.offset + source_offset,
                                                   to.offset + destination_offset, bytes, nullptr, event);
                       });
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
    const Block& block = destination.block();
    block.device.submit({.name = "fill", .bytes = static_cast<double>(bytes)}, block.device.compute,
                        [&](cl::CommandQueue& queue, cl::Event* event) {
                            // The C API, because CLHPP's takes the pattern's size from a type.
                            cl_event raw = nullptr;
                            const cl_int status = clEnqueueFillBuffer(queue(), block.memory(), pattern.data(), unit,
                                                                      block.offset + offset, bytes, 0, nullptr,
                                                                      event != nullptr ? &raw : nullptr);
                            if (status != CL_SUCCESS) throw cl::Error(status, "clEnqueueFillBuffer");
                            if (event != nullptr) *event = cl::Event(raw);
                        });
}

// ---- events and queues

void Event::wait() const {
    if (!state_) return;
    detail::refuse_after_fork("wait for an event");
    const Span span("wait", SpanKind::wait);
    try {
        state_->event.wait();
    } catch (const cl::Error& error) {
        // The status of the command itself is more specific.
        if (error.err() == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) (void)done();
        detail::throw_status(error.err(), "wait for an event", state_->device);
    }
    (void)done();  // a driver may report an error only on request
    detail::watch_exit_again();
}

bool Event::done() const {
    if (!state_) return true;
    const cl_int status = detail::checked("ask an event", state_->device,
                                          [&] { return state_->event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(); });
    if (status < 0) detail::throw_status(status, "a command", state_->device);
    return status == CL_COMPLETE;
}

namespace {
cl::CommandQueue& queue_of(const Device& device, bool transfer) {
    return transfer ? device.state().transfer : device.state().compute;
}
}  // namespace

Event Queue::marker() const {
    DeviceState& device = device_.state();
    cl::Event event;
    detail::refuse_after_fork("Queue::marker");
    const DeviceState::Enqueuing enqueuing(device);
    detail::checked("Queue::marker", device.info.name, [&] {
        queue_of(device_, transfer_).enqueueMarkerWithWaitList(nullptr, &event);
        queue_of(device_, transfer_).flush();
    });
    return make_event(std::move(event), device);
}

void Queue::wait_for(const Event& event) const {
    if (!event) return;
    DeviceState& device = device_.state();
    detail::refuse_after_fork("Queue::wait_for");
    if (Capture* const capture = Capture::current(); capture != nullptr && !transfer_)
        capture->refuse("a wait of the compute queue");
    const DeviceState::Enqueuing enqueuing(device);
    detail::checked("Queue::wait_for", device.info.name, [&] {
        const std::vector<cl::Event> events{event.state().event};
        queue_of(device_, transfer_).enqueueBarrierWithWaitList(&events);
    });
}

void Queue::flush() const {
    detail::checked("Queue::flush", device_.name(), [&] { queue_of(device_, transfer_).flush(); });
}

void Queue::finish() const { device_.state().finish(queue_of(device_, transfer_), "Queue::finish"); }

}  // namespace declivity
