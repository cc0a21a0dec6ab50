#include <declivity/ops/cross_entropy.hpp>

#include <utility>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"

namespace declivity::ops {
namespace {

Kernel kernel_for(const char* name, DType real, DType label, const Device& device) {
    Defines defines = real_defines(real);
    defines.set("T", cl_type(real)).set("LABEL", cl_type(label)).set("LANES", vector_lanes(real));
    defines.set(form_macro(is_simd(device)), 1);
    return {device, {"cross_entropy.cl", name, defines}};
}

void check_labels(const char* function, const View& labels, std::int64_t rows) {
    if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
        throw TypeError(fmt::format("{}: expected labels of i32 or i64, got {}", function, name_of(labels.dtype)));
    require_shape(function, "labels", labels, {rows});
    require_dense(function, "labels", labels);
}

void check_logits(const char* function, const View& logits, const CrossEntropy& options) {
    require_real(function, "logits", logits.dtype);
    require_rank(function, "logits", logits, 2, "N, C");
    if (logits.shape[1] == 0 && logits.shape[0] > 0)
        throw ShapeError(
            fmt::format("{}: expected at least one class, got logits of shape {}", function, logits.shape.str()));
    require_dense(function, "logits", logits);
    if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
        throw ValueError(
            fmt::format("{}: expected label_smoothing in [0, 1), got {}", function, options.label_smoothing));
}

void check_result(const char* function, std::string_view name, const View& logits, const View& view, const Shape& shape,
                  DType dtype) {
    require_alike(function, "logits", dtype, logits.device(), name, view.dtype, view.device());
    require_shape(function, name, view, shape);
    require_dense(function, name, view);
}

/// The kernel's number arguments that precede the partition of the rows.
std::vector<Argument> sizes_of(const View& logits, const CrossEntropy& options) {
    return {logits.shape[0], logits.shape[1], options.ignore_index,
            real_argument(logits.dtype, options.label_smoothing)};
}

void bring_together(const View& losses, const View& labels, const CrossEntropy& options, const View& total,
                    const View& divisor) {
    const Kernel kernel = kernel_for("cross_entropy_total", losses.dtype, labels.dtype, losses.device());
    const bool simd = is_simd(losses.device());
    const std::size_t items = simd ? 1 : row_group(1, 4 * losses.shape[0], false, kernel).items();
    launch(kernel, {.global = {items, 1, 1}, .local = {items, 1, 1}},
           {losses.shape[0], options.ignore_index, std::int32_t{options.reduction == LossReduction::mean},
            LocalMemory{items * size_of(losses.dtype)}, losses.argument(), labels.argument(), total.argument(),
            divisor.argument()});
}

EpilogueFused launch_forward(const OperationViews& views, const CrossEntropy& options) {
    const View &logits = views.in(0), &labels = views.in(1), &statistics = views.out(1);
    const std::int64_t n = logits.shape[0], classes = logits.shape[1];
    const bool stay = options.reduction == LossReduction::none;
    const View losses = stay ? views.out(0) : View::make(logits.device(), logits.dtype, {n});
    if (n > 0) {
        const WorkScope work("cross_entropy", work_each(4, logits, labels, losses, statistics));
        launch_rows(kernel_for("cross_entropy", logits.dtype, labels.dtype, logits.device()),
                    row_grid(logits.device(), logits.dtype, n, classes), sizes_of(logits, options),
                    {logits.argument(), labels.argument(), losses.argument(), statistics.argument()});
    }
    if (!stay) bring_together(losses, labels, options, views.out(0), views.out(2));
    return EpilogueFused::no;
}

EpilogueFused launch_backward(const OperationViews& views, const CrossEntropy& options) {
    const View &logits = views.in(0), &labels = views.in(1), &statistics = views.in(2), &divisor = views.in(3);
    const std::int64_t n = logits.shape[0], classes = logits.shape[1];
    if (n == 0) return EpilogueFused::no;
    const WorkScope work("cross_entropy_backward", work_each(4, logits, labels, views.out(0)));
    std::vector<Argument> sizes = sizes_of(logits, options);
    sizes.emplace_back(std::int32_t{options.reduction == LossReduction::none});
    launch_rows(kernel_for("cross_entropy_backward", logits.dtype, labels.dtype, logits.device()),
                row_grid(logits.device(), logits.dtype, n, classes), sizes,
                {logits.argument(), labels.argument(), statistics.argument(), views.in(4).argument(),
                 or_else(divisor, statistics), views.out(0).argument()});
    return EpilogueFused::no;
}

}  // namespace

CrossEntropyResults cross_entropy(const View& logits, const View& labels, const CrossEntropy& options) {
    check_logits("cross_entropy", logits, options);
    const std::int64_t n = logits.shape[0];
    check_labels("cross_entropy", labels, n);
    require_same_device("cross_entropy", logits, labels);
    const DType dtype = logits.dtype, compute = compute_type(dtype);
    OperationOperands operands{.reads = {logits, labels}, .outputs = {}, .upcasts_to_f32 = true};
    if (options.reduction == LossReduction::none) operands.outputs = {{dtype, {n}}, {compute, {n, 2}}};
    else operands.outputs = {{dtype, {}}, {compute, {n, 2}}, {compute, {}}};
    const OperationResults results = operation("cross_entropy", launch_forward, options, std::move(operands));
    return {results[0], results[1], results[2]};
}

LazyArray cross_entropy_backward(const View& logits, const View& labels, const CrossEntropy& options,
                                 const View& statistics, const View& divisor, const View& gradient) {
    constexpr auto* function = "cross_entropy_backward";
    check_logits(function, logits, options);
    const std::int64_t n = logits.shape[0];
    check_labels(function, labels, n);
    require_same_device(function, logits, labels);
    const DType dtype = logits.dtype, compute = compute_type(dtype);
    check_result(function, "statistics", logits, statistics, {n, 2}, compute);
    const bool stay = options.reduction == LossReduction::none;
    check_result(function, "the gradient", logits, gradient, stay ? Shape{n} : Shape{}, dtype);
    if (!stay) check_result(function, "the divisor", logits, divisor, {}, compute);
    return operation(function, launch_backward, options,
                     {.reads = {logits, labels, statistics, stay ? View() : divisor, gradient},
                      .outputs = {{dtype, logits.shape}},
                      .upcasts_to_f32 = true})[0];
}

}  // namespace declivity::ops
