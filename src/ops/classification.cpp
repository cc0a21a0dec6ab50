#include <declivity/ops/classification.hpp>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"

namespace declivity::ops {
namespace {

/// Without attributes.
struct Classification {};

EpilogueTaken launch_classification(const OperationViews& views, const Classification&) {
    const View &scores = views.in(0), &labels = views.in(1), &totals = views.written(0), &noted = views.written(1);
    if (!totals.buffer || !noted.buffer) return EpilogueTaken::no;  // nobody can ask any more
    const Device device = scores.device();
    const std::size_t items = device.family() == Family::gpu_like ? 256 : 1;
    const auto [kernel, group] = kernel_of_group(device, items, [&](std::size_t size) {
        Defines defines = real_defines(scores.dtype);
        defines.set("LABEL", cl_type(labels.dtype)).set("GROUP", static_cast<std::int64_t>(size));
        return Kernel(device, {"classification.cl", "add_classification", defines});
    });
    launch(kernel, {.global = {group, 1, 1}, .local = {group, 1, 1}},
           {scores.shape[0], scores.shape[1], scores.argument(), labels.argument(), views.in(2).argument(),
            totals.argument(), noted.argument()});
    return EpilogueTaken::no;
}

}  // namespace

void add_classification(const View& scores, const View& labels, const View& loss, const View& totals,
                        const View& noted) {
    require_rank("add_classification", "scores", scores, 2, "N, C");
    require_floating("add_classification", "scores", scores);
    require_dense("add_classification", "scores", scores);
    require_dense("add_classification", "labels", labels);
    require_shape("add_classification", "labels", labels, {scores.shape[0]});
    require_alike("add_classification", "scores", scores, "loss", loss);
    require_shape("add_classification", "totals", totals, {2});
    require_same_device("add_classification", scores, labels);
    require_same_device("add_classification", scores, totals);
    require_shape("add_classification", "noted", noted, {4});
    require_dense("add_classification", "noted", noted);
    require_same_device("add_classification", scores, noted);
    if (noted.dtype != DType::i64)
        throw TypeError(fmt::format("add_classification: wants noted of i64, got {}", name_of(noted.dtype)));
    if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
        throw TypeError(fmt::format("add_classification: wants labels of i32 or i64, got {}", name_of(labels.dtype)));
    if (loss.numel() != 1 || scores.shape[1] < 1)
        throw ShapeError(fmt::format("add_classification: wants one loss and at least one class, got {} and {}",
                                     loss.shape.str(), scores.shape.str()));
    operation("add_classification", launch_classification, Classification{},
              {.reads = {scores, labels, loss}, .writes = {totals, noted}, .outputs = {}});
}

}  // namespace declivity::ops
