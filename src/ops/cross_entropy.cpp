#include <declivity/ops/cross_entropy.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "real_arguments.hpp"

namespace declivity::ops {
namespace {

constexpr std::size_t kGpuGroup = 64;

void check(const View& logits, const View& labels, const CrossEntropyParameters& parameters) {
    require_floating("cross_entropy", "logits", logits);
    require_rank("cross_entropy", "logits", logits, 2, "N, C");
    require_dense("cross_entropy", "logits", logits);
    require_dense("cross_entropy", "labels", labels);
    require_shape("cross_entropy", "labels", labels, {logits.shape[0]});
    require_same_device("cross_entropy", logits, labels);
    if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
        throw TypeError(fmt::format("cross_entropy: wants labels of i32 or i64, got {}", name_of(labels.dtype)));
    if (logits.shape[1] < 1) throw ShapeError(fmt::format("cross_entropy: wants at least one class, got logits {}", logits.shape.str()));
    if (!(parameters.label_smoothing >= 0 && parameters.label_smoothing < 1))
        throw ValueError(fmt::format("cross_entropy: wants a label_smoothing in [0, 1), got {}", parameters.label_smoothing));
}

struct Launch {
    Kernel kernel;
    Range range;
};

Launch prepare(const char* name, const View& logits, const View& labels) {
    const Device device = logits.device();
    std::size_t group = 1;
    if (device.family() == Family::gpu_like)
        while (group * 2 <= std::min(kGpuGroup, device.info().max_work_group)) group *= 2;
    Defines defines = real_defines(logits.dtype);
    defines.set("LABEL", cl_type(labels.dtype)).set("GROUP", static_cast<std::int64_t>(group));
    return {Kernel(device, {"cross_entropy.cl", name, defines}),
            {.global = {static_cast<std::size_t>(logits.shape[0]) * group, 1, 1}, .local = {group, 1, 1}}};
}

}  // namespace

void cross_entropy_forward(const View& logits, const View& labels, const View& losses, const View& counts, const View& lse,
                           const CrossEntropyParameters& parameters) {
    check(logits, labels, parameters);
    for (const View* out : {&losses, &counts, &lse}) {
        require_shape("cross_entropy_forward", "each output", *out, labels.shape);
        require_dense("cross_entropy_forward", "each output", *out);
        require_alike("cross_entropy_forward", "logits", logits, "each output", *out);
    }
    if (logits.numel() == 0) return;
    const auto [kernel, range] = prepare("cross_entropy_forward", logits, labels);
    const RealArguments reals(logits.dtype, {parameters.label_smoothing});
    launch(kernel, range, {logits.shape[0], logits.shape[1], logits.argument(), labels.argument(), losses.argument(), counts.argument(),
                           lse.argument(), reals[0], parameters.ignore_label});
}

void cross_entropy_backward(const View& logits, const View& labels, const View& lse, const View& row_gradient, const View& logits_gradient,
                            const CrossEntropyParameters& parameters) {
    check(logits, labels, parameters);
    require_shape("cross_entropy_backward", "lse", lse, labels.shape);
    require_shape("cross_entropy_backward", "the row gradient", row_gradient, labels.shape);
    require_alike("cross_entropy_backward", "logits", logits, "row gradient", row_gradient);
    require_shape("cross_entropy_backward", "the logits' gradient", logits_gradient, logits.shape);
    require_dense("cross_entropy_backward", "the logits' gradient", logits_gradient);
    require_alike("cross_entropy_backward", "logits", logits, "their gradient", logits_gradient);
    if (logits.numel() == 0) return;
    const auto [kernel, range] = prepare("cross_entropy_backward", logits, labels);
    const RealArguments reals(logits.dtype, {parameters.label_smoothing});
    launch(kernel, range, {logits.shape[0], logits.shape[1], logits.argument(), labels.argument(), lse.argument(), row_gradient.argument(),
                           row_gradient.strides[0], logits_gradient.argument(), reals[0], parameters.ignore_label});
}

}  // namespace declivity::ops
