// Command order, events, copies and mapped memory.
#include <declivity/runtime/interop.hpp>  // before the names of OpenCL

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

void require(cl_int status, const char* what) {
    if (status != CL_SUCCESS) throw DeviceError(fmt::format("{}: status {}", what, status), status);
}

template <class Handle, cl_int (*Release)(Handle)>
struct Owned {
    Handle handle = nullptr;
    Owned() = default;
    explicit Owned(Handle owned) : handle(owned) {}
    ~Owned() {
        if (handle != nullptr) Release(handle);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
};
using Memory = Owned<cl_mem, clReleaseMemObject>;
using RawEvent = Owned<cl_event, clReleaseEvent>;

cl_mem create(const Device& device, cl_mem_flags flags, std::size_t bytes) {
    cl_int status = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(interop::context(device), flags, bytes, nullptr, &status);
    require(status, "clCreateBuffer");
    return memory;
}

/// The steps of doctor_step on the host.
struct Chain {
    std::vector<std::uint32_t> x;
    void step(std::uint32_t factor, std::uint32_t added) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = factor * x[i] + static_cast<std::uint32_t>(i) + added;
    }
};

Kernel step_kernel(const Device& device) { return Kernel(device, {"doctor_queues.cl", "doctor_step"}); }

std::string arguments_of_their_time(const Device& device) {
    const Kernel kernel = step_kernel(device);
    Chain chain{any_bits<std::uint32_t>(10007, 1)};
    const Buffer x = to_device(device, chain.x);
    for (std::uint32_t i = 0; i < 200; ++i) {
        launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 2 * i + 3, i * i});
        chain.step(2 * i + 3, i * i);
    }
    return first_difference(to_host<std::uint32_t>(x, chain.x.size()), chain.x);
}

std::string commands_take_turns(const Device& device) {
    const Kernel kernel = step_kernel(device);
    Chain chain{any_bits<std::uint32_t>(5003, 2)};
    const std::size_t bytes = chain.x.size() * 4;
    const Buffer x = to_device(device, chain.x), y(device, bytes);
    std::vector<std::vector<std::uint32_t>> results(20, std::vector<std::uint32_t>(chain.x.size())), expected;
    std::vector<Event> events;
    for (std::uint32_t i = 0; i < 20; ++i) {
        launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 5U, i});
        chain.step(5, i);
        copy(x, 0, y, 0, bytes);
        upload(x, 8, std::as_bytes(std::span(&i, 1)));
        chain.x[2] = i;
        events.push_back(download(i % 2 == 0 ? x : y, 0, std::as_writable_bytes(std::span(results[i]))));
        expected.push_back(chain.x);
        if (i % 2 == 1) expected.back()[2] = 0;
    }
    for (const Event& event : events) event.wait();
    for (std::size_t i = 0; i < 20; ++i) {
        if (i % 2 == 1) results[i][2] = 0;
        if (const std::string wrong = first_difference(results[i], expected[i]); !wrong.empty())
            return fmt::format("in round {}: {}", i, wrong);
    }
    return {};
}

std::string queues_wait(const Device& device) {
    const Kernel kernel = step_kernel(device);
    for (std::uint32_t round = 0; round < 20; ++round) {
        Chain chain{any_bits<std::uint32_t>(300007, round)};
        const Buffer x(device, chain.x.size() * 4, BufferUse::transfer);
        const Event ready = upload_async(x, 0, std::as_bytes(std::span(chain.x)));
        Queue::compute(device).wait_for(ready);
        launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 3U, round});
        chain.step(3, round);
        if (const std::string wrong = first_difference(to_host<std::uint32_t>(x, chain.x.size()), chain.x);
            !wrong.empty())
            return fmt::format("in round {}: {}", round, wrong);
    }
    return {};
}

/// A fill and its event.
cl_event filled(const Device& device, const Buffer& x) {
    RawEvent event;
    const std::uint32_t zero = 0;
    const auto raw = interop::raw(x);
    require(clEnqueueFillBuffer(interop::compute_queue(device), raw.memory, &zero, 4, raw.offset, raw.size, 0, nullptr,
                                &event.handle),
            "clEnqueueFillBuffer");
    require(clWaitForEvents(1, &event.handle), "clWaitForEvents");
    return std::exchange(event.handle, nullptr);
}

std::string events_are_done(const Device& device) {
    const Kernel kernel = step_kernel(device);
    const Buffer x = to_device(device, any_bits<std::uint32_t>(100000, 3));
    for (std::uint32_t i = 0; i < 10; ++i) launch(kernel, {{100000}}, {argument<std::uint32_t>(x), 3U, i});
    const Event marker = Queue::compute(device).marker();
    marker.wait();
    if (!marker.done()) return "a marker is not complete after a wait";
    const RawEvent event(filled(device, x));
    cl_int status = CL_QUEUED;
    require(clGetEventInfo(event.handle, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
            "clGetEventInfo");
    return status == CL_COMPLETE ? "" : fmt::format("a command has status {} after a wait", status);
}

std::string times_go_forward(const Device& device) {
    const Buffer x(device, 16 << 20);
    const auto begin = std::chrono::steady_clock::now();
    const RawEvent event(filled(device, x));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::array<cl_ulong, 4> times{};
    for (cl_uint i = 0; i < 4; ++i)
        require(
            clGetEventProfilingInfo(event.handle, CL_PROFILING_COMMAND_QUEUED + i, sizeof times[i], &times[i], nullptr),
            "clGetEventProfilingInfo");
    const bool forward = times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3],
               moves = times[3] - times[2] > 1000;
    const bool fits = static_cast<double>(times[3] - times[2]) * 1e-9 <= 2 * seconds + 1e-3;
    return forward && moves && fits
               ? ""
               : fmt::format("queued {}, submitted {}, started {}, ended {} ns, of a fill of 16 MiB that took {} s",
                             times[0], times[1], times[2], times[3], seconds);
}

std::string odd_copies(const Device& device) {
    auto host = any_bits<std::uint8_t>(100003, 4);
    const Buffer x = to_device(device, host), y(device, host.size());
    copy(x, 0, y, 0, host.size());
    std::mt19937 engine(6);
    for (int i = 0; i < 200; ++i) {
        const std::size_t bytes = 1 + engine() % (i % 10 == 0 ? 40000 : 300), from = engine() % (host.size() - bytes),
                          to = engine() % (host.size() - bytes);
        if (i % 3 == 0) {
            const auto uploaded = any_bits<std::uint8_t>(bytes, static_cast<std::uint64_t>(i));
            upload(y, to, std::as_bytes(std::span(uploaded)));
            std::copy(uploaded.begin(), uploaded.end(), host.begin() + static_cast<std::ptrdiff_t>(to));
        } else if (i % 3 == 1) {
            const std::vector<std::uint8_t> part(host.begin() + static_cast<std::ptrdiff_t>(from),
                                                 host.begin() + static_cast<std::ptrdiff_t>(from + bytes));
            copy(y, from, x, to, bytes);
            copy(x, to, y, to, bytes);
            std::copy(part.begin(), part.end(), host.begin() + static_cast<std::ptrdiff_t>(to));
        } else {
            std::vector<std::uint8_t> got(bytes);
            read(y, from, std::as_writable_bytes(std::span(got)));
            if (!std::equal(got.begin(), got.end(), host.begin() + static_cast<std::ptrdiff_t>(from)))
                return fmt::format("{} bytes from offset {} on have changed", bytes, from);
        }
    }
    return first_difference(to_host<std::uint8_t>(y, host.size()), host);
}

std::string fills(const Device& device) {
    for (const std::size_t size : {1, 2, 4, 8, 16}) {
        auto host = any_bits<std::uint8_t>(4096, size);
        const Buffer x = to_device(device, host);
        const auto pattern = any_bits<std::uint8_t>(size, 40 + size);
        const std::size_t offset = 5 * size, bytes = 77 * size;
        fill(x, offset, bytes, std::as_bytes(std::span(pattern)));
        for (std::size_t i = 0; i < bytes; ++i) host[offset + i] = pattern[i % size];
        if (const std::string wrong = first_difference(to_host<std::uint8_t>(x, host.size()), host); !wrong.empty())
            return fmt::format("a pattern of {} bytes: {}", size, wrong);
    }
    return {};
}

std::string mapped_memory(const Device& device) {
    const cl_command_queue queue = interop::compute_queue(device);
    const Kernel kernel = step_kernel(device);
    Chain chain{any_bits<std::uint32_t>(20011, 8)};
    const std::size_t bytes = chain.x.size() * 4;
    const Memory memory(create(device, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes));
    const Buffer x = interop::wrap(device, memory.handle, 0, bytes);
    for (std::uint32_t round = 0; round < 3; ++round) {
        cl_int status = CL_SUCCESS;
        void* mapped = clEnqueueMapBuffer(queue, memory.handle, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes, 0,
                                          nullptr, nullptr, &status);
        require(status, "clEnqueueMapBuffer");
        std::copy(chain.x.begin(), chain.x.end(), static_cast<std::uint32_t*>(mapped));
        require(clEnqueueUnmapMemObject(queue, memory.handle, mapped, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
        launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 7U, round});
        chain.step(7, round);
        const std::size_t part = 400;  // bytes: a mapped range need not begin at the start of the buffer
        mapped = clEnqueueMapBuffer(queue, memory.handle, CL_TRUE, CL_MAP_READ, part, bytes - part, 0, nullptr, nullptr,
                                    &status);
        require(status, "clEnqueueMapBuffer");
        const auto* read_back = static_cast<const std::uint32_t*>(mapped);
        const std::vector<std::uint32_t> got(read_back, read_back + chain.x.size() - part / 4),
            expected(chain.x.begin() + static_cast<std::ptrdiff_t>(part / 4), chain.x.end());
        require(clEnqueueUnmapMemObject(queue, memory.handle, mapped, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
        if (const std::string wrong = first_difference(got, expected); !wrong.empty())
            return fmt::format("in round {}: {}", round, wrong);
    }
    device.synchronize();
    return {};
}

}  // namespace

void examine_queues(DoctorRun& e) {
    const Device device = e.device();
    e.check("kernels run in the order of enqueueing, with the arguments at that time",
            [&] { return arguments_of_their_time(device); });
    e.check("kernels, uploads, copies and reads interleaved in one queue", [&] { return commands_take_turns(device); });
    e.check("two queues: uploads of the transfer queue are complete when the compute queue waits for their events",
            [&] { return queues_wait(device); });
    e.check("the event of enqueued work is complete after a wait", [&] { return events_are_done(device); });
    e.check_unused("event times are monotonic and plausible (profiles show them)",
                   [&] { return times_go_forward(device); });
    e.check("copies of odd sizes at odd offsets, within the device and to and from the host",
            [&] { return odd_copies(device); });
    e.check("fills with 1 to 16 byte patterns, in the middle of a buffer", [&] { return fills(device); });
    e.check("mapped memory: host writes are visible to kernels, and kernel writes to the host",
            [&] { return mapped_memory(device); });
}

}  // namespace declivity::tools::doctor
