#include <declivity/runtime/ceilings.hpp>

#include <algorithm>
#include <string>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/launch.hpp>
#include <fmt/format.h>

#include "opencl/profiler_state.hpp"
#include "spans.hpp"

namespace declivity {
namespace {

constexpr double kMinRunSeconds = 10e-3;  // so that the launch overhead is negligible
constexpr int kRuns = 5;
constexpr std::size_t kCopy = 256 << 20;  // bytes: larger than most caches
constexpr std::size_t kMinCopy = 1 << 20;
constexpr std::size_t kGpuGroup = 256;

template <class Launch>
double seconds_of(const Device& device, Launch&& run) {
    device.synchronize();
    const std::int64_t begin = detail::now_ns();
    run();
    device.synchronize();
    return std::max<double>(1, static_cast<double>(detail::now_ns() - begin)) * 1e-9;
}

double multiply_add_rate(const Device& device, bool f64) {
    const bool cpu = device.kernel_style() == KernelStyle::simd;
    const DeviceInfo& info = device.info();
    std::int64_t width = 1;
    if (cpu)
        while (width * 2 <= std::min(f64 ? info.vector_width_f64 : info.vector_width_f32, 16U)) width *= 2;
    const std::string type = f64 ? "double" : "float";
    double best = 0;
    for (const std::int64_t chains : {8, 12}) {
        Defines defines;
        defines.set("REAL", type)
            .set("VEC", width > 1 ? type + std::to_string(width) : type)
            .set("FIRST(v)", width > 1 ? "(v).s0" : "(v)")
            .set("CHAINS", chains);
        defines.set("COPY", "float").set("BLOCKS", std::int64_t{1});
        if (f64) defines.set("REAL_IS_DOUBLE", std::int64_t{1});
        const Kernel kernel(device, {"ceilings.cl", "ceiling_multiply_add", defines});
        const std::size_t group = cpu ? 1 : std::min(kGpuGroup, kernel.max_work_group());
        const std::size_t items = round_up((cpu ? 16 : 4096) * std::max<std::size_t>(1, info.compute_units), group);
        const Buffer out(device, items * sizeof(double));
        std::int32_t steps = 256;
        const auto run = [&] {
            launch(kernel, {{items}, {group}},
                   {steps, 0.5F, BufferArgument{out, 0, f64 ? sizeof(double) : sizeof(float)}});
        };
        run();  // the first launch may compile
        while (seconds_of(device, run) < kMinRunSeconds && steps < (1 << 26)) steps *= 2;
        for (int i = 0; i < kRuns; ++i)
            best = std::max(best, 2.0 * static_cast<double>(width * chains * steps) * static_cast<double>(items) /
                                      seconds_of(device, run));
    }
    return best;
}

double copy_rate(const Device& device) {
    const bool cpu = device.kernel_style() == KernelStyle::simd;
    Defines defines;
    defines.set("REAL", "float").set("VEC", "float").set("FIRST(v)", "(v)").set("CHAINS", std::int64_t{8});
    defines.set("COPY", cpu ? "float16" : "float4").set("BLOCKS", std::int64_t{cpu});
    const std::size_t element = cpu ? 64 : 16;
    const Kernel kernel(device, {"ceilings.cl", "ceiling_copy", defines});
    for (std::size_t bytes = std::clamp<std::size_t>(device.info().max_allocation / 4, kMinCopy, kCopy);; bytes /= 2)
        try {
            const Buffer from(device, bytes), to(device, bytes);
            const auto count = static_cast<std::int64_t>(bytes / element);
            const std::size_t units = std::max<std::size_t>(1, device.info().compute_units);
            const std::size_t group = cpu ? 1 : std::min(kGpuGroup, kernel.max_work_group());
            const std::size_t items = cpu ? units * 4 : units * 16 * group;
            const std::int64_t each = ceil_div(count, static_cast<std::int64_t>(items));
            const auto run = [&] {
                launch(kernel, {{items}, {group}},
                       {count, each, BufferArgument{from, 0, element}, BufferArgument{to, 0, element}});
            };
            run();  // touches the pages
            double best = 0;
            for (int i = 0; i < kRuns; ++i)
                best = std::max(
                    best, 2.0 * static_cast<double>(count) * static_cast<double>(element) / seconds_of(device, run));
            return best;
        } catch (const OutOfMemory&) {
            if (bytes / 2 < kMinCopy) throw;
        }
}

}  // namespace

Ceilings measure_ceilings(const Device& device) {
    const detail::Unprofiled unprofiled;
    Ceilings ceilings{.flops_f32 = multiply_add_rate(device, false)};
    if (device.info().fp64) ceilings.flops_f64 = multiply_add_rate(device, true);
    ceilings.bytes = copy_rate(device);
    return ceilings;
}

}  // namespace declivity
