#include <declivity/ops/ctc_loss.hpp>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

constexpr const char* kCtcLoss = "ctc_loss";
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Finite substitute for log(0): the difference of infinities has no gradient.
constexpr double kLogZero = -1e30;

/// log_probs (T, N, C), targets (N, S) and lengths (N), i64.
struct Sequences {
    Tensor log_probs, targets, input_lengths, target_lengths;
};

Tensor as_column(const Tensor& x) { return unsqueeze(x, 1); }

/// x (N, M) with its columns shifted by `shift`, filled with probability 0.
Tensor shift_columns(const Tensor& x, std::int64_t shift) {
    const std::int64_t m = x.size(1), remaining = std::max<std::int64_t>(0, m - shift);
    return pad(slice(x, 1, 0, remaining), {0, m - remaining}, {0, 0}, kLogZero);
}

/// Losses (N), infinite if there is no alignment: the forward variables (alphas), step by step.
Tensor decomposed(const Sequences& sequences, std::int64_t blank) {
    const std::int64_t steps = sequences.log_probs.size(0), n = sequences.log_probs.size(1),
                       labels = sequences.targets.size(1), states = 2 * labels + 1;
    const TensorOptions index_options{DType::i64, sequences.log_probs.device()};
    const Tensor fits = logical_and(logical_and(sequences.input_lengths >= 0, sequences.input_lengths <= steps),
                                    logical_and(sequences.target_lengths >= 0, sequences.target_lengths <= labels));
    const Tensor length = where(fits, sequences.target_lengths, 0);
    Tensor path, skips;
    {
        // Labels interleaved with blanks; a blank may be skipped between different labels.
        const NoGrad no_grad;
        const Tensor state = arange(0, states, 1, index_options), pair = floor_divide(state, 2);
        const Tensor odd = state - 2 * pair == 1;
        const Tensor padded = pad(sequences.targets, {0, 0}, {0, 1}, blank);
        path = where(odd, index_select(padded, 1, pair), blank);
        const Tensor two_before = pad(slice(path, 1, 0, std::max<std::int64_t>(0, states - 2)),
                                      {0, std::min<std::int64_t>(2, states)}, {0, 0}, 0);
        skips = logical_and(logical_and(odd, state > 1), path != two_before);
        // Padding behind the target is ignored, whatever it contains.
        path = where(state > 2 * as_column(length), blank, path);
    }
    const Tensor emissions =
        clamp(gather(sequences.log_probs, 2, expand(unsqueeze(path, 0), {steps, n, states})), kLogZero, kInfinity);
    const Tensor state = arange(0, states, 1, index_options);
    Tensor alpha = expand(where(state < 2, full({}, 0, {sequences.log_probs.dtype(), index_options.device}), kLogZero),
                          {n, states});
    for (std::int64_t t = 0; t < steps; ++t) {
        const Tensor incoming = t == 0 ? alpha
                                       : logaddexp(logaddexp(alpha, shift_columns(alpha, 1)),
                                                   where(skips, shift_columns(alpha, 2), kLogZero));
        alpha = where(as_column(sequences.input_lengths > t), incoming + select(emissions, 0, t), alpha);
    }
    // Rows without any step keep the initial state.
    const auto last = [&](const Tensor& position) { return reshape(gather(alpha, 1, as_column(position)), {n}); };
    const Tensor last_blank = last(2 * length), last_label = last(where(length > 0, 2 * length - 1, 0));
    const Tensor loss =
        -where(logical_and(length > 0, sequences.input_lengths > 0), logaddexp(last_blank, last_label), last_blank);
    const Tensor no_input = sequences.input_lengths == 0, impossible = logical_or(loss > -0.1 * kLogZero, no_input);
    // Adding a constant keeps the gradient.
    const Tensor value = loss + where(impossible, kInfinity, full({}, 0, {loss.dtype(), index_options.device}));
    return where(fits, where(logical_and(no_input, length == 0), 0, value), kInfinity);
}

/// Infinite losses unchanged, with gradient NaN; or 0 with gradient 0.
Tensor guarded(const Tensor& losses, bool zero_infinity) {
    if (zero_infinity) return where(losses == kInfinity, 0, losses);
    if (!any_requires_grad({losses})) return losses;
    return attach_backward(
        kCtcLoss, {losses}, losses.value(),
        [infinite = losses.detach() == kInfinity](const GradientContext& context) {
            return std::vector{where(infinite, std::numeric_limits<double>::quiet_NaN(), context.gradient())};
        },
        RuleKind::differentiable);
}

Tensor losses_of(const Sequences& sequences, std::int64_t blank) {
    const auto decomposition = [blank](const std::vector<Tensor>& in) {
        return std::vector{decomposed({in[0], in[1], in[2], in[3]}, blank)};
    };
    const std::vector<Tensor> inputs{sequences.log_probs, sequences.targets, sequences.input_lengths,
                                     sequences.target_lengths};
    if (detail::by_decomposition()) return decomposition(inputs)[0];
    const auto forward =
        ops::ctc_loss({sequences.log_probs.dense_view(), sequences.targets.dense_view(),
                       sequences.input_lengths.dense_view(), sequences.target_lengths.dense_view(), blank});
    if (!any_requires_grad(inputs)) return Tensor(forward.losses);
    return attach_backward(
        kCtcLoss, inputs, {forward.losses},
        [x = Saved(sequences.log_probs), targets = Saved(sequences.targets), inputs = Saved(sequences.input_lengths),
         lengths = Saved(sequences.target_lengths), blank, alphas = forward.alphas,
         losses = forward.losses](const GradientContext& context) {
            const ops::View g = context.release_gradient().dense_view();
            const ops::CtcOperands operands{x.get(kCtcLoss).dense_view(), targets.get(kCtcLoss).dense_view(),
                                            inputs.get(kCtcLoss).dense_view(), lengths.get(kCtcLoss).dense_view(),
                                            blank};
            return std::vector{Tensor(ops::ctc_loss_backward(operands, alphas.view(), losses.view(), g)), Tensor(),
                               Tensor(), Tensor()};
        },
        decomposition)[0];
}

void require_index_type(const char* name, const Tensor& x, const Tensor& like) {
    if (x.dtype() != DType::i32 && x.dtype() != DType::i64)
        throw TypeError(fmt::format("{}: expected {} of i32 or i64, got {}", kCtcLoss, name, name_of(x.dtype())));
    ops::require_same_device(kCtcLoss, like.device(), x.device());
}

/// Concatenated targets as rows (N, S).
Tensor as_rows(const Tensor& targets, const Tensor& lengths, std::int64_t longest) {
    const TensorOptions index_options{DType::i64, targets.device()};
    const std::int64_t n = lengths.numel();
    if (targets.numel() == 0 || n == 0) return zeros({n, longest}, index_options);
    const Tensor position = as_column(cumsum(lengths, 0) - lengths) + arange(0, longest, 1, index_options);
    const Tensor inside =
        logical_and(arange(0, longest, 1, index_options) < as_column(lengths), position < targets.numel());
    return where(inside, take(targets, where(inside, position, 0)), -1);
}

Tensor loss_of(const FunctionCall& call, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
               const Tensor& target_lengths, const CtcLossOptions& options, std::int64_t longest) {
    const Tensor& x = log_probs;
    const bool unbatched = x.rank() == 2;
    const std::int64_t steps = x.size(0), n = unbatched ? 1 : x.size(1);
    const Tensor lengths = reshape(target_lengths, {n}).to(DType::i64),
                 inputs = reshape(input_lengths, {n}).to(DType::i64);
    const Tensor targets_i64 = targets.to(DType::i64);
    const bool padded = targets.rank() == 2 || unbatched;
    // Targets longer than their input have no alignment: rows of more than `steps` are not needed.
    const std::int64_t total = targets.rank() == 2 ? targets.size(1) : targets.numel(),
                       width = std::min(longest >= 0 ? longest : total, padded ? total : std::min(total, steps));
    const Tensor rows =
        padded ? slice(reshape(targets_i64, {n, total}), 1, 0, width) : as_rows(targets_i64, lengths, width);
    const Sequences sequences{detail::upcast(unbatched ? unsqueeze(x, 1) : x), rows, inputs, lengths};
    Tensor losses = losses_of(sequences, options.blank);
    if (longest < 0) {
        const Tensor valid =
            logical_and(logical_and(inputs >= 0, inputs <= steps), logical_and(lengths >= 0, lengths <= total));
        losses = where(valid, losses, std::numeric_limits<double>::quiet_NaN());
    }
    losses = guarded(losses, options.zero_infinity);
    if (options.reduction == Reduction::mean) losses = losses / maximum(lengths, 1).to(losses.dtype());
    if (options.reduction != Reduction::none) losses = detail::reduced(losses, options.reduction);
    else if (unbatched) losses = reshape(losses, {});
    return call.result(losses.to(x.dtype()));
}

void check(const Tensor& x, const Tensor& targets, const CtcLossOptions& options) {
    ops::require_real(kCtcLoss, "log_probs", x.dtype());
    if (x.rank() != 2 && x.rank() != 3)
        throw ShapeError(
            fmt::format("{}: expected log_probs of shape (T, N, C) or (T, C), got {}", kCtcLoss, x.shape().str()));
    require_index_type("targets", targets, x);
    const bool unbatched = x.rank() == 2;
    const bool fits = targets.rank() == 1 || (targets.rank() == 2 && targets.size(0) == (unbatched ? 1 : x.size(1)));
    if (!fits)
        throw ShapeError(fmt::format("{}: expected targets of shape {} for log_probs {}, got {}", kCtcLoss,
                                     unbatched ? "(S)" : "(N, S), or concatenated,", x.shape().str(),
                                     targets.shape().str()));
    if (options.blank < 0 || options.blank >= x.size(-1))
        throw ValueError(
            fmt::format("{}: expected a blank index within {} classes, got {}", kCtcLoss, x.size(-1), options.blank));
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options) {
    const FunctionCall call(
        kCtcLoss,
        {{"log_probs", log_probs},
         {"targets", targets},
         {"input_lengths", input_lengths},
         {"target_lengths", target_lengths}},
        {{"blank", options.blank}, {"reduction", options.reduction}, {"zero_infinity", options.zero_infinity}});
    call.require_defined({"log_probs", "targets", "input_lengths", "target_lengths"});
    check(log_probs, targets, options);
    const std::int64_t n = log_probs.rank() == 2 ? 1 : log_probs.size(1);
    for (const auto& [name, lengths] :
         {std::pair<const char*, const Tensor&>{"input_lengths", input_lengths}, {"target_lengths", target_lengths}}) {
        require_index_type(name, lengths, log_probs);
        if (log_probs.rank() == 3 || lengths.rank() != 0) ops::require_shape(kCtcLoss, name, lengths.shape(), {n});
    }
    return loss_of(call, log_probs, targets, input_lengths, target_lengths, options, -1);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<std::int64_t>& input_lengths,
                const std::vector<std::int64_t>& target_lengths, const CtcLossOptions& options) {
    const FunctionCall call(kCtcLoss, {{"log_probs", log_probs}, {"targets", targets}},
                            {{"input_lengths", input_lengths},
                             {"target_lengths", target_lengths},
                             {"blank", options.blank},
                             {"reduction", options.reduction},
                             {"zero_infinity", options.zero_infinity}});
    call.require_defined({"log_probs", "targets"});
    check(log_probs, targets, options);
    const std::int64_t steps = log_probs.size(0), n = log_probs.rank() == 2 ? 1 : log_probs.size(1);
    const bool concatenated = targets.rank() == 1 && log_probs.rank() == 3;
    const std::int64_t target_count = targets.size(-1);
    std::int64_t longest = 0, total = 0;
    for (const auto& [name, lengths, limit] : {std::tuple<const char*, const std::vector<std::int64_t>&, std::int64_t>{
                                                   "input_lengths", input_lengths, steps},
                                               {"target_lengths", target_lengths, target_count}}) {
        if (static_cast<std::int64_t>(lengths.size()) != n)
            throw ShapeError(fmt::format("{}: expected {} {}, got {}", kCtcLoss, n, name, lengths.size()));
        for (const std::int64_t length : lengths)
            if (length < 0 || length > limit)
                throw ValueError(fmt::format("{}: expected {} of 0 to {}, got {}", kCtcLoss, name, limit, length));
    }
    for (const std::int64_t length : target_lengths) longest = std::max(longest, length), total += length;
    if (concatenated && total != target_count)
        throw ShapeError(fmt::format("{}: expected targets of {} labels, the sum of target_lengths, got {}", kCtcLoss,
                                     total, target_count));
    const auto tensor = [&](const std::vector<std::int64_t>& lengths) {
        return Tensor::from<std::int64_t>(lengths, {n}, log_probs.device());
    };
    return loss_of(call, log_probs, targets, tensor(input_lengths), tensor(target_lengths), options, longest);
}

}  // namespace declivity
