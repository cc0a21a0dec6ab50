// Padded copies of images for the tiled convolution.
#include <algorithm>
#include <numeric>

#include "conv2d_tiled.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops::tiled {
namespace {

constexpr std::int64_t kSimtRegisters =
    48;  // accumulators and operands of a work-item that leave enough work-items in flight
constexpr std::size_t kSimtCopyGroup = 256;

/// Layout of the kernels' struct Pad; must match cl_kernels/conv/conv2d_tiled_pad.cl.
struct PadArguments {
    std::int64_t planes, plane, total;
    std::int32_t height, width, rows, pitch;
    std::int32_t stride_h, stride_w, phases_h, phases_w, step_h, step_w, origin_h, origin_w;
};

}  // namespace

Form form_of(const Device& device, KernelStyle style, DType dtype) {
    if (style == KernelStyle::simt) {
        Form form{.vector = 1, .group = static_cast<std::int64_t>(kSimtItemGroup), .registers = kSimtRegisters};
        while (form.group > 1 && static_cast<std::size_t>(form.group) > device.info().max_work_group) form.group /= 2;
        return form;
    }
    const VectorForm narrowed = vector_form(device, dtype);
    return {.vector = narrowed.vector, .group = 1, .registers = narrowed.registers};
}

Defines defines_of(const Form& form, DType dtype) {
    Defines defines = real_defines(dtype);
    defines.set("VW", form.vector).set("GROUP", form.group).set("MAX_TAPS", kMaxTaps);
    return defines;
}

std::int64_t plane_of(const std::array<PadAxis, 2>& axes) {
    return axes[0].phases * axes[0].size * axes[1].phases * axes[1].size;
}

Padded pad(const View& source, const std::array<PadAxis, 2>& axes, const Form& form, KernelStyle style,
           std::int64_t multiple, std::int64_t tail) {
    const std::int64_t planes = source.shape[0] * source.shape[1];
    const std::int64_t plane = ceil_div(plane_of(axes), multiple) * multiple;
    const PadArguments arguments{.planes = planes,
                                 .plane = plane,
                                 .total = planes * plane + tail,
                                 .height = narrow(source.shape[2]),
                                 .width = narrow(source.shape[3]),
                                 .rows = narrow(axes[0].size),
                                 .pitch = narrow(axes[1].size),
                                 .stride_h = narrow(axes[0].stride),
                                 .stride_w = narrow(axes[1].stride),
                                 .phases_h = narrow(axes[0].phases),
                                 .phases_w = narrow(axes[1].phases),
                                 .step_h = narrow(axes[0].step),
                                 .step_w = narrow(axes[1].step),
                                 .origin_h = narrow(axes[0].origin),
                                 .origin_w = narrow(axes[1].origin)};
    Padded padded{.copy = View::make(source.device(), source.dtype, {arguments.total}),
                  .channel = plane,
                  .image = source.shape[1] * plane};
    const bool simd = style == KernelStyle::simd;
    const Kernel kernel(source.device(), {"conv2d_tiled_pad.cl", "conv2d_tiled_pad", defines_of(form, source.dtype)});
    const std::size_t group = simd ? 1 : std::min(kSimtCopyGroup, kernel.max_work_group());
    const auto items = static_cast<std::size_t>(simd ? planes : arguments.total);
    launch(kernel, {{round_up(items, group), 1, 1}, {group, 1, 1}},
           {arguments, source.argument(), padded.copy.argument()});
    return padded;
}

Windows windows_of(const Conv2dProblem& problem) {
    Windows windows;
    std::array<std::int64_t, 2> residues{};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t stride = problem.stride[i], dilation = problem.dilation[i];
        // Element r of the filter has the remainder r * dilation % stride, which has this period.
        residues[i] = stride / std::gcd(stride, dilation);
        windows.axes[i] = {.size = problem.output[i] + (problem.filter[i] - 1) * dilation / stride,
                           .stride = stride,
                           .phases = std::min(residues[i], problem.filter[i]),
                           .step = dilation,
                           .origin = problem.padding[i]};
    }
    const auto& [rows, columns] = windows.axes;
    const std::array phase_steps{columns.phases * rows.size * columns.size, rows.size * columns.size},
        units{columns.size, std::int64_t{1}};
    for (std::size_t i = 0; i < 2; ++i)
        windows.taps[i] = {.period = narrow(residues[i]),
                           .phase = narrow(phase_steps[i]),
                           .dilation = narrow(problem.dilation[i]),
                           .stride = narrow(problem.stride[i]),
                           .unit = narrow(units[i])};
    for (std::int64_t r = 0; r < problem.filter[0]; ++r)
        for (std::int64_t s = 0; s < problem.filter[1]; ++s) {
            const std::int64_t phase = r % residues[0] * columns.phases + s % residues[1];
            const std::int64_t row = r * problem.dilation[0] / problem.stride[0],
                               column = s * problem.dilation[1] / problem.stride[1];
            windows.offset[static_cast<std::size_t>(r * problem.filter[1] + s)] =
                narrow((phase * rows.size + row) * columns.size + column);
        }
    return windows;
}

}  // namespace declivity::ops::tiled
