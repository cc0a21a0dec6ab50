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
    const TensorOptions index_options{DType::i64, logits.device()}, like{dtype, logits.device()};
    const Tensor zero = zeros({}, like), nan = full({}, std::numeric_limits<double>::quiet_NaN(), like);
    Tensor target, valid;
    {
        const NoGrad no_grad;
        const Tensor label_column = reshape(labels.to(index_options.dtype), {rows, 1});
        const auto index_scalar = [&](double value) { return full({}, value, index_options); };
        target = equal(label_column, arange(0, classes, 1, index_options)).to(dtype) * (1 - call.label_smoothing) +
                 call.label_smoothing / classes;
        valid = not_equal(label_column, index_scalar(static_cast<double>(call.ignore_index)));
        // An out-of-range label gives NaN, as does its gradient.
        const Tensor checked_target = where(less(label_column, index_scalar(0)), nan,
                                            where(less(label_column, index_scalar(classes)), target, nan));
        target = where(valid, checked_target, zero);
    }
    // Ignored rows are masked, whatever their values; so are classes of target 0 with probability 0.
    const Tensor valid_logits = where(valid, logits, zero);
    const Tensor losses = -sum(where(equal(target, zero), zero, log_softmax(valid_logits, 1) * target), {1});
    if (call.reduction == LossReduction::none) return losses;
    const Tensor total = sum(losses);
    if (call.reduction == LossReduction::sum) return total;
    const Tensor divisor = sum(valid.to(dtype));
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

/// Loss of rows and their labels, computed by the fused kernels.
Tensor fused_cross_entropy(const Tensor& logits, const Tensor& labels, const ops::CrossEntropy& call) {
    const auto decomposition = [call](const std::vector<Tensor>& in) {
        return std::vector{decomposed(in[0], in[1], call)};
    };
    if (detail::by_decomposition()) return detail::decomposed_in_f32(decomposition, {logits, labels})[0];
    const auto forward = ops::cross_entropy(logits.dense_view(), labels.dense_view(), call);
    if (call.reduction == LossReduction::mean) detail::note_divisor(Tensor(forward.divisor));
    if (!any_requires_grad({logits})) return Tensor(forward.loss);
    return attach_backward(
        "cross_entropy", {logits, labels}, {forward.loss},
        [logits = Saved(logits), labels = Saved(labels), call, statistics = forward.statistics,
         divisor = forward.divisor](const GradientContext& context) {
            const ops::View g = context.release_gradient().dense_view();
            const ops::View in = logits.get("cross_entropy").dense_view(),
                            targets = labels.get("cross_entropy").dense_view();
            return std::vector{Tensor(ops::cross_entropy_backward(in, targets, call, statistics.view(),
                                                                  divisor ? divisor.view() : ops::View(), g)),
                               Tensor()};
        },
        decomposition)[0];
}

/// Loss of rows and their labels, with a weight for each class.
Tensor weighted(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, const Tensor& weight) {
    const double spread = options.label_smoothing / static_cast<double>(logits.size(1));
    // Ignored rows are masked, whatever their values.
    const Tensor valid = detail::as_column(labels != options.ignore_index);
    const Tensor log_probabilities = log_softmax(where(valid, logits, 0), 1);
    const detail::LabelLosses label_losses(log_probabilities, labels, weight, options.ignore_index);
    Tensor losses = label_losses.losses;
    if (spread > 0)
        losses =
            losses * (1 - options.label_smoothing) - spread * sum(where(valid, log_probabilities * weight, 0), {1});
    if (options.reduction != Reduction::mean) return detail::reduced(losses, options.reduction);
    const Tensor divisor = sum(label_losses.weights);
    detail::note_divisor(divisor);
    return sum(losses) / divisor;
}

/// Loss of rows and the probabilities of their classes.
Tensor with_probabilities(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options,
                          const Tensor& weight) {
    const double spread = options.label_smoothing / static_cast<double>(logits.size(1));
    Tensor weighted_target = options.label_smoothing > 0 ? target * (1 - options.label_smoothing) + spread : target;
    if (weight.defined()) weighted_target = weighted_target * weight;
    return detail::reduced(-sum(log_softmax(logits, 1) * weighted_target, {1}), options.reduction);
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
                compute = compute_type(type);
    Tensor losses;
    if (probabilities)
        losses = with_probabilities(rows.to(compute), detail::rows_of_classes(target).to(compute), options,
                                    weight.defined() ? weight.to(compute) : weight)
                     .to(type);
    else {
        const Tensor labels = target.rank() == 1 ? target : reshape(target, {rows.size(0)});
        losses = weight.defined() ? weighted(rows.to(compute), labels, options, weight.to(compute)).to(type)
                                  : fused_cross_entropy(rows, labels,
                                                        {.label_smoothing = options.label_smoothing,
                                                         .ignore_index = options.ignore_index,
                                                         .reduction = reduction_of(options.reduction)});
    }
    if (options.reduction == Reduction::none && logits.rank() > 2)
        losses = reshape(losses, detail::without_classes(logits.shape()));
    return call.result(losses);
}

}  // namespace declivity
