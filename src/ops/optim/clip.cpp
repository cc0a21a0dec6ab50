#include <declivity/ops/clip.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"

namespace declivity::ops {
namespace {

void require_wide(std::string_view function, const MultiTensor& tensors) {
    if (is_16bit_float(tensors.dtype()))
        throw TypeError(fmt::format("{}: expected f32 or f64, got {}", function, name_of(tensors.dtype())));
}

}  // namespace

ClipNorm::ClipNorm(const MultiTensor& tensors, double max_norm) : tensors_(tensors) {
    if (!(max_norm > 0)) throw ValueError(fmt::format("clip_norm: expected a maximum norm above 0, got {}", max_norm));
    const Device device = tensors.device();
    const DType dtype = tensors.dtype();
    require_wide("clip_norm", tensors);
    const View partial = View::make(device, dtype, {tensors.pieces()});
    norm_ = View::make(device, dtype, {2});
    const BufferArgument partial_argument = partial.argument(), norm_argument = norm_.argument();
    const Argument to_partial[] = {partial_argument};
    {
        const WorkScope work("clip_norm", tensors.work(2, 1));
        tensors.launch({"clip.cl", "clip_partial"}, to_partial);
    }
    const RealArguments reals(dtype, {max_norm});
    // The same program as the others; a single work-item does not depend on the group size.
    Defines defines = real_defines(dtype);
    defines.set("ROLES", "1").set("GROUP", "1");
    const Kernel factor(device, {"clip.cl", "clip_factor", defines});
    const std::int64_t pieces = tensors.pieces();
    launch(factor, {.global = {1, 1, 1}, .local = {1, 1, 1}}, {pieces, partial_argument, norm_argument, reals[0]});
}

View ClipNorm::norm() const { return sliced(norm_, 0, 0, 1); }

void ClipNorm::scale() const {
    const Argument by_factor[] = {norm_.argument()};
    const WorkScope work("clip_norm", tensors_.work(1, 2));
    tensors_.launch({"clip.cl", "clip_scale"}, by_factor);
}

View clip_norm(const MultiTensor& tensors, double max_norm) {
    const ClipNorm clip(tensors, max_norm);
    clip.scale();
    return clip.norm();
}

void clip_value(const MultiTensor& tensors, double limit) {
    if (!(limit >= 0)) throw ValueError(fmt::format("clip_value: expected a limit of at least 0, got {}", limit));
    require_wide("clip_value", tensors);
    const RealArguments reals(tensors.dtype(), {limit});
    const Argument further[] = {reals[0]};
    const WorkScope work("clip_value", tensors.work(2, 2));
    tensors.launch({"clip.cl", "clip_value"}, further);
}

}  // namespace declivity::ops
