#include <declivity/ops/cross_entropy.hpp>

#include <limits>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "composition.hpp"
#include "tensor_state.hpp"

namespace declivity {
namespace {

using ops::LossReduction;

LossReduction reduction_of(Reduction reduction) {
    return reduction == Reduction::none  ? LossReduction::none
           : reduction == Reduction::sum ? LossReduction::sum
                                         : LossReduction::mean;
}

/// -log softmax, weighted by the target of each class: that of the label's own class, smoothed.
Tensor composed(const Tensor& logits, const Tensor& labels, const ops::CrossEntropy& call) {
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
        // A label that there is not makes NaN, of the gradient too.
        const Tensor there = where(less(wanted, number(0)), nan, where(less(wanted, number(classes)), target, nan));
        target = where(counts, there, zero);
    }
    // What is ignored has no part in it, whatever it is; nor has a class of probability 0 that is not wanted.
    const Tensor counted = where(counts, logits, zero);
    const Tensor losses = -sum(where(equal(target, zero), zero, log_softmax(counted, 1) * target), {1});
    if (call.reduction == LossReduction::none) return losses;
    const Tensor total = sum(losses);
    return call.reduction == LossReduction::sum ? total : total / sum(counts.to(dtype));
}

void check(const Tensor& logits, const Tensor& labels) {
    ops::require_rank("cross_entropy", "logits", logits.shape(), 2, "N, C");
    ops::require_real("cross_entropy", "logits", logits.dtype());
    if (labels.dtype() != DType::i32 && labels.dtype() != DType::i64)
        throw TypeError(fmt::format("cross_entropy: wants labels of i32 or i64, got {}", name_of(labels.dtype())));
    ops::require_shape("cross_entropy", "labels", labels.shape(), {logits.size(0)});
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
    const FunctionCall record("cross_entropy", {{"logits", logits}, {"labels", labels}},
                              {{"reduction", options.reduction},
                               {"label_smoothing", options.label_smoothing},
                               {"ignore_index", options.ignore_index}});
    record.require_defined({"logits", "labels"});
    check(logits, labels);
    const ops::CrossEntropy call{.label_smoothing = options.label_smoothing,
                                 .ignore_index = options.ignore_index,
                                 .reduction = reduction_of(options.reduction)};
    const auto composition = [call](const std::vector<Tensor>& in) {
        return std::vector{composed(in[0], in[1], call)};
    };
    if (detail::by_composition()) return record.result(detail::composed_in_f32(composition, {logits, labels})[0]);
    const auto made = ops::cross_entropy(logits.dense_view(), labels.dense_view(), call);
    if (!recorded({logits})) return record.result(Tensor(made.loss));
    return record.result(differentiable(
        "cross_entropy", {logits, labels}, {made.loss},
        [logits = Saved(logits), labels = Saved(labels), call, statistics = made.statistics,
         divisor = made.divisor](const GradientContext& context) {
            const ops::View g = context.take_gradient().dense_view();
            const ops::View in = logits.get("cross_entropy").dense_view(),
                            targets = labels.get("cross_entropy").dense_view();
            return std::vector{Tensor(ops::cross_entropy_backward(in, targets, call, statistics.view(),
                                                                  divisor ? divisor.view() : ops::View(), g)),
                               Tensor()};
        },
        composition)[0]);
}

}  // namespace declivity
