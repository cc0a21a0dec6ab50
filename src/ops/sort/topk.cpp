#include <declivity/ops/topk.hpp>

#include <algorithm>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"
#include "radix_sort.hpp"

namespace declivity::ops {
namespace {

struct TopK {
    std::int64_t k;
    bool largest;
};

Kernel kernel_of(const View& x, const TopK& topk, bool shared) {
    Defines defines = x.dtype == DType::f64 ? real_defines(x.dtype) : Defines();
    defines.set("T", cl_type(x.dtype)).set(form_macro(!shared), 1).set("LARGEST", topk.largest ? 1 : 0);
    return {x.device(), {"topk.cl", "topk", defines}};
}

EpilogueFused launch_topk(const OperationViews& views, const TopK& topk) {
    constexpr std::int64_t max_passes = 256;  // of a group; each one scans the whole row
    const View& x = views.in(0);
    const std::int64_t rows = x.shape[0], n = x.shape[1];
    if (rows * topk.k == 0) return EpilogueFused::no;
    const Device device = x.device();
    if (radix_sort_is_profitable(x, topk.k)) {
        const WorkScope work("sort", work_each(1, x, views.out(0), views.out(1)));
        radix_sort(x, topk.largest, views.out(0), views.out(1));
        return EpilogueFused::no;
    }
    const WorkScope work("topk", work_each(2, x, views.out(0), views.out(1)));
    const bool shared = !is_simd(device) && topk.k <= max_passes;
    const Kernel kernel = kernel_of(x, topk, shared);
    const BufferArgument in = x.argument(), values = views.out(0).argument(), indices = views.out(1).argument();
    if (!shared) {
        const std::int64_t each = rows_each(device, rows, n);
        launch(kernel, {.global = {to_size(ceil_div(rows, each)), 1, 1}, .local = {1, 1, 1}},
               {rows, n, topk.k, each, in, values, indices});
        return EpilogueFused::no;
    }
    const std::int64_t max_lanes = std::min(kSimtGroup, static_cast<std::int64_t>(kernel.max_work_group()));
    const std::size_t lanes = to_size(power_of_two_up_to(std::min(max_lanes, std::max<std::int64_t>(1, n / 2))));
    launch(kernel, {.global = {to_size(rows) * lanes, 1, 1}, .local = {lanes, 1, 1}},
           {rows, n, topk.k, LocalMemory{lanes * size_of(x.dtype)}, LocalMemory{lanes * sizeof(std::int64_t)}, in,
            values, indices});
    return EpilogueFused::no;
}

}  // namespace

TopKResults topk(const View& x, std::int64_t k, bool largest) {
    require_rank("topk", "x", x, 2, "rows, n");
    require_dense("topk", "x", x);
    if (k < 0 || k > x.shape[1])
        throw ValueError(fmt::format("topk: expected a k of 0 to {}, the elements of the axis, got {}", x.shape[1], k));
    const Shape shape{x.shape[0], k};
    const OperationResults results =
        operation("topk", launch_topk, TopK{k, largest},
                  {.reads = {x}, .outputs = {{x.dtype, shape}, {DType::i64, shape}}, .upcasts_to_f32 = true});
    return {results[0], results[1]};
}

}  // namespace declivity::ops
