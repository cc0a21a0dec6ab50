// Reduces the split-K partial sums of matrix products (cl_kernels/matmul/matmul_reduce.cl), simt kernels.
#include <algorithm>

#include <declivity/runtime/launch.hpp>

#include "matmul_strategies.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {

void matmul_reduce(const View& partials, const View& out, const KernelEpilogue& epilogue) {
    Defines defines = storage_defines(out.dtype, out.dtype);
    set_activation(defines, epilogue);
    const Kernel kernel(out.device(), {"matmul_reduce.cl", "matmul_reduce", defines});
    const std::size_t group = std::min(to_size(kSimtGroup), kernel.max_work_group());
    const EpilogueArguments arguments(epilogue, partials);
    launch(
        kernel, {round_up(to_size(out.numel()), group), group},
        arguments.append_to({out.numel(), out.shape.back(), partials.shape[0], partials.argument(), out.argument()}));
}

}  // namespace declivity::ops
