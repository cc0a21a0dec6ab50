// Layer 1. Events and queues.
#pragma once

#include <memory>

#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
struct EventState;
}

/// @addtogroup runtime
/// @{

/// A point in the execution of a device: done when all work before it has finished.
class DECLIVITY_API Event {
  public:
    Event() = default;
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    /// Blocks the host until done. An empty event is done.
    /// @throws DeviceError if the command failed
    void wait() const;
    /// True if finished; polls without blocking.
    [[nodiscard]] bool done() const;

  private:
    friend struct detail::StateAccess;
    explicit Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::EventState> state_;
};

/// One of the two in-order queues of a device: kernels and short reads use `compute`; prefetched batches and long reads
/// use `transfer`.
class DECLIVITY_API Queue {
  public:
    static Queue compute(const Device& device) { return Queue(device, false); }
    static Queue transfer(const Device& device) { return Queue(device, true); }

    /// An event that is done when all work enqueued here so far has finished.
    [[nodiscard]] Event marker() const;
    /// Later work in this queue starts only after `event`.
    void wait_for(const Event& event) const;
    /// Submits all enqueued work to the device without blocking.
    void flush() const;
    /// Blocks until all work enqueued here has finished.
    void finish() const;

  private:
    Queue(const Device& device, bool transfer) : device_(device), transfer_(transfer) {}
    Device device_;
    bool transfer_;
};

/// @}

}  // namespace declivity
