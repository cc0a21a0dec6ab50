#include <declivity/runtime/driver_faults.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "device_state.hpp"
#include "opencl.hpp"
#include "program_cache.hpp"
#include "runtime/kernel_source.hpp"
#include "runtime/access.hpp"

namespace declivity {
namespace {

constexpr std::array<DriverFault, 10> kFaults{
    DriverFault{.name = "wide_work_item_ids",
                .what = "a kernel that narrows the quotient and the remainder of a work-item id to int, and uses "
                        "both for an address within a loop, writes to a wrong address",
                .seen = "Intel's runtime for CPUs 2026.2, on processors with AVX-512",
                .avoided = "work-item ids are narrowed to int before they are divided"},
    DriverFault{.name = "padded_struct_argument",
                .what = "clSetKernelArg refuses a struct of the size given by sizeof if its last member is "
                        "followed by padding",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "struct arguments of kernels have no padding, which the compiler checks"},
    DriverFault{.name = "array_of_arrays_argument",
                .what = "clSetKernelArg refuses a struct with an array of arrays, whose size it underestimates",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "struct arguments of kernels have one-dimensional arrays only"},
    DriverFault{.name = "indexed_struct_argument",
                .what = "a kernel that reads an array within a struct argument at a run-time index crashes the process",
                .seen = "rusticl of Mesa 22.3 on llvmpipe",
                .avoided = "kernels of style simt, which llvmpipe runs, read such arrays at constant indices",
                .may_crash = true},
    DriverFault{.name = "byte_constant_select",
                .what = "a kernel that selects between a constant and a variable 8-bit integer crashes the process",
                .seen = "rusticl of Mesa 22.3 on llvmpipe",
                .avoided = "8-bit constants are hidden from the compiler",
                .may_crash = true},
    DriverFault{
        .name = "extended_constant_compare",
        .what = "an int converted to long compares as greater than a constant",
        .seen = "rusticl of Mesa 22.3 on llvmpipe",
        .avoided =
            "labels are compared in their own type; 64-bit constants in expressions are hidden from the compiler"},
    DriverFault{
        .name = "understated_work_group",
        .what = "for a kernel that states its work-group size, the driver reports a smaller maximum, but runs groups "
                "of that size",
        .seen = "rusticl of Mesa 22.3",
        .avoided = "a small kernel detects it; then kernels that state a size are launched with it"},
    DriverFault{.name = "limited_loops",
                .what = "the loops of a kernel end after 65535 iterations in all",
                .seen = "rusticl of Mesa 22.3 on llvmpipe",
                .avoided = ""},
    DriverFault{.name = "finish_after_flush",
                .what = "clFinish does not wait for commands that clFlush submitted before, so that memory they write "
                        "is released too early",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "the library waits for the event of a marker, too"},
    DriverFault{.name = "idle_event_clock",
                .what = "the event times of commands are unrelated to their durations",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "the tuner and declivity bench use the host clock; profiles count commands, but their "
                           "times are meaningless"},
};

/// The duration of a command in ns, by its event and by the host clock, which includes the launch overhead.
struct Duration {
    double by_event = 0, by_host = 0;
};

/// A kernel of cl_kernels/runtime/driver_faults.cl with what one run of it needs.
class Probe {
  public:
    Probe(const Device& device, const char* name)
        : state_(state_of(device).context), name_(fmt::format("kernel '{}' of 'driver_faults.cl'", name)) {
        cl_int status = CL_SUCCESS;
        program_ = cl::Program(state_.context, detail::kernel_source("driver_faults.cl"));
        check(clBuildProgram(program_(), 1, &state_.device, detail::kBuildOptions, nullptr, nullptr));
        kernel_ = cl::Kernel(clCreateKernel(program_(), name, &status));
        check(status);
    }

    /// Sets an argument; false if the driver reports a wrong argument size.
    template <class T>
    bool takes(cl_uint index, const T& value) {
        const cl_int status = clSetKernelArg(kernel_(), index, sizeof value, &value);
        if (status != CL_SUCCESS && status != CL_INVALID_ARG_SIZE) check(status);
        return status == CL_SUCCESS;
    }

    /// Runs the kernel and returns its output, argument `index`: `count` numbers initialised to 0.
    template <class T>
    std::vector<T> run(cl_uint index, std::size_t count, std::size_t items) {
        cl_int status = CL_SUCCESS;
        std::vector<T> out(count, T{0});
        const cl::Buffer memory(clCreateBuffer(state_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                               count * sizeof out[0], out.data(), &status));
        check(status);
        const cl::CommandQueue queue = detail::make_queue(state_, 0);
        const cl_mem raw = memory();
        check(clSetKernelArg(kernel_(), index, sizeof raw, &raw));
        check(clEnqueueNDRangeKernel(queue(), kernel_(), 1, nullptr, &items, &items, 0, nullptr, nullptr));
        check(
            clEnqueueReadBuffer(queue(), memory(), CL_TRUE, 0, count * sizeof out[0], out.data(), 0, nullptr, nullptr));
        return out;
    }

    /// Returns whether the kernel, of `steps` steps, has completed when the clFinish after a clFlush returns. Its
    /// second argument is one number.
    bool finishes(std::int32_t steps) {
        const Started started = start(steps, 0);
        check(clFlush(started.queue()));
        check(clFinish(started.queue()));
        cl_int state = CL_COMPLETE;
        check(clGetEventInfo(started.event(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr));
        check(clWaitForEvents(1, &started.event()));
        return state == CL_COMPLETE;
    }

    [[nodiscard]] std::size_t max_work_group() const {
        std::size_t limit = 0;
        check(clGetKernelWorkGroupInfo(kernel_(), state_.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit,
                                       nullptr));
        return limit;
    }

    /// Returns the duration of the kernel for `steps` steps; its second argument is one number.
    Duration time(std::int32_t steps) {
        const Started started = start(steps, CL_QUEUE_PROFILING_ENABLE);
        check(clWaitForEvents(1, &started.event()));
        const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - started.at;
        cl_ulong begin = 0, end = 0;
        check(clGetEventProfilingInfo(started.event(), CL_PROFILING_COMMAND_START, sizeof begin, &begin, nullptr));
        check(clGetEventProfilingInfo(started.event(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr));
        return {static_cast<double>(end) - static_cast<double>(begin), passed.count()};
    }

  private:
    struct Started {
        cl::Buffer memory;
        cl::CommandQueue queue;
        cl::Event event;
        std::chrono::steady_clock::time_point at;
    };

    /// Enqueues the kernel (steps, one number) as one work-item on a new queue.
    Started start(std::int32_t steps, cl_command_queue_properties properties) {
        cl_int status = CL_SUCCESS;
        Started started{.memory = cl::Buffer(clCreateBuffer(state_.context(), CL_MEM_READ_WRITE, sizeof(std::int32_t),
                                                            nullptr, &status)),
                        .queue = {},
                        .event = {},
                        .at = {}};
        check(status);
        started.queue = detail::make_queue(state_, properties);
        const cl_mem raw = started.memory();
        check(clSetKernelArg(kernel_(), 0, sizeof steps, &steps));
        check(clSetKernelArg(kernel_(), 1, sizeof raw, &raw));
        const std::size_t items = 1;
        started.at = std::chrono::steady_clock::now();
        check(clEnqueueNDRangeKernel(started.queue(), kernel_(), 1, nullptr, &items, &items, 0, nullptr,
                                     &started.event()));
        return started;
    }

    void check(cl_int status) const {
        if (status != CL_SUCCESS) detail::throw_status(status, name_, state_.info.name);
    }

    const detail::DeviceContext& state_;
    std::string name_;
    cl::Program program_;
    cl::Kernel kernel_;
};

bool understates_groups(const Device& device) {
    constexpr std::size_t items = 64;
    if (device.info().max_work_group < items) return false;
    Probe probe(device, "understated_work_group");
    if (probe.max_work_group() >= items) return false;
    std::vector<std::int32_t> wanted(items);
    for (std::size_t i = 0; i < items; ++i) wanted[i] = static_cast<std::int32_t>(items - i);
    try {
        return probe.run<std::int32_t>(0, items, items) == wanted;
    } catch (const DeviceError& error) {
        if (error.code() != CL_INVALID_WORK_GROUP_SIZE) throw;
        return false;  // the reported maximum was true
    }
}

bool finishes_too_early(const Device& device) {
    Probe probe(device, "idle_event_clock");
    (void)probe.time(1);  // a driver may compile in the first launch
    for (std::int32_t steps = 1 << 20; steps <= 1 << 26; steps *= 4)
        if (!probe.finishes(steps)) return true;
    return false;
}

bool has_idle_clock(const Device& device) {
    Probe probe(device, "idle_event_clock");
    (void)probe.time(1);  // a driver may compile in the first launch
    // Each step depends on the previous one. The host time is only an upper bound, since other work may delay the host;
    // no device can be faster than the lower bound.
    constexpr std::int32_t steps = 1 << 16;
    constexpr double least = 0.05 * steps;
    const Duration took = probe.time(steps);
    return took.by_event < least || took.by_event > took.by_host * 100;
}

bool writes_elsewhere(const Device& device) {
    constexpr std::size_t items = 64, columns = 8;
    std::vector<float> wanted(32 * items, 0);
    for (std::size_t id = 0; id < items; ++id)
        for (std::size_t r = 0; r < 2; ++r)
            wanted[(4 * (id / columns) + r) * 32 + 4 * (id % columns)] = static_cast<float>(id + 1);
    return Probe(device, "wide_work_item_ids").run<float>(0, wanted.size(), items) != wanted;
}

struct Padded {
    std::int64_t a;
    std::int32_t b;
};
struct Nested {
    std::array<std::array<std::int64_t, 4>, 3> a;
};
struct Indexed {
    std::array<std::int32_t, 8> a;
};

}  // namespace

std::span<const DriverFault> driver_faults() { return kFaults; }

const DriverFault& driver_fault(std::string_view name) {
    const auto found = std::ranges::find(kFaults, name, &DriverFault::name);
    if (found == kFaults.end())
        throw ValueError(fmt::format("driver_fault: expected the name of one of driver_faults(), got \"{}\"", name));
    return *found;
}

bool has_fault(const Device& device, const DriverFault& fault) {
    detail::refuse_after_fork("has_fault");
    detail::refuse_at_exit("has_fault");
    const detail::Compiling compiling;
    if (fault.name == "wide_work_item_ids") return writes_elsewhere(device);
    if (fault.name == "padded_struct_argument") return !Probe(device, "padded_struct_argument").takes(0, Padded{1, 2});
    if (fault.name == "array_of_arrays_argument") return !Probe(device, "array_of_arrays_argument").takes(0, Nested{});
    if (fault.name == "indexed_struct_argument") {
        Probe probe(device, "indexed_struct_argument");
        const Indexed indexed{{3, 1, 4, 1, 5, 9, 2, 6}};
        return !probe.takes(0, indexed) ||
               probe.run<std::int32_t>(1, 8, 8) != std::vector<std::int32_t>(indexed.a.begin(), indexed.a.end());
    }
    if (fault.name == "byte_constant_select") {
        const auto counted = Probe(device, "byte_constant_select").run<std::int8_t>(0, 64, 64);
        for (std::size_t i = 0; i < counted.size(); ++i)
            if (counted[i] != std::max(0, static_cast<int>(i) - 32)) return true;
        return false;
    }
    if (fault.name == "extended_constant_compare") {
        const auto found = Probe(device, "extended_constant_compare").run<std::int32_t>(0, 64, 64);
        for (std::size_t i = 0; i < found.size(); ++i)
            if (found[i] != (i < 32 ? 1 : 0)) return true;
        return false;
    }
    if (fault.name == "understated_work_group") return understates_groups(device);
    if (fault.name == "limited_loops") {
        const std::int32_t passes = Probe(device, "limited_loops").run<std::int32_t>(0, 1, 1)[0];
        return passes > 0 && passes != 200000;  // 0: nothing ran, so the result is inconclusive
    }
    if (fault.name == "finish_after_flush") return finishes_too_early(device);
    if (fault.name == "idle_event_clock") return has_idle_clock(device);
    throw ValueError(fmt::format("has_fault: expected one of driver_faults(), got \"{}\"", fault.name));
}

}  // namespace declivity
