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

namespace declivity {
namespace {

constexpr std::array<DriverFault, 10> kFaults{
    DriverFault{.name = "wide_work_item_ids",
                .what = "a kernel that narrows the quotient and the remainder of a work-item's id to int, and uses "
                        "both for an address within a loop, writes elsewhere",
                .seen = "Intel's runtime for CPUs 2026.2, on processors with AVX-512",
                .avoided = "work-item ids are narrowed to int before they are divided"},
    DriverFault{.name = "padded_struct_argument",
                .what = "clSetKernelArg refuses a struct of the size that sizeof gives where its last member is "
                        "followed by padding",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "structs that kernels take have no padding, which the compiler checks"},
    DriverFault{.name = "array_of_arrays_argument",
                .what = "clSetKernelArg takes a struct with an array of arrays for smaller than it is, and refuses it",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "structs that kernels take have arrays of one dimension only"},
    DriverFault{
        .name = "indexed_struct_argument",
        .what =
            "a kernel that reads an array within a struct argument at an index known at run time only ends the process",
        .seen = "rusticl of Mesa 22.3 on llvmpipe",
        .avoided = "kernels for GPU-like devices, as llvmpipe is one, read such arrays at constant indices",
        .may_crash = true},
    DriverFault{.name = "byte_constant_select",
                .what = "a kernel that chooses between a constant and a variable number of 8 bits ends the process",
                .seen = "rusticl of Mesa 22.3 on llvmpipe",
                .avoided = "constants of 8 bits are hidden from the compiler",
                .may_crash = true},
    DriverFault{
        .name = "extended_constant_compare",
        .what = "an int that was made a long, and is compared with a constant, counts as larger than it",
        .seen = "rusticl of Mesa 22.3 on llvmpipe",
        .avoided =
            "labels are compared as what they are; constants of 64 bits in expressions are hidden from the compiler"},
    DriverFault{.name = "understated_work_group",
                .what = "a kernel that states its work-group's size is said to run in smaller groups only, and runs in "
                        "groups of that size",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "where a small kernel shows that, kernels that state a size are launched with it"},
    DriverFault{.name = "limited_loops",
                .what = "the loops of a kernel end after 65535 passes in all",
                .seen = "rusticl of Mesa 22.3 on llvmpipe",
                .avoided = ""},
    DriverFault{.name = "finish_after_flush",
                .what = "clFinish does not wait for commands that clFlush sent before, so that memory which they write "
                        "is given up too early",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "a marker's event is waited for, too"},
    DriverFault{.name = "idle_event_clock",
                .what = "events give times of commands that have nothing to do with how long they took",
                .seen = "rusticl of Mesa 22.3",
                .avoided = "the tuner and declivity bench go by the host's clock; profiles count commands, and their "
                           "times mean nothing"},
};

/// Nanoseconds, what a command took by its event and by the host, which counts more than the command.
struct Duration {
    double by_event = 0, by_host = 0;
};

/// A kernel of cl_kernels/runtime/driver_faults.cl and what it needs to run once.
class Probe {
  public:
    Probe(const Device& device, const char* name)
        : state_(device.state()), name_(fmt::format("kernel '{}' of 'driver_faults.cl'", name)) {
        cl_int status = CL_SUCCESS;
        program_ = cl::Program(state_.context, detail::kernel_source("driver_faults.cl"));
        check(clBuildProgram(program_(), 1, &state_.device, detail::kBuildOptions, nullptr, nullptr));
        kernel_ = cl::Kernel(clCreateKernel(program_(), name, &status));
        check(status);
    }

    /// False: the driver says that this is not the argument's size.
    template <class T>
    bool takes(cl_uint index, const T& value) {
        const cl_int status = clSetKernelArg(kernel_(), index, sizeof value, &value);
        if (status != CL_SUCCESS && status != CL_INVALID_ARG_SIZE) check(status);
        return status == CL_SUCCESS;
    }

    /// What the kernel leaves in its output, `count` numbers that begin as 0, its argument `index`.
    template <class T>
    std::vector<T> run(cl_uint index, std::size_t count, std::size_t items) {
        cl_int status = CL_SUCCESS;
        std::vector<T> out(count, T{0});
        const cl::Buffer memory(clCreateBuffer(state_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                               count * sizeof out[0], out.data(), &status));
        check(status);
        const cl::CommandQueue queue = detail::make_queue(state_.context, state_.device, state_.info, 0);
        const cl_mem raw = memory();
        check(clSetKernelArg(kernel_(), index, sizeof raw, &raw));
        check(clEnqueueNDRangeKernel(queue(), kernel_(), 1, nullptr, &items, &items, 0, nullptr, nullptr));
        check(
            clEnqueueReadBuffer(queue(), memory(), CL_TRUE, 0, count * sizeof out[0], out.data(), 0, nullptr, nullptr));
        return out;
    }

    /// Whether the kernel, of so many steps, has ended when clFinish returns that follows clFlush. Its second argument
    /// is one number.
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
        std::size_t most = 0;
        check(
            clGetKernelWorkGroupInfo(kernel_(), state_.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr));
        return most;
    }

    /// How long the kernel takes for so many steps; its second argument is one number.
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

    /// Enqueues the kernel (steps, one number) as one work-item on a queue of its own.
    Started start(std::int32_t steps, cl_command_queue_properties properties) {
        cl_int status = CL_SUCCESS;
        Started started{.memory = cl::Buffer(clCreateBuffer(state_.context(), CL_MEM_READ_WRITE, sizeof(std::int32_t),
                                                            nullptr, &status)),
                        .queue = {},
                        .event = {},
                        .at = {}};
        check(status);
        started.queue = detail::make_queue(state_.context, state_.device, state_.info, properties);
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

    detail::DeviceState& state_;
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
        return false;  // it said what is true
    }
}

bool finishes_too_early(const Device& device) {
    Probe probe(device, "idle_event_clock");
    (void)probe.time(1);  // a driver may compile at the first launch
    for (std::int32_t steps = 1 << 20; steps <= 1 << 26; steps *= 4)
        if (!probe.finishes(steps)) return true;
    return false;
}

bool has_idle_clock(const Device& device) {
    Probe probe(device, "idle_event_clock");
    (void)probe.time(1);  // a driver may compile at the first launch
    // Each step waits for the one before. The clock of the host is an upper bound only, since other work may keep it
    // from looking; the lower one is what no device can fall short of.
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
        return passes > 0 && passes != 200000;  // 0: nothing ran, which says nothing
    }
    if (fault.name == "finish_after_flush") return finishes_too_early(device);
    if (fault.name == "idle_event_clock") return has_idle_clock(device);
    throw ValueError(fmt::format("has_fault: expected one of driver_faults(), got \"{}\"", fault.name));
}

}  // namespace declivity
