// Layer 1, private. Reads on the transfer queue that have not completed.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <declivity/runtime/buffer.hpp>

#include "block.hpp"
#include "device_context.hpp"
#include "queues.hpp"

namespace declivity::detail {

/// A read on the transfer queue. The block that it reads knows it: a later writer makes the compute queue wait for it.
class InFlightRead {
  public:
    InFlightRead(const DeviceContext& device, Queues& queues) : device_(device), queues_(queues) {}
    InFlightRead(const InFlightRead&) = delete;
    InFlightRead& operator=(const InFlightRead&) = delete;
    ~InFlightRead() { abandon_after_fork(done_); }
    void wait_on_compute_queue();
    [[nodiscard]] bool pending() const noexcept;

  private:
    friend class InFlightReads;
    const DeviceContext& device_;
    Queues& queues_;
    mutable std::mutex mutex_;
    cl::Event done_;
};

class InFlightReads {
  public:
    InFlightReads(const DeviceContext& device, Queues& queues) : device_(device), queues_(queues) {}
    InFlightReads(const InFlightReads&) = delete;
    InFlightReads& operator=(const InFlightReads&) = delete;

    /// Starts a read after all commands of the compute queue. @return the event that completes it
    cl::Event start(const Buffer& source, std::size_t offset, std::span<std::byte> destination);

  private:
    /// Keeps the read alive until it has completed.
    void add(const std::shared_ptr<InFlightRead>& read);

    const DeviceContext& device_;
    Queues& queues_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<InFlightRead>> reads_;
};

/// @param on one of the device's queues
/// @param after events to wait for, or null. If flushing fails, the command is no longer in flight on return.
cl::Event enqueue_read(Queues& queues, const Block& block, std::size_t offset, std::span<std::byte> destination,
                       cl::CommandQueue& on, const std::vector<cl::Event>* after);

}  // namespace declivity::detail
