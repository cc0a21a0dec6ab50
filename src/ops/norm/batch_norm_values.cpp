// Lazy batch normalisation: folding for inference, and pending operations that fuse their epilogue.
#include <declivity/ops/batch_norm.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <declivity/ops/operation.hpp>
#include <fmt/format.h>

#include "batch_norm_launch.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/expression_node.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/engine/pending_access.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "runtime/access.hpp"
#include "runtime/capture.hpp"
#include "runtime/derived_cache.hpp"

namespace declivity::ops {

namespace {

/// Views (C) as (C, 1, ...), which broadcasts over x.
View stretching(const View& channels, const Shape& x) {
    Shape shape{x[1]};
    for (int axis = 2; axis < x.rank(); ++axis) shape.push_back(1);
    return reshaped(channels, shape);
}

Expression apply(Function function, const Expression& a, const Expression& b) {
    return Expression::apply(function, std::array{a, b});
}

/// Mean, weight and bias; the cache is attached to the variance.
using FoldOperands = std::array<View, 3>;

std::array<std::uint64_t, 3> versions_of(const FoldOperands& operands) {
    return {operands[0].buffer.contents(), operands[1].buffer.contents(), operands[2].buffer.contents()};
}

/// A cached fold and the operands it was computed from. It is cached with memory, so it must not own any: two tensors
/// may each be the variance of the other's fold.
struct CachedFold {
    struct From {
        std::weak_ptr<detail::Block> memory;
        std::int64_t offset;
        Shape shape;
        DType dtype;
    };
    BatchNormFold fold;
    std::array<From, 3> from;
    std::array<std::uint64_t, 3> versions;

    CachedFold(BatchNormFold fold_result, const FoldOperands& operands, const std::array<std::uint64_t, 3>& at)
        : fold(std::move(fold_result)), versions(at) {
        std::ranges::transform(operands, from.begin(), [](const View& view) {
            return From{weak_of(view.buffer), view.offset, view.shape, view.dtype};
        });
    }
    [[nodiscard]] bool matches(const FoldOperands& operands) const {
        const auto same = [](const From& item, const View& view) {
            const auto memory = weak_of(view.buffer);
            return !item.memory.owner_before(memory) && !memory.owner_before(item.memory) &&
                   item.offset == view.offset && item.shape == view.shape && item.dtype == view.dtype;
        };
        return versions == versions_of(operands) && std::ranges::equal(from, operands, same);
    }
};

BatchNormFold make_fold(const View& stored_mean, const View& stored_variance, const View& stored_weight,
                        const View& stored_bias, double eps) {
    const View mean = upcast(stored_mean), variance = upcast(stored_variance), weight = upcast(stored_weight),
               bias = upcast(stored_bias);
    const Device device = variance.device();
    View factor = View::make(device, variance.dtype, variance.shape);
    batch_norm_scale(variance, eps, factor);
    if (weight.buffer) factor = evaluate(apply(Function::mul, factor, weight), device);
    const Expression moved = apply(Function::mul, mean, factor);
    const View offset = evaluate(
        bias.buffer ? apply(Function::sub, bias, moved) : Expression::apply(Function::neg, std::array{moved}), device);
    return {factor, offset};
}

}  // namespace

BatchNormFold batch_norm_fold(const View& mean, const View& variance, const View& weight, const View& bias, double eps,
                              OperandUse use) {
    const FoldOperands operands{mean, weight, bias};
    Capture* const capture = Capture::current();
    const auto varies = [&](const View& view) { return capture != nullptr && capture->varies(view.buffer); };
    if (use == OperandUse::variable || varies(variance) || std::ranges::any_of(operands, varies))
        return make_fold(mean, variance, weight, bias, eps);
    if (capture != nullptr) {
        capture->relies_on(variance.buffer);
        for (const View& operand : operands) capture->relies_on(operand.buffer);
    }
    const CapturePause once;
    const declivity::detail::DerivedKey key{
        .offset = static_cast<std::uint64_t>(variance.offset) * size_of(variance.dtype),
        .bytes = variance.bytes(),
        .kind = fmt::format("batch_norm_fold {} {}", name_of(variance.dtype), eps)};
    if (const auto cached =
            std::static_pointer_cast<const CachedFold>(declivity::detail::find_derived(variance.buffer, key));
        cached && cached->matches(operands))
        return cached->fold;
    const std::uint64_t contents = variance.buffer.contents();
    const auto versions = versions_of(operands);
    const BatchNormFold fold_result = make_fold(mean, variance, weight, bias, eps);
    declivity::detail::cache_derived(variance.buffer, key,
                                     std::make_shared<const CachedFold>(fold_result, operands, versions),
                                     fold_result.factor.bytes() + fold_result.offset.bytes(), contents);
    return fold_result;
}

LazyArray batch_norm(const LazyArray& x, const BatchNormFold& fold) {
    const DType dtype = x.dtype(), compute = fold.factor.dtype;
    const Expression in = dtype == compute ? Expression(x) : Expression::cast(x, compute);
    const Expression scaled = apply(Function::mul, in, stretching(fold.factor, x.shape()));
    const Expression out = apply(Function::add, scaled, stretching(fold.offset, x.shape()));
    return make_lazy(dtype == compute ? out : Expression::cast(out, dtype), x.device());
}

namespace {

/// Launches the normalisation, with its epilogue if one kernel computes both.
EpilogueFused launch_normalisation(const View& x, const View& mean, const View& scale, const View& weight,
                                   const View& bias, const View& out, const Epilogue& epilogue) {
    if (epilogue) {
        // Rounded as in the separate kernel.
        Expression factor = stretching(scale, x.shape);
        if (weight.buffer) factor = apply(Function::mul, factor, stretching(weight, x.shape));
        Expression result = apply(Function::mul, apply(Function::sub, x, stretching(mean, x.shape)), factor);
        if (bias.buffer) result = apply(Function::add, result, stretching(bias, x.shape));
        if (const Expression all = with_result(expression_of(epilogue), result); fits_one_kernel(all)) {
            evaluate(all, out);
            return EpilogueFused::yes;
        }
    }
    batch_norm(x, mean, scale, weight, bias, out);  // which has a form for short planes
    return EpilogueFused::no;
}

/// No attributes.
struct Normalisation {};

/// Attributes of normalisation in training.
struct BatchNormTraining {
    double eps, momentum;
    bool average;
};

EpilogueFused launch_training(const OperationViews& views, const BatchNormTraining& training) {
    const View &x = views.in(0), &weight = views.in(1), &bias = views.in(2);
    const View &out = views.out(0), &mean = views.out(1), &scale = views.out(2);
    const BatchNormRunning running{views.written(0), views.written(1), training.momentum, views.written(2),
                                   training.average};
    if (out.buffer && is_batch_norm_whole(x))
        return launch_batch_norm_whole(x, training.eps, running, mean, scale, weight, bias, out, views.epilogue());
    batch_norm_statistics(x, training.eps, running, mean, scale);
    return out.buffer ? launch_normalisation(x, mean, scale, weight, bias, out, views.epilogue()) : EpilogueFused::yes;
}

}  // namespace

LazyArray batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias) {
    check_batch_norm(x, mean, scale, weight, bias);
    return operation(
        "batch_norm",
        [](const OperationViews& views, const Normalisation&) {
            return launch_normalisation(views.in(0), views.in(1), views.in(2), views.in(3), views.in(4), views.out(0),
                                        views.epilogue());
        },
        Normalisation{},
        {.reads = {x, mean, scale, weight, bias}, .outputs = {{x.dtype, x.shape}}, .upcasts_to_f32 = true})[0];
}

BatchNormResults batch_norm_training(const View& x, const View& weight, const View& bias, double eps,
                                     const BatchNormRunning& running) {
    check_batch_norm(x, {}, {}, weight, bias);
    check_batch_norm_statistics(x, running, {}, {});
    const Shape channels{x.shape[1]};
    if (!is_16bit_float(x.dtype) &&
        (!fuses() || !is_batch_norm_whole(x))) {  // several kernels, of which the first may be launched already
        const View mean = View::make(x.device(), x.dtype, channels), scale = View::make(x.device(), x.dtype, channels);
        for (const View* view : {&running.mean, &running.variance, &running.batches}) {
            launch_writers(view->buffer);
            launch_readers(view->buffer);
        }
        const BufferWrite mean_write(running.mean.buffer), variance_write(running.variance.buffer),
            batches_write(running.batches.buffer);
        batch_norm_statistics(x, eps, running, mean, scale);
        return {batch_norm(x, mean, scale, weight, bias), mean, scale};
    }
    const DType compute = compute_type(x.dtype);
    const OperationResults results =
        operation("batch_norm", launch_training, BatchNormTraining{eps, running.momentum, running.average},
                  {.reads = {x, weight, bias},
                   .writes = {running.mean, running.variance, running.batches},
                   .outputs = {{x.dtype, x.shape, true}, {compute, channels}, {compute, channels}},
                   .upcasts_to_f32 = true});
    return {results[0], results[1], results[2]};
}

}  // namespace declivity::ops
