#include <declivity/ops/cross_entropy.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>

#include "halves.hpp"

namespace declivity {

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
        [logits = Saved(logits), labels = Saved(labels), call, statistics, total](const GradientContext& context) {
            const ops::View in = logits.get("cross_entropy").dense_view(),
                            targets = labels.get("cross_entropy").dense_view();
            const ops::View gradient = ops::View::make(in.device(), in.dtype, in.shape);
            ops::cross_entropy_backward(in, targets, call, statistics, context.gradient().dense_view(), total,
                                        gradient);
            return std::vector{Tensor(gradient), Tensor()};
        });
}

}  // namespace declivity
