#include <declivity/ops/search.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {

void search(std::string_view function, const View& sorted, const View& values, bool right, const View& out) {
    constexpr std::size_t max_items = 64;
    require_dense(function, "the sorted rows", sorted);
    require_dense(function, "the values", values);
    require_dense(function, "out", out);
    require_alike(function, "the sorted rows", sorted, "the values", values);
    require_rank(function, "the sorted rows", sorted, 2, "rows, n");
    require_rank(function, "the values", values, 2, "rows, taken");
    require_shape(function, "out", out, values.shape);
    if (is_16bit_float(sorted.dtype))
        throw TypeError(fmt::format("{}: expected any type but f16 and bf16, got {}", function, name_of(sorted.dtype)));
    const bool shared = sorted.shape[0] == 1;
    if (!shared) require_shape(function, "the sorted rows", sorted, {values.shape[0], sorted.shape[1]});
    const WorkScope work("search", work_each(0, values, out));
    if (values.numel() == 0) return;
    Defines defines = sorted.dtype == DType::f64 ? real_defines(sorted.dtype) : Defines();
    defines.set("T", cl_type(sorted.dtype)).set("SHARED", shared ? 1 : 0).set("RIGHT", right ? 1 : 0);
    const Kernel kernel(values.device(), {"search.cl", "search", defines});
    const bool simd = is_simd(values.device());
    const std::size_t group = std::min(simd ? std::size_t{16} : max_items, kernel.max_work_group());
    launch(kernel,
           {.global = {round_up(to_size(values.shape[1]), group), to_size(values.shape[0])}, .local = {group, 1}},
           {sorted.shape[1], values.shape[1], sorted.argument(), values.argument(), out.argument()});
}

}  // namespace declivity::ops
