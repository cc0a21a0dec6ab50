// Layer 1. Events and queues.
#pragma once

#include <memory>

#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
struct EventState;
}

/// A point in the life of a device: done when everything that it stands for has run.
class DECLIVITY_API Event {
  public:
    Event() = default;
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    /// Waits on the host. An empty event is done.
    /// @throws DeviceError when the command failed
    void wait() const;
    /// True when it has run; asks, does not wait.
    [[nodiscard]] bool done() const;

    explicit Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}
    [[nodiscard]] detail::EventState& state() const noexcept { return *state_; }

  private:
    std::shared_ptr<detail::EventState> state_;
};

/// One of a device's two in-order queues: kernels and short reads go through `compute`, batches for later steps
/// and long reads through `transfer`.
class DECLIVITY_API Queue {
  public:
    static Queue compute(const Device& device) { return Queue(device, false); }
    static Queue transfer(const Device& device) { return Queue(device, true); }

    /// An event that is done when everything enqueued here so far has run.
    [[nodiscard]] Event marker() const;
    /// What is enqueued here later starts only after `event`.
    void wait_for(const Event& event) const;
    /// Hands everything enqueued to the device without waiting.
    void flush() const;
    /// Waits until everything enqueued here has run.
    void finish() const;

  private:
    Queue(const Device& device, bool transfer) : device_(device), transfer_(transfer) {}
    Device device_;
    bool transfer_;
};

}  // namespace declivity
