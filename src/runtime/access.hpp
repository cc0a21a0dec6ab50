// Layer 1, private. Access of the library to the states behind its handles: their headers name StateAccess as a friend
// and show nothing else of it.
#pragma once

#include <memory>
#include <utility>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity {

namespace detail {

struct StateAccess {
    template <class Handle>
    [[nodiscard]] static const auto& state(const Handle& handle) noexcept {
        return handle.state_;
    }
    template <class Handle, class State>
    [[nodiscard]] static Handle handle(State&& state) {
        return Handle(std::forward<State>(state));
    }
};

}  // namespace detail

[[nodiscard]] inline detail::DeviceState& state_of(const Device& device) noexcept {
    return *detail::StateAccess::state(device);
}
[[nodiscard]] inline detail::KernelState& state_of(const Kernel& kernel) noexcept {
    return *detail::StateAccess::state(kernel);
}
[[nodiscard]] inline detail::EventState& state_of(const Event& event) noexcept {
    return *detail::StateAccess::state(event);
}
[[nodiscard]] inline detail::Block& block_of(const Buffer& buffer) noexcept {
    return *detail::StateAccess::state(buffer);
}
/// The memory, without keeping it alive.
[[nodiscard]] inline std::weak_ptr<detail::Block> weak_of(const Buffer& buffer) noexcept {
    return detail::StateAccess::state(buffer);
}

[[nodiscard]] inline Device device_of(detail::DeviceState& state) noexcept {
    return detail::StateAccess::handle<Device>(&state);
}
[[nodiscard]] inline Event event_of(std::shared_ptr<detail::EventState> state) noexcept {
    return detail::StateAccess::handle<Event>(std::move(state));
}
[[nodiscard]] inline Buffer buffer_of(std::shared_ptr<detail::Block> block) noexcept {
    return detail::StateAccess::handle<Buffer>(std::move(block));
}

}  // namespace declivity
