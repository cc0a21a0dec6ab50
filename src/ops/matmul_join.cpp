// Adds the parts of products whose sums were cut (cl_kernels/matmul_join.cl), on GPU-like devices.
#include <algorithm>

#include <declivity/runtime/launch.hpp>

#include "matmul_strategies.hpp"
#include "work_split.hpp"

namespace declivity::ops {

void matmul_join(const View& partials, const View& out, const ProductTail& tail) {
    Defines defines = storage_defines(out.dtype, out.dtype);
    set_activation(defines, tail);
    const Kernel kernel(out.device(), {"matmul_join.cl", "matmul_join", defines});
    const std::size_t group = std::min(to_size(kGpuGroup), kernel.max_work_group());
    const TailArguments arguments(tail, partials);
    launch(kernel, {round_up(to_size(out.numel()), group), group},
           arguments.behind({out.numel(), out.shape.back(), partials.shape[0], partials.argument(), out.argument()}));
}

}  // namespace declivity::ops
