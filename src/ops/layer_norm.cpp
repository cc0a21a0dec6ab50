#include <declivity/ops/layer_norm.hpp>

#include <algorithm>
#include <vector>

#include <declivity/ops/operation.hpp>

#include "ops/engine/partial_sums.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kLeastRows = 64;  // that are worth a part of the sums over rows

std::string_view name_of(RowNorm kind) { return kind == RowNorm::rms ? "rms_norm" : "layer_norm"; }

void check(std::string_view function, const View& x, std::string_view name, const View& view, const Shape& shape) {
    if (!view.buffer) return;
    require_alike(function, "x", x, name, view);
    require_shape(function, name, view, shape);
    require_dense(function, name, view);
}

void check_x(std::string_view function, const View& x) {
    require_floating(function, "x", x);
    require_rank(function, "x", x, 2, "rows, n");
    require_dense(function, "x", x);
}

Kernel kernel_of(const char* name, const View& like, RowNorm kind, bool weight, bool bias) {
    const bool cpu = family_of(like.device()) == Family::cpu_like;
    Defines defines = real_defines(like.dtype);
    defines.set("T", cl_type(like.dtype)).set("FORM", cpu ? 0 : 2).set("RMS", kind == RowNorm::rms ? 1 : 0);
    defines.set("WEIGHT", weight ? 1 : 0).set("BIAS", bias ? 1 : 0);
    defines.set("LANES", vector_lanes(like.dtype)).set("COLUMNS", kCpuColumns);
    return {like.device(), {"layer_norm.cl", name, defines}};
}

/// A kernel that takes rows: `arguments` are what follows how they are shared.
void launch_rows(const Kernel& kernel, const View& x, const std::vector<Argument>& arguments) {
    const std::int64_t rows = x.shape[0], n = x.shape[1];
    std::vector<Argument> all{rows, n};
    Range range{.global = {1, 1, 1}, .local = {1, 1, 1}};
    if (family_of(x.device()) == Family::cpu_like) {
        const std::int64_t each = rows_each(x.device(), rows, n);
        all.emplace_back(each);
        range.global[0] = to_size(ceil_div(rows, each));
    } else {
        const RowGroup group = row_group(rows, n, false, kernel);
        const LocalMemory shared{group.items() * size_of(x.dtype)};
        all.insert(all.end(), {Argument(group.lanes_argument()), Argument(group.stride_argument()), Argument(shared)});
        range.global[0] = to_size(ceil_div(rows, group.rows)) * group.items();
        range.local[0] = group.items();
    }
    all.insert(all.end(), arguments.begin(), arguments.end());
    launch(kernel, range, all);
}

/// A view that may be none, as an argument: something else stands in for it and is not read.
BufferArgument or_else(const View& view, const View& stand_in) {
    return view.buffer ? view.argument() : stand_in.argument();
}

struct LayerNorm {
    double epsilon;
    RowNorm kind;
};

EpilogueTaken launch_layer_norm(const OperationViews& views, const LayerNorm& norm) {
    const View &x = views.in(0), &weight = views.in(1), &bias = views.in(2);
    if (x.numel() == 0) return EpilogueTaken::no;
    const WorkScope work(name_of(norm.kind), work_each(8, x, views.out(0)));
    launch_rows(kernel_of("layer_norm", x, norm.kind, bool(weight.buffer), bool(bias.buffer)), x,
                {real_argument(x.dtype, norm.epsilon), x.argument(), or_else(weight, x), or_else(bias, x),
                 views.out(0).argument(), views.out(1).argument(), views.out(2).argument()});
    return EpilogueTaken::no;
}

EpilogueTaken launch_input_gradient(const OperationViews& views, const RowNorm& kind) {
    const View &x = views.in(0), &weight = views.in(1), &g = views.in(4);
    if (x.numel() == 0) return EpilogueTaken::no;
    const WorkScope work("layer_norm_backward", work_each(10, x, g, views.out(0)));
    launch_rows(kernel_of("layer_norm_backward", x, kind, bool(weight.buffer), false), x,
                {x.argument(), g.argument(), or_else(weight, x), views.in(2).argument(), views.in(3).argument(),
                 views.out(0).argument()});
    return EpilogueTaken::no;
}

}  // namespace

LayerNormResults layer_norm(RowNorm kind, const View& x, const View& weight, const View& bias, double epsilon) {
    const std::string_view function = name_of(kind);
    check_x(function, x);
    check(function, x, "weight", weight, {x.shape[1]});
    check(function, x, "bias", bias, {x.shape[1]});
    const Shape rows{x.shape[0]};
    const OperationResults results =
        operation(function, launch_layer_norm, LayerNorm{epsilon, kind},
                  {.reads = {x, weight, bias}, .outputs = {{x.dtype, x.shape}, {x.dtype, rows}, {x.dtype, rows}}});
    return {results[0], results[1], results[2]};
}

Value layer_norm_input_gradient(RowNorm kind, const View& x, const View& weight, const View& mean, const View& rstd,
                                const View& out_gradient) {
    constexpr std::string_view function = "layer_norm_backward";
    check_x(function, x);
    check(function, x, "weight", weight, {x.shape[1]});
    check(function, x, "the mean", mean, {x.shape[0]});
    check(function, x, "rstd", rstd, {x.shape[0]});
    check(function, x, "the result's gradient", out_gradient, x.shape);
    return operation(function, launch_input_gradient, kind,
                     {.reads = {x, weight, mean, rstd, out_gradient}, .outputs = {{x.dtype, x.shape}}})[0];
}

LayerNormGradients layer_norm_weight_gradients(const View& x, const View& mean, const View& rstd,
                                               const View& out_gradient) {
    constexpr std::string_view function = "layer_norm_backward";
    check_x(function, x);
    check(function, x, "the mean", mean, {x.shape[0]});
    check(function, x, "rstd", rstd, {x.shape[0]});
    check(function, x, "the result's gradient", out_gradient, x.shape);
    const std::int64_t rows = x.shape[0], n = x.shape[1];
    const Device device = x.device();
    if (x.numel() == 0) {
        const View weight = View::make(device, x.dtype, {n}), bias = View::make(device, x.dtype, {n});
        fill(weight, 0);
        fill(bias, 0);
        return {weight, bias};
    }
    const bool cpu = family_of(device) == Family::cpu_like;
    const Kernel kernel = kernel_of("layer_norm_columns", x, RowNorm::layer, false, false);
    const std::size_t group = cpu ? 1 : std::min<std::size_t>(64, kernel.max_work_group());
    const std::int64_t blocks = cpu ? ceil_div(n, kCpuColumns) : ceil_div(n, static_cast<std::int64_t>(group));
    const std::int64_t wanted =
        std::int64_t{device.info().compute_units} * (cpu ? kCpuItemsPerUnit : kGpuGroupsPerUnit) / blocks;
    const std::int64_t parts = std::clamp<std::int64_t>(rows / kLeastRows, 1, std::max<std::int64_t>(1, wanted));
    const std::int64_t each = ceil_div(rows, parts), count = ceil_div(rows, each);
    const View weights = View::make(device, x.dtype, {count, n}), biases = View::make(device, x.dtype, {count, n});
    const WorkScope work(function, work_each(5, x, out_gradient));
    launch(kernel,
           {.global = {cpu ? to_size(blocks) : round_up(to_size(n), group), to_size(count), 1}, .local = {group, 1, 1}},
           {rows, n, each, x.argument(), out_gradient.argument(), mean.argument(), rstd.argument(), weights.argument(),
            biases.argument()});
    if (count == 1) return {reshaped(weights, {n}), reshaped(biases, {n})};
    return {sum_of_partials(weights, {n}), sum_of_partials(biases, {n})};
}

}  // namespace declivity::ops
