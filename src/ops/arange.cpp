#include <declivity/ops/arange.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/expression_node.hpp"
#include "ops/engine/real_arguments.hpp"

namespace declivity::ops {

void arange(const View& out, double start, double step) {
    require_rank("arange", "out", out, 1, "n");
    require_dense("arange", "out", out);
    if (out.dtype == DType::boolean || is_half(out.dtype))
        throw TypeError(fmt::format("arange: wants {}, got {}", is_half(out.dtype) ? "f32, f64 or integers" : "numbers",
                                    name_of(out.dtype)));
    if (out.numel() == 0) return;
    if (!is_floating(out.dtype)) {
        require_fits("arange", step, DType::i64);  // downwards in an unsigned type as well
        for (const double number : {start, start + static_cast<double>(out.numel() - 1) * step})
            require_fits("arange", number, out.dtype);
    }
    const bool floating = is_floating(out.dtype);
    Defines defines = real_defines(out.dtype);
    defines.set("OUT", cl_type(out.dtype)).set("COMPUTE", floating ? cl_type(out.dtype) : "long");
    const Device device = out.device();
    const Kernel kernel(device, {"arange.cl", "arange", defines});
    const std::size_t group = std::min<std::size_t>(64, kernel.max_work_group());
    const Range range{.global = {round_up(static_cast<std::size_t>(out.numel()), group), 1, 1}, .local = {group, 1, 1}};
    if (floating) {
        const RealArguments reals(out.dtype, {start, step});
        launch(kernel, range, {out.numel(), out.argument(), reals[0], reals[1]});
    } else {
        launch(kernel, range,
               {out.numel(), out.argument(), static_cast<std::int64_t>(start), static_cast<std::int64_t>(step)});
    }
}

}  // namespace declivity::ops
