#include <declivity/ops/gather_weighted_sum.hpp>

#include <algorithm>
#include <string>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMaxUnrolled = 8;  // maximum rows of a sum that are unrolled at compile time

/// Layout of the kernels' struct; must match cl_kernels/indexing/gather_weighted_sum.cl.
struct WeightedSumSizes {
    std::int64_t positions, each, rows, length, k;
};

/// @param items simt only
void launch_kernel(const std::string& name, const View& rows, const View& indices, const View& other, const View& out,
                   std::int64_t items) {
    if (out.numel() == 0) return;
    const Device device = out.device();
    const bool simd = is_simd(device);
    WeightedSumSizes sizes{indices.shape[0], 1, rows.shape[0], rows.shape[1], indices.shape[1]};
    Defines defines = real_defines(out.dtype);
    defines.set("T", cl_type(out.dtype)).set(form_macro(simd), 1).set("LANES", vector_lanes(out.dtype));
    defines.set("ROWS", sizes.k <= kMaxUnrolled ? sizes.k : 0);
    const Kernel kernel(device, {"gather_weighted_sum.cl", name, defines});
    Range range;
    if (simd) {
        sizes.each = rows_each(device, sizes.positions, sizes.k * std::max<std::int64_t>(1, sizes.length));
        range = {.global = {to_size(ceil_div(sizes.positions, sizes.each)), 1, 1}, .local = {1, 1, 1}};
    } else {
        const std::size_t group = item_group(kernel);
        range = {.global = {round_up(to_size(items), group), 1, 1}, .local = {group, 1, 1}};
    }
    launch(kernel, range, {sizes, rows.argument(), indices.argument(), other.argument(), out.argument()});
}

struct None {
    std::int32_t unused = 0;
};

EpilogueFused launch_sums(const OperationViews& views, const None&) {
    const View &rows = views.in(0), &indices = views.in(1), &weights = views.in(2), &out = views.out(0);
    const WorkScope work("gather_weighted_sum",
                         work_each(2 * static_cast<double>(indices.shape[1]), out, indices, weights));
    launch_kernel("gather_weighted_sum", rows, indices, weights, out, out.numel());
    return EpilogueFused::no;
}

EpilogueFused launch_weights(const OperationViews& views, const None&) {
    const View &rows = views.in(0), &indices = views.in(1), &g = views.in(2), &out = views.out(0);
    const WorkScope work("gather_weighted_sum_backward_weights",
                         work_each(2 * static_cast<double>(rows.shape[1]), out, indices, g));
    launch_kernel("gather_weighted_sum_backward_weights", rows, indices, g, out, out.numel());
    return EpilogueFused::no;
}

void check(std::string_view function, const View& rows, const View& indices, const View& other) {
    if (rows.dtype != DType::f32 && rows.dtype != DType::f64)
        throw TypeError(fmt::format("{}: expected f32 or f64, got {}", function, name_of(rows.dtype)));
    require_rank(function, "rows", rows, 2, "V, D");
    require_rank(function, "indices", indices, 2, "N, K");
    if (indices.dtype != DType::i64)
        throw TypeError(fmt::format("{}: expected indices of i64, got {}", function, name_of(indices.dtype)));
    require_same_device(function, rows, indices);
    require_alike(function, "rows", rows, "the other operand", other);
    for (const View* view : {&rows, &indices, &other}) require_dense(function, "an operand", *view);
}

}  // namespace

LazyArray gather_weighted_sum(const View& rows, const View& indices, const View& weights) {
    check("gather_weighted_sum", rows, indices, weights);
    require_shape("gather_weighted_sum", "weights", weights, indices.shape);
    return operation(
        "gather_weighted_sum", launch_sums, None{},
        {.reads = {rows, indices, weights}, .outputs = {{rows.dtype, {indices.shape[0], rows.shape[1]}}}})[0];
}

LazyArray gather_weighted_sum_backward_weights(const View& rows, const View& indices, const View& out_gradient) {
    check("gather_weighted_sum_backward_weights", rows, indices, out_gradient);
    require_shape("gather_weighted_sum_backward_weights", "the gradient", out_gradient,
                  {indices.shape[0], rows.shape[1]});
    return operation("gather_weighted_sum_backward_weights", launch_weights, None{},
                     {.reads = {rows, indices, out_gradient}, .outputs = {{rows.dtype, indices.shape}}})[0];
}

}  // namespace declivity::ops
