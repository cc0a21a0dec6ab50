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

/// A read on the transfer queue. It is registered as a reader of the buffer: a later writer makes the compute queue
/// wait for it.
class InFlightRead final : public PendingLaunch {
  public:
    InFlightRead(const DeviceContext& device, Queues& queues) : device_(device), queues_(queues) {}
    ~InFlightRead() override { let_go(done_); }
    /// Makes the compute queue wait for the read.
    void launch() override;
    [[nodiscard]] bool pending() const noexcept override;

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
