#include <declivity/ops/cross_entropy.hpp>

#include <limits>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>

#include "halves.hpp"

namespace declivity {
namespace {

/// The gradient as functions of tensors: for each row whose label is not ignored, softmax(row) - target, times the
/// gradient of its loss. A target is the label's own class, smoothed.
Tensor composed_gradient(const Tensor& logits, const Tensor& labels, const ops::CrossEntropy& call, const Tensor& g,
                         Reduction reduction) {
    const std::int64_t rows = logits.size(0);
    const auto classes = static_cast<double>(logits.size(1));
    const DType dtype = logits.dtype();
    const TensorOptions whole{DType::i64, logits.device()}, like{dtype, logits.device()};
    Tensor target, counts, share;
    {
        const NoGrad constants;
        const Tensor wanted = reshape(labels.to(whole.dtype), {rows, 1});
        const auto number = [&](double value) { return full({}, value, whole); };
        target = equal(wanted, arange(0, classes, 1, whole)).to(dtype) * (1 - call.label_smoothing) +
                 call.label_smoothing / classes;
        counts = not_equal(wanted, number(static_cast<double>(call.ignore_label)));
        share = counts.to(dtype);
        if (reduction == Reduction::mean) share = share / clamp(sum(share), 1, std::numeric_limits<float>::max());
        // A label that there is not makes NaN, as it does of the loss.
        const Tensor nan = full({}, std::numeric_limits<double>::quiet_NaN(), like);
        share = where(less(wanted, number(0)), nan, where(less(wanted, number(classes)), share, nan));
        share = where(counts, share, zeros({}, like));
    }
    const Tensor of_rows = reduction == Reduction::none ? reshape(g, {rows, 1}) : g;
    return where(counts, (softmax(logits, 1) - target) * (share * of_rows), zeros({}, like));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
    if (!logits.defined() || !labels.defined())
        throw ValueError("cross_entropy: wants logits and labels, got an undefined tensor");
    if (is_half(logits.dtype())) return cross_entropy(detail::widened(logits), labels, options).to(logits.dtype());
    const Span span("cross_entropy");
    const ops::CrossEntropy call{.label_smoothing = options.label_smoothing, .ignore_label = options.ignore_label};
    const ops::View x = logits.dense_view(), classes = labels.dense_view();
    ops::require_rank("cross_entropy", "logits", x, 2, "N, C");
    ops::require_floating("cross_entropy", "logits", x);
    const std::int64_t rows = x.shape[0];
    const ops::View losses = ops::View::make(x.device(), x.dtype, {rows}),
                    statistics = ops::View::make(x.device(), x.dtype, {rows, 2});
    ops::cross_entropy(x, classes, call, losses, statistics);
    ops::View result = losses, total;
    if (options.reduction != Reduction::none) {
        total = ops::View::make(x.device(), x.dtype, {2});
        ops::cross_entropy_total(losses, classes, call.ignore_label, options.reduction == Reduction::mean, total);
        result = {.buffer = total.buffer, .offset = total.offset, .dtype = total.dtype, .shape = {}, .strides = {}};
    }
    if (!recorded({logits})) return Tensor(result);
    return differentiable(
        "cross_entropy", {logits, labels}, result,
        [logits = Saved(logits), labels = Saved(labels), call, statistics, total,
         reduction = options.reduction](const GradientContext& context) {
            if (grad_enabled())
                return std::vector{composed_gradient(logits.get("cross_entropy"), labels.get("cross_entropy"), call,
                                                     context.gradient(), reduction),
                                   Tensor()};
            const ops::View in = logits.get("cross_entropy").dense_view(),
                            targets = labels.get("cross_entropy").dense_view();
            const ops::View gradient = ops::View::make(in.device(), in.dtype, in.shape);
            ops::cross_entropy_backward(in, targets, call, statistics, context.gradient().dense_view(), total,
                                        gradient);
            return std::vector{Tensor(gradient), Tensor()};
        },
        RuleKind::composed);
}

}  // namespace declivity
