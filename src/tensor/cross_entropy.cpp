#include <declivity/ops/cross_entropy.hpp>

#include <declivity/ops/reduce.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity {

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
    if (!logits.defined() || !labels.defined()) throw ValueError("cross_entropy: wants logits and labels, got an undefined tensor");
    const ops::CrossEntropyParameters parameters{options.label_smoothing, options.ignore_label};
    const ops::View x = logits.dense_view(), y = labels.dense_view();
    const auto row_values = [&] { return ops::View::make(x.device(), x.dtype, y.shape); };
    const ops::View losses = row_values(), counts = row_values(), lse = row_values();
    ops::cross_entropy_forward(x, y, losses, counts, lse, parameters);

    // The mean is over the rows that count, whose number only the device knows.
    const Reduction reduction = options.reduction;
    ops::View result = losses;
    ops::View count;
    if (reduction != Reduction::none) {
        result = ops::reduce(ops::Reduce::sum, losses, {0}, false);
        if (reduction == Reduction::mean) {
            count = ops::reduce(ops::Reduce::sum, counts, {0}, false);
            const ops::Expression quotient[] = {result, count};
            ops::evaluate(ops::Expression::apply(Function::div, quotient), result);
        }
    }
    if (!recorded({logits})) return Tensor(result);
    return differentiable("cross_entropy", {logits, labels}, result,
                          [x = Saved(Tensor(x)), source = Saved(logits), y = Saved(labels), lse, count, parameters, reduction](const GradientContext& context) {
        (void)source.get("cross_entropy");  // refuses logits that were overwritten
        const ops::View in = x.get("cross_entropy").view(), target = y.get("cross_entropy").dense_view();
        ops::View g = context.gradient().view();
        if (reduction == Reduction::mean) {
            const ops::Expression quotient[] = {g, count};
            g = ops::evaluate(ops::Expression::apply(Function::div, quotient), in.device());
        }
        if (reduction != Reduction::none) g = ops::expanded("cross_entropy", g, target.shape);
        const ops::View gradient = ops::View::make(in.device(), in.dtype, in.shape);
        ops::cross_entropy_backward(in, target, lse, g, gradient, parameters);
        return std::vector{Tensor(gradient), Tensor()};
    });
}

}  // namespace declivity
