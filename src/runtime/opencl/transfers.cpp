#include "transfers.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "device_state.hpp"
#include "event_state.hpp"
#include "runtime/access.hpp"

namespace declivity::detail {
namespace {

/// Shorter reads use the compute queue: synchronising a second queue takes longer than the copy.
constexpr std::size_t kOwnQueue = std::size_t{64} << 10;

Event make_event(cl::Event event, const DeviceState& device) {
    return event_of(std::make_shared<EventState>(std::move(event), device.context.info.name));
}

}  // namespace

void enqueue_upload(const Block& block, std::size_t offset, std::span<const std::byte> source) {
    DeviceState& device = block.device;
    device.staging.send(device.queues.compute, block, offset, source, nullptr, nullptr);
}

Event enqueue_upload_async(const Block& block, std::size_t offset, std::span<const std::byte> source) {
    DeviceState& device = block.device;
    std::vector<cl::Event> after;
    if (block.readers_done() != nullptr)
        after.push_back(shared(block.readers_done, "upload_async", device.context.info.name));
    cl::Event done;
    device.staging.send(device.queues.transfer, block, offset, source, after.empty() ? nullptr : &after, &done);
    checked("upload_async", device.context.info.name, [&] { device.queues.transfer.flush(); });
    return make_event(std::move(done), device);
}

Event enqueue_download(const Buffer& buffer, std::size_t offset, std::span<std::byte> destination) {
    const Block& block = block_of(buffer);
    DeviceState& device = block.device;
    refuse_after_fork("copy to host");
    return make_event(destination.size() < kOwnQueue
                          ? enqueue_read(device.queues, block, offset, destination, device.queues.compute, nullptr)
                          : device.reads.start(buffer, offset, destination),
                      device);
}

void wait_for_reads(const Block& block) noexcept {
    const Queues& queues = block.device.queues;
    for (const cl::CommandQueue* queue : {&queues.compute, &queues.transfer}) Queues::wait_for(*queue);
}

void enqueue_copy(const Block& from, std::size_t from_offset, const Block& to, std::size_t to_offset,
                  std::size_t bytes) {
    Queues& queues = from.device.queues;
    queues.submit({.name = "copy", .bytes = 2.0 * static_cast<double>(bytes)}, queues.compute,
                  [&](cl::CommandQueue& queue, cl::Event* event) {
                      queue.enqueueCopyBuffer(from.memory, to.memory, from.offset + from_offset, to.offset + to_offset,
                                              bytes, nullptr, event);
                  });
}

void enqueue_fill(const Block& block, std::size_t offset, std::size_t bytes, std::span<const std::byte> pattern) {
    Queues& queues = block.device.queues;
    queues.submit({.name = "fill", .bytes = static_cast<double>(bytes)}, queues.compute,
                  [&](cl::CommandQueue& queue, cl::Event* event) {
                      // The C API, because CLHPP's takes the pattern's size from a type.
                      cl_event raw = nullptr;
                      const cl_int status = clEnqueueFillBuffer(queue(), block.memory(), pattern.data(), pattern.size(),
                                                                block.offset + offset, bytes, 0, nullptr,
                                                                event != nullptr ? &raw : nullptr);
                      if (status != CL_SUCCESS) throw cl::Error(status, "clEnqueueFillBuffer");
                      if (event != nullptr) *event = cl::Event(raw);
                  });
}

}  // namespace declivity::detail
