#include <declivity/ops/cross_entropy.hpp>

#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "loss_divisor.hpp"
#include "picked.hpp"
#include "reduction.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

using ops::LossReduction;

LossReduction reduction_of(Reduction reduction) {
    return reduction == Reduction::none  ? LossReduction::none
           : reduction == Reduction::sum ? LossReduction::sum
                                         : LossReduction::mean;
}

/// -log softmax weighted by the target of each class: the smoothed one-hot label.
Tensor decomposed(const Tensor& logits, const Tensor& labels, const ops::CrossEntropy& call) {
    const std::int64_t rows = logits.size(0);
    const auto classes = static_cast<double>(logits.size(1));
    const DType dtype = logits.dtype();
    const TensorOptions whole{DType::i64, logits.device()}, like{dtype, logits.device()};
    const Tensor zero = zeros({}, like), nan = full({}, std::numeric_limits<double>::quiet_NaN(), like);
    Tensor target, counts;
    {
        const NoGrad constants;
        const Tensor wanted = reshape(labels.to(whole.dtype), {rows, 1});
        const auto number = [&](double value) { return full({}, value, whole); };
        target = equal(wanted, arange(0, classes, 1, whole)).to(dtype) * (1 - call.label_smoothing) +
                 call.label_smoothing / classes;
        counts = not_equal(wanted, number(static_cast<double>(call.ignore_index)));
        // An out-of-range label gives NaN, as does its gradient.
        const Tensor there = where(less(wanted, number(0)), nan, where(less(wanted, number(classes)), target, nan));
        target = where(counts, there, zero);
    }
    // Ignored rows are masked, whatever their values; so are classes of target 0 with probability 0.
    const Tensor counted = where(counts, logits, zero);
    const Tensor losses = -sum(where(equal(target, zero), zero, log_softmax(counted, 1) * target), {1});
    if (call.reduction == LossReduction::none) return losses;
    const Tensor total = sum(losses);
    if (call.reduction == LossReduction::sum) return total;
    const Tensor divisor = sum(counts.to(dtype));
    detail::note_divisor(divisor);
    return total / divisor;
}

void check(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options, const Tensor& weight) {
    constexpr auto* name = "cross_entropy";
    detail::require_classes(name, "logits", logits, weight);
    detail::loss_type(name, "logits", logits, {target, weight});
    if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
        throw ValueError(fmt::format("{}: expected label_smoothing in [0, 1), got {}", name, options.label_smoothing));
    if (target.shape() == logits.shape()) return ops::require_real(name, "probabilities", target.dtype());
    if (is_floating(target.dtype()) && target.rank() == logits.rank())
        ops::require_shape(name, "probabilities", target.shape(), logits.shape());
    detail::require_labels(name, target);
    ops::require_shape(name, "labels", target.shape(), detail::without_classes(logits.shape()));
}

/// Rows and their labels, by kernels.
Tensor by_kernels(const Tensor& logits, const Tensor& labels, const ops::CrossEntropy& call) {
    const auto decomposition = [call](const std::vector<Tensor>& in) {
        return std::vector{decomposed(in[0], in[1], call)};
    };
    if (detail::by_decomposition()) return detail::decomposed_in_f32(decomposition, {logits, labels})[0];
    const auto made = ops::cross_entropy(logits.dense_view(), labels.dense_view(), call);
    if (call.reduction == LossReduction::mean) detail::note_divisor(Tensor(made.divisor));
    if (!any_requires_grad({logits})) return Tensor(made.loss);
    return attach_backward(
        "cross_entropy", {logits, labels}, {made.loss},
        [logits = Saved(logits), labels = Saved(labels), call, statistics = made.statistics,
         divisor = made.divisor](const GradientContext& context) {
            const ops::View g = context.release_gradient().dense_view();
            const ops::View in = logits.get("cross_entropy").dense_view(),
                            targets = labels.get("cross_entropy").dense_view();
            return std::vector{Tensor(ops::cross_entropy_backward(in, targets, call, statistics.view(),
                                                                  divisor ? divisor.view() : ops::View(), g)),
                               Tensor()};
        },
        decomposition)[0];
}

/// Rows and their labels, with a weight for each class.
Tensor weighted(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, const Tensor& weight) {
    const double spread = options.label_smoothing / static_cast<double>(logits.size(1));
    // Ignored rows are masked, whatever their values.
    const Tensor counts = detail::as_column(labels != options.ignore_index);
    const Tensor logarithms = log_softmax(where(counts, logits, 0), 1);
    const detail::LabelLosses by_label(logarithms, labels, weight, options.ignore_index);
    Tensor losses = by_label.losses;
    if (spread > 0)
        losses = losses * (1 - options.label_smoothing) - spread * sum(where(counts, logarithms * weight, 0), {1});
    if (options.reduction != Reduction::mean) return detail::reduced(losses, options.reduction);
    const Tensor divisor = sum(by_label.weights);
    detail::note_divisor(divisor);
    return sum(losses) / divisor;
}

/// Rows and the probabilities of their classes.
Tensor of_probabilities(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options,
                        const Tensor& weight) {
    const double spread = options.label_smoothing / static_cast<double>(logits.size(1));
    Tensor part = options.label_smoothing > 0 ? target * (1 - options.label_smoothing) + spread : target;
    if (weight.defined()) part = part * weight;
    return detail::reduced(-sum(log_softmax(logits, 1) * part, {1}), options.reduction);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options,
                     const Tensor& weight) {
    const FunctionCall call("cross_entropy", {{"logits", logits}, {"target", target}, {"weight", weight}},
                            {{"reduction", options.reduction},
                             {"label_smoothing", options.label_smoothing},
                             {"ignore_index", options.ignore_index}});
    call.require_defined({"logits", "target"});
    if (detail::is_narrow(target)) return call.result(cross_entropy(logits, target.to(DType::i64), options, weight));
    if (logits.rank() == 1) {
        const bool labels = target.shape() != logits.shape();
        if (labels) ops::require_shape("cross_entropy", "the label of logits (C)", target.shape(), {});
        const Tensor row = labels ? reshape(target, {1}) : unsqueeze(target, 0);
        return call.result(reshape(cross_entropy(unsqueeze(logits, 0), row, options, weight), {}));
    }
    check(logits, target, options, weight);
    const bool probabilities = target.shape() == logits.shape();
    const Tensor rows = detail::rows_of_classes(logits);
    const DType type = detail::loss_type("cross_entropy", "logits", logits, {target, weight}),
                wide = compute_type(type);
    Tensor losses;
    if (probabilities)
        losses = of_probabilities(rows.to(wide), detail::rows_of_classes(target).to(wide), options,
                                  weight.defined() ? weight.to(wide) : weight)
                     .to(type);
    else {
        const Tensor labels = target.rank() == 1 ? target : reshape(target, {rows.size(0)});
        losses = weight.defined() ? weighted(rows.to(wide), labels, options, weight.to(wide)).to(type)
                                  : by_kernels(rows, labels,
                                               {.label_smoothing = options.label_smoothing,
                                                .ignore_index = options.ignore_index,
                                                .reduction = reduction_of(options.reduction)});
    }
    if (options.reduction == Reduction::none && logits.rank() > 2)
        losses = reshape(losses, detail::without_classes(logits.shape()));
    return call.result(losses);
}

}  // namespace declivity
