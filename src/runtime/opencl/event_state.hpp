// Layer 1, private. The state of an Event.
#pragma once

#include <string>
#include <utility>

#include <declivity/runtime/event.hpp>

#include "opencl.hpp"

namespace declivity::detail {

struct EventState {
    cl::Event event;
    std::string device;

    EventState(cl::Event of, std::string on) : event(std::move(of)), device(std::move(on)) {}
    EventState(const EventState&) = delete;
    EventState& operator=(const EventState&) = delete;
    ~EventState() { abandon_after_fork(event); }
};

}  // namespace declivity::detail
