#include <declivity/ops/classification.hpp>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"

namespace declivity::ops {
namespace {

struct Classification {
    double value = 0;
    bool is_sum = false, ignores = false;
    std::int64_t ignore_index = 0;
};

EpilogueFused launch_classification(const OperationViews& views, const Classification& call) {
    const View &scores = views.in(0), &labels = views.in(1), &totals = views.written(0),
               &label_errors = views.written(1);
    if (!totals.buffer || !label_errors.buffer) return EpilogueFused::no;  // no longer accessible to others
    const View& weight = views.in(3);
    const bool has_weight = static_cast<bool>(weight.buffer);
    const Device device = scores.device();
    const std::size_t items = device.kernel_style() == KernelStyle::simt ? 256 : 1;
    const auto [kernel, group] = kernel_of_group(device, items, [&](std::size_t size) {
        Defines defines = real_defines(scores.dtype);
        defines.set("LABEL", cl_type(labels.dtype)).set("GROUP", static_cast<std::int64_t>(size));
        return Kernel(device, {"classification.cl", "add_classification", defines});
    });
    launch(kernel, {.global = {group, 1, 1}, .local = {group, 1, 1}},
           {scores.shape[0], scores.shape[1], scores.argument(), labels.argument(), views.in(2).argument(),
            has_weight ? weight.argument() : totals.argument(), static_cast<std::int32_t>(has_weight),
            static_cast<float>(call.value), static_cast<std::int32_t>(call.is_sum), call.ignore_index,
            static_cast<std::int32_t>(call.ignores), totals.argument(), label_errors.argument()});
    return EpilogueFused::no;
}

}  // namespace

void add_classification(const View& scores, const View& labels, const View& loss, const ClassificationWeight& weight,
                        const View& totals, const View& label_errors) {
    require_rank("add_classification", "scores", scores, 2, "N, C");
    require_floating("add_classification", "scores", scores);
    require_dense("add_classification", "scores", scores);
    require_dense("add_classification", "labels", labels);
    require_shape("add_classification", "labels", labels, {scores.shape[0]});
    require_alike("add_classification", "scores", scores, "loss", loss);
    require_shape("add_classification", "totals", totals, {4});
    require_same_device("add_classification", scores, labels);
    require_same_device("add_classification", scores, totals);
    require_shape("add_classification", "label_errors", label_errors, {4});
    require_dense("add_classification", "label_errors", label_errors);
    require_same_device("add_classification", scores, label_errors);
    if (label_errors.dtype != DType::i64)
        throw TypeError(
            fmt::format("add_classification: expected label_errors of i64, got {}", name_of(label_errors.dtype)));
    if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
        throw TypeError(
            fmt::format("add_classification: expected labels of i32 or i64, got {}", name_of(labels.dtype)));
    if (loss.numel() != 1 || scores.shape[1] < 1)
        throw ShapeError(fmt::format("add_classification: expected one loss and at least one class, got {} and {}",
                                     loss.shape.str(), scores.shape.str()));
    const Classification call{weight.value, weight.is_sum, weight.ignore_index.has_value(),
                              weight.ignore_index.value_or(0)};
    if (weight.tensor.buffer) {
        if (weight.tensor.numel() != 1 || weight.tensor.dtype != DType::f32)
            throw TypeError(fmt::format("add_classification: expected a weight of one f32, got {} {}",
                                        name_of(weight.tensor.dtype), weight.tensor.shape.str()));
        require_same_device("add_classification", scores, weight.tensor);
    }
    operation("add_classification", launch_classification, call,
              {.reads = {scores, labels, loss, weight.tensor}, .writes = {totals, label_errors}, .outputs = {}});
}

}  // namespace declivity::ops
