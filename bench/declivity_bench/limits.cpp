#include "limits.hpp"

#include <algorithm>
#include <string>

#include <declivity/ops/expression.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/launch.hpp>

#include "copies.hpp"

namespace declivity::bench {
namespace {

const std::string kFile = std::string(DECLIVITY_PROGRAM_DIR) + "/limits.cl";

Defines defines_for(DType dtype, int width, int chains) {
    Defines defines = ops::real_defines(dtype);
    const std::string type(ops::cl_type(dtype));
    return defines.set("VEC", width > 1 ? type + std::to_string(width) : type)
        .set("FIRST(v)", width > 1 ? "(v).s0" : "(v)").set("CHAINS", std::int64_t{chains});
}

double multiply_add_rate(const Device& device, DType dtype) {
    const bool cpu = device.family() == Family::cpu_like;
    int width = 1;
    if (cpu) {
        const auto& info = device.info();
        for (const int most = dtype == DType::f64 ? static_cast<int>(info.vector_width_f64) : static_cast<int>(info.vector_width_f32); width * 2 <= std::min(most, 16);) width *= 2;
    }
    double best = 0;
    for (const int chains : {8, 12}) {
        const Kernel kernel(device, {kFile, "multiply_add", defines_for(dtype, width, chains)});
        const std::size_t items = cpu ? 16 * device.info().compute_units : 4096 * std::size_t{device.info().compute_units};
        const std::int32_t steps = cpu ? 100000 : 4000;
        const ops::View out = ops::View::make(device, dtype, {static_cast<std::int64_t>(items)});
        const std::size_t group = cpu ? 1 : std::min<std::size_t>(256, kernel.max_work_group());
        const Contender ours{"ours", [&](int) {
            if (dtype == DType::f64) launch(kernel, {{round_up(items, group)}, {group}}, {steps, 0.5, out.argument()});
            else launch(kernel, {{round_up(items, group)}, {group}}, {steps, 0.5F, out.argument()});
        }, [&] { device.synchronize(); }};
        const double work = 2.0 * width * chains * steps * static_cast<double>(items);
        best = std::max(best, work / compare(ours, {}).ours.seconds);
    }
    return best;
}

void run(Report& report) {
    report.begin("limits");
    const Ceilings& most = report.ceilings();
    report.note("multiply-add f32", most.multiply_add_f32 * 1e-9, "GFLOP/s");
    if (most.multiply_add_f64 > 0) report.note("multiply-add f64", most.multiply_add_f64 * 1e-9, "GFLOP/s");
    report.note("copy, read and written", most.copy * 1e-9, "GB/s");
    report.note("launch, enqueued", most.launch * 1e6, "us");
    report.note("launch, waited for", most.launch_waited * 1e6, "us");
    report.end();
}

const Suite suite("limits", "what the device does at most: multiply-adds, copies, launches", run);

}  // namespace

Ceilings measure_ceilings(const Device& device) {
    Ceilings most;
    most.multiply_add_f32 = multiply_add_rate(device, DType::f32);
    if (device.info().fp64) most.multiply_add_f64 = multiply_add_rate(device, DType::f64);
    const auto wait = [&] { device.synchronize(); };
    {
        const std::int64_t count = std::min<std::int64_t>(std::int64_t{1} << 25, static_cast<std::int64_t>(device.info().max_allocation / 16));
        const double bytes = 8.0 * static_cast<double>(count);
        const Times times = compare(copy_of(device, bytes), {}).ours;
        most.copy = bytes / times.seconds;
    }
    {
        const Kernel kernel(device, {kFile, "nothing", defines_for(DType::f32, 1, 1)});
        const ops::View out = ops::View::make(device, DType::f32, {1});
        const Times times = compare({"launch", [&](int) { launch(kernel, {{1}, {1}}, {out.argument()}); }, wait}, {}).ours;
        most.launch = times.seconds;
        most.launch_waited = times.waited;
    }
    return most;
}

}  // namespace declivity::bench
