#include "limits.hpp"

#include <algorithm>
#include <string>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/ceilings.hpp>
#include <declivity/runtime/launch.hpp>

#include "copies.hpp"
#include "ops/engine/expression.hpp"

namespace declivity::bench {
namespace {

void run(Report& report) {
    report.begin("limits");
    const Ceilings& device_ceilings = report.ceilings();
    report.note("multiply-add f32", device_ceilings.multiply_add_f32 * 1e-9, "GFLOP/s");
    if (device_ceilings.multiply_add_f64 > 0)
        report.note("multiply-add f64", device_ceilings.multiply_add_f64 * 1e-9, "GFLOP/s");
    report.note("copy, read and written", device_ceilings.copy * 1e-9, "GB/s");
    report.note("launch, enqueued", device_ceilings.launch * 1e6, "us");
    report.note("launch and wait", device_ceilings.launch_waited * 1e6, "us");
    report.end();
}

const Suite suite("limits", "measured peak rates of the device: multiply-adds, copies, launches", run);

}  // namespace

Ceilings measure_ceilings(const Device& device) {
    Ceilings ceilings;
    const declivity::Ceilings device_ceilings = declivity::measure_ceilings(device);
    ceilings.multiply_add_f32 = device_ceilings.flops_f32;
    ceilings.multiply_add_f64 = device_ceilings.flops_f64;
    const auto wait = [&] { device.synchronize(); };
    {
        const std::int64_t count =
            std::min<std::int64_t>(std::int64_t{1} << 25, static_cast<std::int64_t>(device.info().max_allocation / 16));
        const double bytes = 8.0 * static_cast<double>(count);
        const Times times = compare(copy_of(device, bytes), {}).ours;
        ceilings.copy = bytes / times.seconds;
    }
    {
        const Kernel kernel(device, {"bench_launch.cl", "nothing"});
        const ops::View out = ops::View::make(device, DType::f32, {1});
        const Times times = compare({"launch",
                                     [&](int) {
                                         launch(kernel, {{1}, {1}}, {out.argument()});
                                     },
                                     wait},
                                    {})
                                .ours;
        ceilings.launch = times.seconds;
        ceilings.launch_waited = times.waited;
    }
    return ceilings;
}

}  // namespace declivity::bench
