#include "elementwise_reduce.hpp"

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "elementwise_plan.hpp"
#include "ops/support/reduce_defines.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

// Tunables in addition to work_split.hpp; their meaning is documented in cl_kernels/engine/elementwise_reduce.cl.
constexpr std::int64_t kSimdBlock = 1024;
constexpr std::int64_t kSimtBlock = 64;
constexpr std::int64_t kMinColumns = 64;  // elements of a row from which on avoiding the store pays off

bool contains(const Dims& axes, int axis) { return std::ranges::find(axes, axis) != axes.end(); }

std::int64_t splits_of(const Device& device, bool simd, std::int64_t rows, std::int64_t columns) {
    const std::int64_t units = device.info().compute_units;
    if (!simd)
        return std::max<std::int64_t>(
            1, std::min(ceil_div(units * kSimtGroupsPerUnit, rows), columns / (kSimtGroup * kSimtWork)));
    return std::max<std::int64_t>(1, std::min(ceil_div(units * kSimdItemsPerUnit, rows), columns / kSimdWork));
}

/// Describes the remaining reduction and allocates the result of the kernel. @param inner first axis that the kernel
/// reduces
/// @param splits partial results per row, left to be reduced
ElementwiseReduced left_to_reduce(const Shape& shape, const Dims& axes, int inner, std::int64_t splits,
                                  DType accumulate, const Device& device) {
    ElementwiseReduced out;
    Shape parts;
    for (int axis = 0; axis < inner; ++axis) {
        if (contains(axes, axis)) out.axes.push_back(axis);
        parts.push_back(shape[axis]);
    }
    if (splits > 1) {
        out.axes.push_back(parts.rank());
        parts.push_back(splits);
    }
    out.done = out.axes.empty();
    out.parts = View::make(device, accumulate, parts);
    return out;
}

}  // namespace

bool may_reduce_rows(const Shape& shape, const Dims& axes, const Device& device) {
    int inner = shape.rank();
    std::int64_t columns = 1;
    while (inner > 0 && contains(axes, inner - 1)) columns *= shape[--inner];
    return columns >= kMinColumns && (is_simd(device) || shape.numel() / columns <= kMaxGroupsAlongAxis);
}

std::optional<ElementwiseReduced> elementwise_reduce(Reduce kind, const Expression& of, const Dims& axes,
                                                     DType accumulate, const Device& device) {
    const Expression expression = of_one_real(of, steps_of(of), accumulate);
    const Shape& shape = expression.shape();
    const int rank = shape.rank();
    int inner = rank;
    while (inner > 0 && contains(axes, inner - 1)) --inner;
    const Steps steps = steps_of(expression);
    ElementwisePlan plan = plan_of(steps, shape, nullptr);
    plan.operands[0].view.dtype = accumulate;
    while (inner < rank && !merge_rows(shape, inner, plan)) ++inner;
    if (inner == rank || plan.sizes.back() < kMinColumns) return std::nullopt;

    const bool simd = is_simd(device);
    const std::int64_t columns = plan.sizes.back(), rows = plan.sizes.numel() / columns;
    if (!simd && rows > kMaxGroupsAlongAxis) return std::nullopt;
    const std::int64_t chunk = ceil_div(columns, splits_of(device, simd, rows, columns)),
                       splits = ceil_div(columns, chunk);
    ElementwiseReduced out = left_to_reduce(shape, axes, inner, splits, accumulate, device);
    const std::int64_t divisor = kind == Reduce::mean && out.done ? columns : 1;

    Defines defines = reduce_defines(kind, accumulate);
    defines.set(form_macro(simd), 1)
        .set("BLOCK", simd ? kSimdBlock : kSimtBlock)
        .set("LANES", vector_lanes(accumulate));
    const std::string form =
        fmt::format("reduce {} {} {} ", static_cast<int>(kind), static_cast<int>(accumulate), simd);
    const Kernel kernel = kernel_of_structure(form, steps, plan, device, [&] {
        return elementwise_reduce_specification(steps, plan, device, kernel_style_of(device), defines);
    });
    const auto layout = layout_of(plan);
    const std::int64_t each = simd ? rows_each(device, rows, chunk) : 1;
    const std::size_t group = simd ? 1
                                   : to_size(power_of_two_up_to(std::min<std::int64_t>(
                                         kSimtGroup, static_cast<std::int64_t>(kernel.max_work_group()))));
    const LocalMemory shared{group * size_of(accumulate)};
    std::pmr::vector<Argument> arguments{
        RawArgument{layout.data(), layout.size() * sizeof(std::int64_t)}, rows, columns, each, chunk, splits, divisor};
    if (!simd) arguments.emplace_back(shared);
    arguments.emplace_back(out.parts.argument());
    append_inputs(plan, arguments);
    append_numbers(plan, arguments);
    const bool shown = profiling();
    Work work = shown ? work_of(steps, plan, out.parts) : Work{};
    work.flops += static_cast<double>(plan.sizes.numel());
    const std::string functions = shown ? fmt::format("{}+{}", functions_of(steps), name_of(kind)) : "";
    const WorkScope scope(functions, work);
    launch(kernel, {.global = {to_size(splits) * group, to_size(ceil_div(rows, each)), 1}, .local = {group, 1, 1}},
           std::span<const Argument>(arguments));
    return out;
}

}  // namespace declivity::ops
