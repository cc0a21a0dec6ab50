#include "in_flight_reads.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <utility>

namespace declivity::detail {

cl::Event enqueue_read(Queues& queues, const Block& block, std::size_t offset, std::span<std::byte> destination,
                       cl::CommandQueue& on, const std::vector<cl::Event>* after) {
    cl::Event done;
    queues.submit(
        {.name = "copy to host", .bytes = static_cast<double>(destination.size())}, on,
        [&](cl::CommandQueue& queue, cl::Event* event) {
            queue.enqueueReadBuffer(block.memory, CL_FALSE, block.offset + offset, destination.size(),
                                    destination.data(), after, event);
            try {
                queue.flush();
            } catch (const cl::Error&) {
                Queues::wait_for(queue);  // after an error the caller may free `destination`
                throw;
            }
        },
        &done);
    return done;
}

bool InFlightRead::pending() const noexcept {
    const std::scoped_lock lock(mutex_);
    cl_int status = CL_COMPLETE;
    return done_() != nullptr &&
           clGetEventInfo(done_(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS &&
           status > CL_COMPLETE;
}

void InFlightRead::wait_on_compute_queue() {
    if (!pending()) return;
    const std::scoped_lock lock(mutex_);  // before the device's lock, as in start()
    const Queues::Enqueuing enqueuing(queues_);
    checked("wait for a read", device_.info.name, [&] {
        const cl_event done = done_();
        const cl_int status = clEnqueueBarrierWithWaitList(queues_.compute(), 1, &done, nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "clEnqueueBarrierWithWaitList");
    });
}

bool ReadsOfBlock::wait_on_compute_queue() {
    if (reads_.empty()) return false;
    refuse_after_fork("write in place");
    reads_.drain([](InFlightRead& read) { read.wait_on_compute_queue(); });
    return true;
}

bool ReadsOfBlock::pending() const {
    if (reads_.empty()) return false;
    refuse_after_fork("write in place");
    return reads_.any_of([](const InFlightRead& read) { return read.pending(); });
}

cl::Event InFlightReads::start(const Buffer& source, std::size_t offset, std::span<std::byte> destination) {
    const auto read = std::make_shared<InFlightRead>(device_, queues_);
    add(read);
    // Writers of the memory block on this mutex until there is an event to wait for.
    const std::scoped_lock lock(read->mutex_);
    block_of(source).reads.add(read);
    const std::vector<cl::Event> after{queues_.compute_marker()};
    cl::Event done = enqueue_read(queues_, block_of(source), offset, destination, queues_.transfer, &after);
    try {
        read->done_ = shared(done, "download", device_.info.name);
    } catch (...) {
        Queues::wait_for(queues_.transfer);  // after an error the caller may free `destination`
        throw;
    }
    return done;
}

void InFlightReads::add(const std::shared_ptr<InFlightRead>& read) {
    std::vector<std::shared_ptr<InFlightRead>> over;  // freed after the lock is released
    const std::scoped_lock lock(mutex_);
    const auto ended = std::ranges::partition(reads_, [](const auto& item) { return item->pending(); });
    over.assign(ended.begin(), ended.end());
    reads_.erase(ended.begin(), ended.end());
    reads_.push_back(read);
}

}  // namespace declivity::detail
