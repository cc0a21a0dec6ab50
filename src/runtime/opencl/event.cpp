// Events and queues.
#include <declivity/runtime/event.hpp>

#include <memory>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>

#include "runtime/process.hpp"
#include "device_state.hpp"
#include "event_state.hpp"
#include "runtime/capture.hpp"
#include "runtime/access.hpp"

namespace declivity {

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
    const cl_int status = detail::checked("query an event", state_->device,
                                          [&] { return state_->event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(); });
    if (status < 0) detail::throw_status(status, "a command", state_->device);
    return status == CL_COMPLETE;
}

namespace {
cl::CommandQueue& queue_of(const Device& device, bool transfer) {
    detail::Queues& queues = state_of(device).queues;
    return transfer ? queues.transfer : queues.compute;
}
}  // namespace

Event Queue::marker() const {
    detail::DeviceState& device = state_of(device_);
    cl::Event event;
    detail::refuse_after_fork("Queue::marker");
    const detail::Queues::Enqueuing enqueuing(device.queues);
    detail::checked("Queue::marker", device.context.info.name, [&] {
        queue_of(device_, transfer_).enqueueMarkerWithWaitList(nullptr, &event);
        queue_of(device_, transfer_).flush();
    });
    return event_of(std::make_shared<detail::EventState>(std::move(event), device.context.info.name));
}

void Queue::wait_for(const Event& event) const {
    if (!event) return;
    detail::DeviceState& device = state_of(device_);
    detail::refuse_after_fork("Queue::wait_for");
    if (Capture* const capture = Capture::current(); capture != nullptr && !transfer_)
        capture->refuse("a wait of the compute queue");
    const detail::Queues::Enqueuing enqueuing(device.queues);
    detail::checked("Queue::wait_for", device.context.info.name, [&] {
        const std::vector<cl::Event> events{state_of(event).event};
        queue_of(device_, transfer_).enqueueBarrierWithWaitList(&events);
    });
}

void Queue::flush() const {
    detail::checked("Queue::flush", device_.name(), [&] { queue_of(device_, transfer_).flush(); });
}

void Queue::finish() const { state_of(device_).queues.finish(queue_of(device_, transfer_), "Queue::finish"); }

}  // namespace declivity
