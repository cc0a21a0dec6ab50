// Losses of class labels other than cross_entropy.
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "picked.hpp"
#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

/// Loss of one row as a tensor without axes.
Tensor as_scalar(const Tensor& loss) { return reshape(loss, {}); }

}  // namespace

Tensor nll_loss(const Tensor& x, const Tensor& labels, const NllLossOptions& options, const Tensor& weight) {
    const FunctionCall call("nll_loss", {{"x", x}, {"labels", labels}, {"weight", weight}},
                            {{"reduction", options.reduction}, {"ignore_index", options.ignore_index}});
    call.require_defined({"x", "labels"});
    if (detail::is_narrow(labels)) return call.result(nll_loss(x, labels.to(DType::i64), options, weight));
    if (x.rank() == 1) {
        ops::require_shape("nll_loss", "labels of x (C)", labels.shape(), {});
        return call.result(as_scalar(nll_loss(unsqueeze(x, 0), reshape(labels, {1}), options, weight)));
    }
    const DType type = detail::loss_type("nll_loss", "x", x, {labels, weight}), compute = compute_type(type);
    detail::require_classes("nll_loss", "x", x, weight);
    detail::require_labels("nll_loss", labels);
    ops::require_shape("nll_loss", "labels", labels.shape(), detail::without_classes(x.shape()));
    const Tensor rows = detail::rows_of_classes(x).to(compute);
    const detail::LabelLosses row_losses(rows, reshape(labels, {rows.size(0)}),
                                         weight.defined() ? weight.to(compute) : weight, options.ignore_index);
    if (options.reduction == Reduction::none) return call.result(reshape(row_losses.losses, labels.shape()).to(type));
    const Tensor total = sum(row_losses.losses);
    if (options.reduction == Reduction::sum) return call.result(total.to(type));
    const Tensor divisor = sum(row_losses.weights);
    detail::note_divisor(divisor);
    return call.result((total / divisor).to(type));
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& labels, const MultiMarginLossOptions& options,
                         const Tensor& weight) {
    const FunctionCall call("multi_margin_loss", {{"x", x}, {"labels", labels}, {"weight", weight}},
                            {{"p", options.p}, {"margin", options.margin}, {"reduction", options.reduction}});
    call.require_defined({"x", "labels"});
    if (detail::is_narrow(labels)) return call.result(multi_margin_loss(x, labels.to(DType::i64), options, weight));
    if (x.rank() < 2) {
        if (labels.numel() != 1) ops::require_shape("multi_margin_loss", "labels of x (C)", labels.shape(), {});
        return call.result(
            as_scalar(multi_margin_loss(reshape(x, {1, x.numel()}), reshape(labels, {1}), options, weight)));
    }
    const DType type = detail::loss_type("multi_margin_loss", "x", x, {labels, weight}), compute = compute_type(type);
    ops::require_rank("multi_margin_loss", "x", x.shape(), 2, "N, C");
    detail::require_classes("multi_margin_loss", "x", x, weight);
    detail::require_labels("multi_margin_loss", labels);
    ops::require_shape("multi_margin_loss", "labels", labels.shape(), {x.size(0)});
    if (options.p != 1 && options.p != 2)
        throw ValueError(fmt::format("multi_margin_loss: expected p of 1 or 2, got {}", options.p));
    const Tensor in = x.to(compute);
    Tensor violation = relu(options.margin - detail::as_column(detail::gather_labels(in, labels)) + in);
    if (options.p == 2) violation = square(violation);
    Tensor losses = mean(where(detail::is_label(labels, x.size(1)), 0, violation), {1});
    if (weight.defined()) losses = losses * detail::gather_labels(weight.to(compute), labels);
    return call.result(detail::reduced(losses, options.reduction).to(type));
}

Tensor multilabel_margin_loss(const Tensor& x, const Tensor& labels, Reduction reduction) {
    const FunctionCall call("multilabel_margin_loss", {{"x", x}, {"labels", labels}}, {{"reduction", reduction}});
    call.require_defined({"x", "labels"});
    if (detail::is_narrow(labels)) return call.result(multilabel_margin_loss(x, labels.to(DType::i64), reduction));
    if (x.rank() < 2) {
        ops::require_shape("multilabel_margin_loss", "labels", labels.shape(), x.shape());
        return call.result(
            as_scalar(multilabel_margin_loss(reshape(x, {1, x.numel()}), reshape(labels, {1, x.numel()}), reduction)));
    }
    const DType type = detail::loss_type("multilabel_margin_loss", "x", x, {labels});
    ops::require_rank("multilabel_margin_loss", "x", x.shape(), 2, "N, C");
    detail::require_classes("multilabel_margin_loss", "x", x, {});
    detail::require_labels("multilabel_margin_loss", labels);
    ops::require_shape("multilabel_margin_loss", "labels", labels.shape(), x.shape());
    const std::int64_t classes = x.size(1);
    const Tensor index = labels.to(DType::i64), positions = arange(0, classes, 1, {DType::i64, x.device()});
    const Tensor valid = positions < min(where(index < 0, positions, classes), {1}, true),
                 safe = where(valid, index, 0);
    // (N, label, class)
    const Tensor label_mask = detail::as_column(valid),
                 is_target = logical_and(detail::is_label(safe, classes), label_mask),
                 others = logical_not(sum(is_target, {1}, true) > 0);
    const Tensor in = reshape(upcast(x), {x.size(0), 1, classes});
    const Tensor violation = relu(1 - detail::as_column(detail::gather_labels(in, safe)) + in);
    const Tensor losses =
        sum(where(logical_and(label_mask, others), violation, 0), {1, 2}) / static_cast<double>(classes);
    return call.result(detail::reduced(losses, reduction).to(type));
}

}  // namespace declivity
