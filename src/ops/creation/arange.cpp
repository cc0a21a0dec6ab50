#include <declivity/ops/arange.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/expression_node.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// The last of `count` numbers; floating-point if 64-bit integers cannot hold it.
Scalar last_of(const Scalar& start, const Scalar& step, std::int64_t count) {
    const std::int64_t steps = count - 1;
    const auto wrapped = static_cast<std::uint64_t>(steps) * step.to<std::uint64_t>() + start.to<std::uint64_t>();
    const double about = start.to_double() + static_cast<double>(steps) * step.to_double();
    if (start.is_floating() || step.is_floating() || !(std::abs(about) < 0x1p64)) return about;
    return about < 0 ? Scalar(static_cast<std::int64_t>(wrapped)) : Scalar(wrapped);
}

}  // namespace

void arange(const View& out, Scalar start, Scalar step) {
    require_rank("arange", "out", out, 1, "n");
    require_dense("arange", "out", out);
    if (out.dtype == DType::boolean || is_16bit_float(out.dtype))
        throw TypeError(fmt::format("arange: expected {}, got {}",
                                    is_16bit_float(out.dtype) ? "f32, f64 or integers" : "numbers",
                                    name_of(out.dtype)));
    if (out.numel() == 0) return;
    if (!is_floating(out.dtype)) {
        require_fits("arange", step, DType::i64);  // descending, also for an unsigned type
        for (const Scalar& number : {start, last_of(start, step, out.numel())})
            require_fits("arange", number, out.dtype);
    }
    const bool floating = is_floating(out.dtype);
    Defines defines = real_defines(out.dtype);
    defines.set("OUT", cl_type(out.dtype))
        .set("COMPUTE", floating                  ? cl_type(out.dtype)
                        : out.dtype == DType::u64 ? "ulong"
                                                  : "long");
    const Device device = out.device();
    const Kernel kernel(device, {"arange.cl", "arange", defines});
    const std::size_t group = item_group(kernel);
    const Range range{.global = {round_up(static_cast<std::size_t>(out.numel()), group), 1, 1}, .local = {group, 1, 1}};
    if (floating) {
        const RealArguments reals(out.dtype, {start.to_double(), step.to_double()});
        launch(kernel, range, {out.numel(), out.argument(), reals[0], reals[1]});
    } else {
        launch(kernel, range, {out.numel(), out.argument(), start.to<std::int64_t>(), step.to<std::int64_t>()});
    }
}

}  // namespace declivity::ops
