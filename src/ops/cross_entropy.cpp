#include <declivity/ops/cross_entropy.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

Kernel kernel_for(const char* name, DType real, DType label, const Device& device) {
    Defines defines = real_defines(real);
    defines.set("T", cl_type(real)).set("LABEL", cl_type(label)).set("LANES", vector_lanes(real));
    defines.set("FORM", family_of(device) == Family::cpu_like ? 0 : 1);
    return {device, {"cross_entropy.cl", name, defines}};
}

void check_labels(const char* function, const View& labels, std::int64_t rows) {
    if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
        throw TypeError(fmt::format("{}: wants labels of i32 or i64, got {}", function, name_of(labels.dtype)));
    require_shape(function, "labels", labels, {rows});
    require_dense(function, "labels", labels);
}

void check_logits(const char* function, const View& logits, const CrossEntropy& options) {
    require_floating(function, "logits", logits);
    require_rank(function, "logits", logits, 2, "N, C");
    if (logits.shape[1] == 0 && logits.shape[0] > 0)
        throw ShapeError(
            fmt::format("{}: wants at least one class, got logits of shape {}", function, logits.shape.str()));
    require_dense(function, "logits", logits);
    if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
        throw ValueError(fmt::format("{}: wants label_smoothing in [0, 1), got {}", function, options.label_smoothing));
}

void check_result(const char* function, std::string_view name, const View& logits, const View& view,
                  const Shape& shape) {
    require_alike(function, "logits", logits, name, view);
    require_shape(function, name, view, shape);
    require_dense(function, name, view);
}

std::size_t cpu_groups(std::int64_t rows, std::int64_t each) { return to_size(ceil_div(rows, each)); }

}  // namespace

void cross_entropy(const View& logits, const View& labels, const CrossEntropy& options, const View& losses,
                   const View& statistics) {
    const std::int64_t n = logits.rank() == 2 ? logits.shape[0] : 0;
    check_logits("cross_entropy", logits, options);
    check_labels("cross_entropy", labels, n);
    require_same_device("cross_entropy", logits, labels);
    check_result("cross_entropy", "losses", logits, losses, {n});
    check_result("cross_entropy", "statistics", logits, statistics, {n, 2});
    if (n == 0) return;
    const Kernel kernel = kernel_for("cross_entropy", logits.dtype, labels.dtype, logits.device());
    const RealArguments reals(logits.dtype, {options.label_smoothing});
    const std::int64_t classes = logits.shape[1];
    const WorkScope work("cross_entropy", work_each(4, logits, labels, losses, statistics));
    if (family_of(logits.device()) == Family::cpu_like) {
        const std::int64_t each = rows_each(logits.device(), n, classes);
        launch(kernel, {.global = {cpu_groups(n, each), 1, 1}, .local = {1, 1, 1}},
               {n, classes, options.ignore_label, reals[0], each, logits.argument(), labels.argument(),
                losses.argument(), statistics.argument()});
    } else {
        const RowGroup group = row_group(n, classes, false, kernel);
        launch(kernel,
               {.global = {to_size(ceil_div(n, group.rows)) * group.items(), 1, 1}, .local = {group.items(), 1, 1}},
               {n, classes, options.ignore_label, reals[0], group.lanes_argument(), group.stride_argument(),
                LocalMemory{group.items() * size_of(logits.dtype)}, logits.argument(), labels.argument(),
                losses.argument(), statistics.argument()});
    }
}

void cross_entropy_total(const View& losses, const View& labels, std::int64_t ignore_label, bool mean,
                         const View& total) {
    require_floating("cross_entropy_total", "losses", losses);
    require_rank("cross_entropy_total", "losses", losses, 1, "N");
    require_dense("cross_entropy_total", "losses", losses);
    check_labels("cross_entropy_total", labels, losses.shape[0]);
    check_result("cross_entropy_total", "the total", losses, total, {2});
    const Kernel kernel = kernel_for("cross_entropy_total", losses.dtype, labels.dtype, losses.device());
    const bool cpu = family_of(losses.device()) == Family::cpu_like;
    const std::size_t items = cpu ? 1 : row_group(1, 4 * losses.shape[0], false, kernel).items();
    launch(kernel, {.global = {items, 1, 1}, .local = {items, 1, 1}},
           {losses.shape[0], ignore_label, std::int32_t{mean}, LocalMemory{items * size_of(losses.dtype)},
            losses.argument(), labels.argument(), total.argument()});
}

void cross_entropy_backward(const View& logits, const View& labels, const CrossEntropy& options, const View& statistics,
                            const View& gradient, const View& total, const View& logits_gradient) {
    constexpr auto* function = "cross_entropy_backward";
    check_logits(function, logits, options);
    const std::int64_t n = logits.shape[0], classes = logits.shape[1];
    check_labels(function, labels, n);
    require_same_device(function, logits, labels);
    check_result(function, "statistics", logits, statistics, {n, 2});
    check_result(function, "the logits' gradient", logits, logits_gradient, logits.shape);
    const bool per_row = gradient.rank() > 0;
    check_result(function, "the gradient", logits, gradient, per_row ? Shape{n} : Shape{});
    if (!per_row) check_result(function, "the total", logits, total, {2});
    if (may_overlap(logits, logits_gradient))
        throw ValueError(
            fmt::format("{}: wants memory of its own as the logits' gradient, got that of the logits", function));
    const BufferArgument divisor = per_row ? statistics.argument() : total.argument();  // not read for single rows
    if (n == 0) return;
    const WorkScope work("cross_entropy_backward", work_each(4, logits, labels, logits_gradient));
    const Kernel kernel = kernel_for("cross_entropy_backward", logits.dtype, labels.dtype, logits.device());
    const RealArguments reals(logits.dtype, {options.label_smoothing});
    if (family_of(logits.device()) == Family::cpu_like) {
        const std::int64_t each = rows_each(logits.device(), n, classes);
        launch(kernel, {.global = {cpu_groups(n, each), 1, 1}, .local = {1, 1, 1}},
               {n, classes, options.ignore_label, reals[0], std::int32_t{per_row}, each, logits.argument(),
                labels.argument(), statistics.argument(), gradient.argument(), divisor, logits_gradient.argument()});
    } else {
        const RowGroup group = row_group(n, classes, false, kernel);
        launch(kernel,
               {.global = {to_size(ceil_div(n, group.rows)) * group.items(), 1, 1}, .local = {group.items(), 1, 1}},
               {n, classes, options.ignore_label, reals[0], std::int32_t{per_row}, group.lanes_argument(),
                group.stride_argument(), logits.argument(), labels.argument(), statistics.argument(),
                gradient.argument(), divisor, logits_gradient.argument()});
    }
}

}  // namespace declivity::ops
