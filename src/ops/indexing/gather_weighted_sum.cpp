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

constexpr std::size_t kGroup = 64;        // work-items of a group, simt
constexpr std::int64_t kMaxUnrolled = 8;  // maximum rows of a sum that are unrolled at compile time

/// Layout of the kernels' struct; must match cl_kernels/indexing/gather_weighted_sum.cl.
struct Sizes {
    std::int64_t places, each, rows, length, k;
};

/// @param items simt only
void launch_places(const std::string& name, const View& rows, const View& numbers, const View& other, const View& out,
                   std::int64_t items) {
    if (out.numel() == 0) return;
    const Device device = out.device();
    const bool simd = is_simd(device);
    Sizes sizes{numbers.shape[0], 1, rows.shape[0], rows.shape[1], numbers.shape[1]};
    Defines defines = real_defines(out.dtype);
    defines.set("T", cl_type(out.dtype)).set(form_macro(simd), 1).set("LANES", vector_lanes(out.dtype));
    defines.set("ROWS", sizes.k <= kMaxUnrolled ? sizes.k : 0);
    const Kernel kernel(device, {"gather_weighted_sum.cl", name, defines});
    Range range;
    if (simd) {
        sizes.each = rows_each(device, sizes.places, sizes.k * std::max<std::int64_t>(1, sizes.length));
        range = {.global = {to_size(ceil_div(sizes.places, sizes.each)), 1, 1}, .local = {1, 1, 1}};
    } else {
        const std::size_t group = std::min(kGroup, kernel.max_work_group());
        range = {.global = {round_up(to_size(items), group), 1, 1}, .local = {group, 1, 1}};
    }
    launch(kernel, range, {sizes, rows.argument(), numbers.argument(), other.argument(), out.argument()});
}

struct None {
    std::int32_t unused = 0;
};

EpilogueFused launch_sums(const OperationViews& views, const None&) {
    const View &rows = views.in(0), &numbers = views.in(1), &weights = views.in(2), &out = views.out(0);
    const WorkScope work("gather_weighted_sum",
                         work_each(2 * static_cast<double>(numbers.shape[1]), out, numbers, weights));
    launch_places("gather_weighted_sum", rows, numbers, weights, out, out.numel());
    return EpilogueFused::no;
}

EpilogueFused launch_weights(const OperationViews& views, const None&) {
    const View &rows = views.in(0), &numbers = views.in(1), &g = views.in(2), &out = views.out(0);
    const WorkScope work("gather_weighted_sum_backward_weights",
                         work_each(2 * static_cast<double>(rows.shape[1]), out, numbers, g));
    launch_places("gather_weighted_sum_backward_weights", rows, numbers, g, out, out.numel());
    return EpilogueFused::no;
}

void check(std::string_view function, const View& rows, const View& numbers, const View& other) {
    if (rows.dtype != DType::f32 && rows.dtype != DType::f64)
        throw TypeError(fmt::format("{}: expected f32 or f64, got {}", function, name_of(rows.dtype)));
    require_rank(function, "rows", rows, 2, "V, D");
    require_rank(function, "numbers", numbers, 2, "N, K");
    if (numbers.dtype != DType::i64)
        throw TypeError(fmt::format("{}: expected numbers of i64, got {}", function, name_of(numbers.dtype)));
    require_same_device(function, rows, numbers);
    require_alike(function, "rows", rows, "the other operand", other);
    for (const View* view : {&rows, &numbers, &other}) require_dense(function, "an operand", *view);
}

}  // namespace

LazyArray gather_weighted_sum(const View& rows, const View& numbers, const View& weights) {
    check("gather_weighted_sum", rows, numbers, weights);
    require_shape("gather_weighted_sum", "weights", weights, numbers.shape);
    return operation(
        "gather_weighted_sum", launch_sums, None{},
        {.reads = {rows, numbers, weights}, .outputs = {{rows.dtype, {numbers.shape[0], rows.shape[1]}}}})[0];
}

LazyArray gather_weighted_sum_backward_weights(const View& rows, const View& numbers, const View& out_gradient) {
    check("gather_weighted_sum_backward_weights", rows, numbers, out_gradient);
    require_shape("gather_weighted_sum_backward_weights", "the gradient", out_gradient,
                  {numbers.shape[0], rows.shape[1]});
    return operation("gather_weighted_sum_backward_weights", launch_weights, None{},
                     {.reads = {rows, numbers, out_gradient}, .outputs = {{rows.dtype, numbers.shape}}})[0];
}

}  // namespace declivity::ops
