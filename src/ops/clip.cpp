#include <declivity/ops/clip.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"

namespace declivity::ops {

View clip_norm(const MultiTensor& tensors, double max_norm) {
    if (!(max_norm > 0)) throw ValueError(fmt::format("clip_norm: wants a largest norm above 0, got {}", max_norm));
    const Device device = tensors.device();
    const DType dtype = tensors.dtype();
    if (is_half(dtype)) throw TypeError(fmt::format("clip_norm: wants f32 or f64, got {}", name_of(dtype)));
    const View partial = View::make(device, dtype, {tensors.pieces()});
    const View norm = View::make(device, dtype, {2});
    const BufferArgument partial_argument = partial.argument(), norm_argument = norm.argument();
    const Argument to_partial[] = {partial_argument};
    {
        const WorkScope work("clip_norm", tensors.work(2, 1));
        tensors.launch({"clip.cl", "clip_partial"}, to_partial);
    }
    const RealArguments reals(dtype, {max_norm});
    // The same program as the others; the group size plays no part for one work-item.
    Defines defines = real_defines(dtype);
    defines.set("ROLES", "1").set("GROUP", "1");
    const Kernel factor(device, {"clip.cl", "clip_factor", defines});
    const std::int64_t pieces = tensors.pieces();
    launch(factor, {.global = {1, 1, 1}, .local = {1, 1, 1}}, {pieces, partial_argument, norm_argument, reals[0]});
    const Argument by_factor[] = {norm_argument};
    const WorkScope work("clip_norm", tensors.work(1, 2));
    tensors.launch({"clip.cl", "clip_scale"}, by_factor);
    return sliced(norm, 0, 0, 1);
}

}  // namespace declivity::ops
