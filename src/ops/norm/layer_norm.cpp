#include <declivity/ops/layer_norm.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/partial_sums.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "ops/engine/row_fusion.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMinRows = 64;  // minimum for a partial sum over rows

std::string_view name_of(RowNorm kind) { return kind == RowNorm::rms ? "rms_norm" : "layer_norm"; }

/// @param elements expected number, @param dtype expected type
void check(std::string_view function, const View& x, std::string_view name, const View& view, std::int64_t elements,
           DType dtype) {
    if (!view.buffer) return;
    require_alike(function, "x", dtype, x.device(), name, view.dtype, view.device());
    require_dense(function, name, view);
    if (view.numel() != elements) require_shape(function, name, view, {elements});
}

/// Elements of a row.
std::int64_t row_length(const Shape& shape, int inner) {
    std::int64_t n = 1;
    for (int axis = inner; axis < shape.rank(); ++axis) n *= shape[axis];
    return n;
}

/// x (rows, n) of a backward kernel, with a mean for each row.
struct Rows {
    std::int64_t count, n;
};

Rows check_rows(std::string_view function, const View& x, const View& weight, const View& mean, const View& rstd,
                const View& out_gradient) {
    require_real(function, "x", x.dtype);
    require_dense(function, "x", x);
    const DType compute = compute_type(x.dtype);
    const Rows rows{mean.numel(), mean.numel() == 0 ? weight.numel() : x.numel() / mean.numel()};
    check(function, x, "the mean", mean, rows.count, compute);
    check(function, x, "rstd", rstd, rows.count, compute);
    check(function, x, "the result's gradient", out_gradient, x.numel(), x.dtype);
    if (rows.count > 0) check(function, x, "weight", weight, rows.n, x.dtype);
    return rows;
}

Defines defines_of(const View& like, RowNorm kind, bool weight, bool bias) {
    const bool simd = is_simd(like.device());
    const DType dtype = like.dtype;
    Defines defines = real_defines(dtype);
    defines.set("T", cl_type(dtype)).set(form_macro(simd), 1).set("RMS", kind == RowNorm::rms ? 1 : 0);
    defines.set("WEIGHT", weight ? 1 : 0).set("BIAS", bias ? 1 : 0);
    return defines.set("LANES", vector_lanes(dtype)).set("COLUMNS", kSimdColumns);
}

struct LayerNorm {
    double eps;
    RowNorm kind;
    int inner;
};

EpilogueFused launch_layer_norm(const OperationViews& views, const LayerNorm& norm) {
    const View &weight = views.in(1), &bias = views.in(2), &means = views.out(1), &rstds = views.out(2);
    return launch_row_kernel(views, norm.inner,
                             {.file = "layer_norm.cl",
                              .name = "layer_norm",
                              .shown_as = name_of(norm.kind),
                              .defines = defines_of(means, norm.kind, bool(weight.buffer), bool(bias.buffer)),
                              .arguments = {real_argument(means.dtype, norm.eps), or_else(weight, means),
                                            or_else(bias, means), means.argument(), rstds.argument()},
                              .flops = 8,
                              .needs_row = false});
}

struct LayerNormGradient {
    RowNorm kind;
};

EpilogueFused launch_input_gradient(const OperationViews& views, const LayerNormGradient& norm) {
    const View &x = views.in(0), &weight = views.in(1), &means = views.in(2), &g = views.in(4);
    if (x.numel() == 0) return EpilogueFused::no;
    const WorkScope work("layer_norm_backward", work_each(10, x, g, views.out(0)));
    const std::int64_t rows = means.numel(), n = x.numel() / rows;
    launch_rows(
        {x.device(), {"layer_norm.cl", "layer_norm_backward", defines_of(x, norm.kind, bool(weight.buffer), false)}},
        row_grid(x.device(), x.dtype, rows, n), {rows, n},
        {x.argument(), g.argument(), or_else(weight, x), means.argument(), views.in(3).argument(),
         views.out(0).argument()});
    return EpilogueFused::no;
}

}  // namespace

LayerNormResults layer_norm(RowNorm kind, LazyArray x, int inner, const View& weight, const View& bias, double eps) {
    const std::string_view function = name_of(kind);
    const Shape shape = x.shape();
    const DType dtype = x.dtype();
    const DType compute = compute_type(dtype);
    require_real(function, "x", dtype);
    if (inner < 0 || inner >= shape.rank())
        throw ShapeError(
            fmt::format("{}: expected rows along axes of x, got axis {} of {}", function, inner, shape.str()));
    const std::int64_t n = row_length(shape, inner);
    for (const auto& [name, view] : {std::pair{"weight", &weight}, std::pair{"bias", &bias}}) {
        if (!view->buffer) continue;
        require_alike(function, "x", dtype, x.device(), name, view->dtype, view->device());
        require_dense(function, name, *view);
        if (view->numel() != n) require_shape(function, name, *view, {n});
    }
    Shape rows;
    for (int axis = 0; axis < inner; ++axis) rows.push_back(shape[axis]);
    RowInput in = row_input(std::move(x), inner);
    const OperationResults results = operation(function, launch_layer_norm, LayerNorm{eps, kind, inner},
                                               {.reads = {std::move(in.view), weight, bias},
                                                .outputs = {{dtype, shape}, {compute, rows}, {compute, rows}},
                                                .prologue = std::move(in.pending),
                                                .fuses_output_cast = true,
                                                .upcasts_to_f32 = true});
    return {results[0], results[1], results[2]};
}

LazyArray layer_norm_input_gradient(RowNorm kind, const View& x, const View& weight, const View& mean, const View& rstd,
                                    const View& out_gradient) {
    constexpr std::string_view function = "layer_norm_backward";
    (void)check_rows(function, x, weight, mean, rstd, out_gradient);
    return operation(
        function, launch_input_gradient, LayerNormGradient{kind},
        {.reads = {x, weight, mean, rstd, out_gradient}, .outputs = {{x.dtype, x.shape}}, .upcasts_to_f32 = true})[0];
}

LayerNormGradients layer_norm_weight_gradients(const View& stored_x, std::int64_t n, const View& mean, const View& rstd,
                                               const View& stored_gradient) {
    constexpr std::string_view function = "layer_norm_backward";
    const std::int64_t rows = check_rows(function, stored_x, {}, mean, rstd, stored_gradient).count;
    const DType dtype = stored_x.dtype;
    const View x = upcast(stored_x), out_gradient = upcast(stored_gradient);
    const Device device = x.device();
    if (x.numel() == 0) {
        const View weight = View::make(device, dtype, {n}), bias = View::make(device, dtype, {n});
        fill(weight, 0);
        fill(bias, 0);
        return {weight, bias};
    }
    const bool simd = is_simd(device);
    const Kernel kernel(device, {"layer_norm.cl", "layer_norm_columns", defines_of(x, RowNorm::layer, false, false)});
    const std::size_t group = simd ? 1 : item_group(kernel);
    const std::int64_t blocks = simd ? ceil_div(n, kSimdColumns) : ceil_div(n, static_cast<std::int64_t>(group));
    const std::int64_t wanted =
        std::int64_t{device.info().compute_units} * (simd ? kSimdItemsPerUnit : kSimtGroupsPerUnit) / blocks;
    const std::int64_t parts = std::clamp<std::int64_t>(rows / kMinRows, 1, std::max<std::int64_t>(1, wanted));
    const std::int64_t each = ceil_div(rows, parts), count = ceil_div(rows, each);
    const View weights = View::make(device, x.dtype, {count, n}), biases = View::make(device, x.dtype, {count, n});
    const WorkScope work(function, work_each(5, x, out_gradient));
    launch(
        kernel,
        {.global = {simd ? to_size(blocks) : round_up(to_size(n), group), to_size(count), 1}, .local = {group, 1, 1}},
        {rows, n, each, x.argument(), out_gradient.argument(), mean.argument(), rstd.argument(), weights.argument(),
         biases.argument()});
    if (count == 1 && dtype == x.dtype) return {reshaped(weights, {n}), reshaped(biases, {n})};
    return {lazy_reduce_partials(weights, {n}, dtype), lazy_reduce_partials(biases, {n}, dtype)};
}

}  // namespace declivity::ops
