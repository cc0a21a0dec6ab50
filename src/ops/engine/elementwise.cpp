// Launches the kernels generated from expressions (elementwise_source.cpp): partition of the index space.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory_resource>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "elementwise_plan.hpp"
#include "expression.hpp"
#include "ops/support/index_space.hpp"
#include "ops/support/scratch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"
#include "permute.hpp"

namespace declivity::ops {
namespace {

using Node = ExpressionNode;

constexpr std::size_t kKernelCopy = 1 << 20;  // bytes of a copy from which on simd devices use a kernel
constexpr std::int64_t kSimdChunk =
    8192;  // simd: elements that a work-item loops over, enough to hide its start-up cost

void merge(const Shape& shape, ElementwisePlan& plan) {
    IndexSpace space{shape, {}};
    space.strides.reserve(plan.operands.size());
    for (const Operand& operand : plan.operands) space.strides.push_back(operand.strides);
    space = merge_axes(std::move(space));
    plan.sizes = space.sizes;
    for (std::size_t i = 0; i < plan.operands.size(); ++i) plan.operands[i].strides = space.strides[i];
    // An output of one element must be written, not treated as repeated.
    if (plan.operands[0].strides.back() == 0) plan.operands[0].strides[plan.sizes.rank() - 1] = 1;
}

/// Returns whether sizes, strides and all resulting offsets fit into 32 bits.
bool fits_int(const ElementwisePlan& plan) {
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    return plan.sizes.numel() <= limit && std::ranges::all_of(plan.operands, [&](const Operand& operand) {
               std::int64_t last = 0;
               for (int axis = 0; axis < plan.sizes.rank(); ++axis) {
                   if (operand.strides[axis] > limit) return false;
                   last += (plan.sizes[axis] - 1) * operand.strides[axis];
               }
               return last <= limit;
           });
}

void require_separate_elements(const View& out) {
    for (int axis = 0; axis < out.rank(); ++axis)
        if (out.shape[axis] != 1 && out.strides[axis] == 0)
            throw ShapeError(
                fmt::format("evaluate: expected an output whose elements do not overlap, got shape {} with strides {} "
                            "(write to a clone() of an expanded tensor)",
                            out.shape.str(), out.strides.str()));
}

/// Evaluates an expression that is a single view with a kernel for permuted copies. Returns false if it is another
/// expression or no such kernel applies.
bool copied(const Expression& expression, const View& out) {
    const Node& node = *expression.node();
    if (node.kind != Node::Kind::view) return false;
    require_same_device("evaluate", out, node.view);
    const View from = expanded("elementwise", node.view, out.shape);
    return !may_overlap(from, out) && permuted_copy(from, out);
}

/// @param narrow true for 32-bit indices
Kernel kernel_of(const Steps& steps, const ElementwisePlan& plan, const Device& device, KernelStyle style,
                 bool narrow) {
    const char* form = style == KernelStyle::simd ? "" : narrow ? "int items " : "items ";
    const auto specification = [&] {
        KernelSpec spec = elementwise_specification(steps, plan, device, style);
        if (narrow) spec.defines.set("INDEX_TYPE", "int");
        return spec;
    };
    return kernel_of_structure(form, steps, plan, device, std::ref(specification));
}

/// The index space as rows, and the part of a work-item.
struct RangeConfig {
    std::int64_t rows, columns;
    std::int64_t rows_each, chunk;  ///< rows, and elements of a row
};

RangeConfig range_config_of(const ElementwisePlan& plan, bool simd) {
    const std::int64_t columns = plan.sizes.back();
    return {.rows = plan.sizes.numel() / columns,
            .columns = columns,
            .rows_each = simd ? std::max<std::int64_t>(1, kSimdChunk / columns) : 1,
            .chunk = simd ? std::min(columns, kSimdChunk) : 1};
}

Range range_of(const RangeConfig& config, const Kernel& kernel, bool simd) {
    Range range;
    range.global = {static_cast<std::size_t>(ceil_div(config.columns, config.chunk)),
                    static_cast<std::size_t>(ceil_div(config.rows, config.rows_each)), 1};
    range.local = {1, 1, 1};
    if (simd) return range;
    // Short rows share a work-group, so that few work-items are idle at the end of a row.
    std::size_t group_columns = 1;
    const std::size_t group = std::min(to_size(kSimtGroup), kernel.max_work_group());
    while (group_columns * 2 <= group && group_columns < static_cast<std::size_t>(config.columns)) group_columns *= 2;
    std::size_t group_rows = 1;
    while (group_columns * group_rows * 2 <= group && group_rows < static_cast<std::size_t>(config.rows))
        group_rows *= 2;
    range.local = {group_columns, group_rows, 1};
    const std::size_t rows = to_size(config.rows),
                      rows_down = std::min(round_up(rows, group_rows), group_rows * to_size(kMaxGroupsAlongAxis));
    range.global = {round_up(range.global[0], group_columns), rows_down,
                    rows / rows_down + (rows % rows_down == 0 ? 0 : 1)};
    return range;
}

}  // namespace

View dense_copy(const View& view) {
    View out = View::make(view.device(), view.dtype, view.shape);
    copy(view, out);
    return out;
}

void evaluate(const Expression& expression, const View& out) { evaluate(expression, out, {}); }

void evaluate(const Expression& of, const View& out, std::span<const ExtraOutput> extra_outputs) {
    const Expression over = over_views(of);
    Scratch<6144> scratch;
    Steps steps = steps_of(over, scratch.memory());
    const Expression expression = of_one_real(over, steps, out.dtype);
    if (expression.node() != over.node()) {
        for (const ExtraOutput& extra_output : extra_outputs) evaluate(extra_output.part, extra_output.to);
        extra_outputs = {};
        steps = steps_of(expression, scratch.memory());
    }
    if (expression.dtype() != out.dtype)
        throw TypeError(fmt::format("evaluate: expected an output of type {}, got {}", name_of(expression.dtype()),
                                    name_of(out.dtype)));
    if (out.numel() == 0) return;
    require_separate_elements(out);
    if (copied(expression, out)) return;
    ElementwisePlan plan = plan_of(steps, out.shape, &out, scratch.memory());
    for (const ExtraOutput& extra_output : extra_outputs)
        plan.operands.push_back(
            {.view = extra_output.to, .strides = extra_output.to.strides, .stores = steps.find(extra_output.part)});
    for (std::size_t i = 1; i < plan.operands.size(); ++i) require_same_device("evaluate", out, plan.operands[i].view);
    merge(out.shape, plan);

    const Device device = out.device();
    const KernelStyle style = kernel_style_of(device);
    const bool simd = style == KernelStyle::simd;
    const bool narrow = !simd && fits_int(plan);
    const Kernel kernel = kernel_of(steps, plan, device, style, narrow);
    const RangeConfig config = range_config_of(plan, simd);
    const Range range = range_of(config, kernel, simd);

    const auto layout = layout_of(plan, scratch.memory());
    std::pmr::vector<Argument> arguments(scratch.memory());
    arguments.reserve(6 + 2 * plan.operands.size() + plan.numbers.size());
    if (narrow) {
        const std::pmr::vector<std::int32_t> narrowed(layout.begin(), layout.end(), scratch.memory());
        arguments.emplace_back(RawArgument{narrowed.data(), narrowed.size() * sizeof(std::int32_t)});
    } else {
        arguments.emplace_back(RawArgument{layout.data(), layout.size() * sizeof(std::int64_t)});
    }
    arguments.emplace_back(config.rows);
    arguments.emplace_back(config.columns);
    arguments.emplace_back(config.rows_each);
    arguments.emplace_back(static_cast<std::int32_t>(config.chunk));
    arguments.emplace_back(out.argument());
    append_inputs(plan, arguments);
    append_numbers(plan, arguments);
    const bool shown = profiling();
    const std::string functions = shown ? functions_of(steps) : "";
    const WorkScope work(functions, shown ? work_of(steps, plan, out) : Work{});
    launch(kernel, range, std::span<const Argument>(arguments));
}

View evaluate(const Expression& expression, const Device& device) {
    View out = View::make(device, expression.dtype(), expression.shape());
    evaluate(expression, out);
    return out;
}

void copy(const View& from, const View& to) {
    require_shape("copy", "the source", from, to.shape);
    require_alike("copy", "source", from, "destination", to);
    if (from.numel() == 0 || same_elements(from, to)) return;
    if (from.dense() && to.dense()) {
        if (may_overlap(from, to)) return copy(dense_copy(from), to);
        // A CPU driver copies with one core, a kernel with all.
        if (from.device().kernel_style() == KernelStyle::simd && from.bytes() >= kKernelCopy)
            return evaluate(Expression(from), to);
        const std::size_t unit = size_of(from.dtype);
        declivity::copy(from.buffer, static_cast<std::size_t>(from.offset) * unit, to.buffer,
                        static_cast<std::size_t>(to.offset) * unit, from.bytes());
        return;
    }
    evaluate(Expression(from), to);
}

View dense_copy_if_needed(const View& view) { return view.dense() ? view : dense_copy(view); }

void fill(const View& view, Scalar value, std::string_view function) {
    require_fits(function, value, view.dtype);
    const Number pattern = element(value, view.dtype);
    if (view.dense()) {
        declivity::fill(view.buffer, static_cast<std::size_t>(view.offset) * pattern.size, view.bytes(),
                        std::span(pattern.bytes).first(pattern.size));
        return;
    }
    // Rounded once, not to f32 first.
    const Scalar stored = view.dtype == DType::f16    ? static_cast<float>(float16(value.to_double()))
                          : view.dtype == DType::bf16 ? static_cast<float>(bfloat16(value.to_double()))
                                                      : value;
    evaluate(Expression::constant(stored, view.dtype), view);
}

void apply_epilogue(const Epilogue& epilogue, const View& out) {
    if (epilogue) evaluate(with_result(expression_of(epilogue), out), out);
}

}  // namespace declivity::ops
