// Launches kernels made from expressions (elementwise_source.cpp): how the index space is cut.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <declivity/ops/expression.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <fmt/format.h>

#include "elementwise_source.hpp"
#include "index_space.hpp"
#include "permute.hpp"

namespace declivity::ops {
namespace {

using Node = Expression::Node;

constexpr std::size_t kKernelCopy = 1 << 20;  // bytes of a copy that are worth a kernel on CPU-like devices
constexpr std::int64_t kCpuChunk = 8192;  // elements a work-item loops over on CPU-like devices: long enough to hide its start
constexpr std::size_t kGpuGroup = 256;
constexpr std::int64_t kMostGroups = 65535;  // in the second dimension: more, and some GPUs refuse the launch

View dense_copy(const View& view) {
    View out = View::make(view.device(), view.dtype, view.shape);
    copy(view, out);
    return out;
}

/// Operands and numbers.
Plan plan_of(const Steps& steps, const View& out) {
    Plan plan;
    plan.operands.push_back({out, out.strides});
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
        const Node& node = *steps.nodes[at];
        switch (node.kind) {
            case Node::Kind::view: {
                if (steps.operand[at] + 1 < static_cast<int>(plan.operands.size())) break;  // once is enough
                View view = expanded("elementwise", node.view, out.shape);
                const bool is_out = same_elements(view, out);
                // Elements that another work-item overwrites must be read before.
                if (!is_out && may_overlap(view, out)) view = expanded("elementwise", dense_copy(node.view), out.shape);
                plan.operands.push_back({view, view.strides, is_out});
                break;
            }
            case Node::Kind::value: break;  // over_views() left none
            case Node::Kind::operator_result:
                throw ValueError("evaluate: an expression with operator_result() serves only as an Epilogue");
            case Node::Kind::constant:
                plan.numbers.push_back(node.value);
                plan.number_types.push_back(node.dtype);
                break;
            default:
                for (const double parameter : node.parameters) {
                    plan.numbers.push_back(parameter);
                    plan.number_types.push_back(compute_type(working_type(node)));
                }
        }
    }
    return plan;
}

void merge(const Shape& shape, Plan& plan) {
    IndexSpace space{shape, {}};
    for (const Operand& operand : plan.operands) space.strides.push_back(operand.strides);
    space = merge_axes(space);
    plan.sizes = space.sizes;
    for (std::size_t i = 0; i < plan.operands.size(); ++i) plan.operands[i].strides = space.strides[i];
    // An output of one element still is written, not repeated.
    if (plan.operands[0].strides.back() == 0) plan.operands[0].strides[plan.sizes.rank() - 1] = 1;
}

/// DECLIVITY_LOG=kernels: says what was made, to be read by people.
void log_kernel(const KernelSpec& spec, const Plan& plan) {
    const char* wanted = std::getenv("DECLIVITY_LOG");
    if (wanted == nullptr || std::string_view(wanted).find("kernels") == std::string_view::npos) return;
    std::string text = fmt::format("kernel of {} inputs over {} axes, in {}:\n", plan.operands.size() - 1, plan.sizes.rank(), spec.file);
    for (const char c : spec.defines.text()) {
        text += c;
        if (c == ';' || c == '{' || c == ',') text += "\n       ";
    }
    std::fputs(text.c_str(), stderr);
}

/// Kernels by structure: text is generated once, later calls find the kernel by a short key.
Kernel kernel_for(const Steps& steps, const Plan& plan, const Device& device) {
    declivity::detail::refuse_after_fork("an elementwise kernel");
    static auto* mutex = new std::mutex;
    static auto* kernels = new std::unordered_map<std::string, Kernel>;
    const auto* address = &device.state();
    std::string key(reinterpret_cast<const char*>(&address), sizeof address);
    key += structure_of(steps, plan);
    {
        const std::scoped_lock lock(*mutex);
        if (const auto found = kernels->find(key); found != kernels->end()) return found->second;
    }
    const KernelSpec specification = elementwise_specification(steps, plan, device);
    log_kernel(specification, plan);
    Kernel kernel(device, specification);
    const std::scoped_lock lock(*mutex);
    return kernels->emplace(std::move(key), std::move(kernel)).first->second;
}

// ---- launch

/// As the struct Layout of the kernel: sizes, then strides of each operand.
std::vector<std::int64_t> layout_of(const Plan& plan) {
    std::vector<std::int64_t> layout(static_cast<std::size_t>(Dims::kMaxRank) * (1 + plan.operands.size()), 0);
    for (int axis = 0; axis < plan.sizes.rank(); ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        layout[at] = plan.sizes[axis];
        for (std::size_t i = 0; i < plan.operands.size(); ++i)
            layout[(i + 1) * Dims::kMaxRank + at] = plan.operands[i].strides[axis];
    }
    return layout;
}

struct Number {
    alignas(8) std::array<std::byte, 8> bytes;
    std::size_t size;
};

/// As it lies in memory. @param value fits the type, see require_fits
Number element(double value, DType type) {
    Number out{};
    const auto put = [&](auto converted) {
        std::copy_n(reinterpret_cast<const std::byte*>(&converted), sizeof converted, out.bytes.begin());
        out.size = sizeof converted;
    };
    switch (type) {
        case DType::f32: put(static_cast<float>(value)); break;
        case DType::f64: put(value); break;
        case DType::i8: put(static_cast<std::int8_t>(value)); break;
        case DType::u8: put(static_cast<std::uint8_t>(value)); break;
        case DType::boolean: put(static_cast<std::uint8_t>(value != 0)); break;
        case DType::i32: put(static_cast<std::int32_t>(value)); break;
        case DType::i64: put(static_cast<std::int64_t>(value)); break;
        case DType::f16: put(float16(value)); break;
        case DType::bf16: put(bfloat16(value)); break;
    }
    return out;
}

/// The same number as a kernel's argument.
Number number(double value, DType type) {
    if (type == DType::f16) return element(float16(value), DType::f32);
    if (type == DType::bf16) return element(bfloat16(value), DType::f32);
    return element(value, type);
}

}  // namespace

void evaluate(const Expression& of, const View& out) {
    const Expression expression = over_views(of);
    if (expression.dtype() != out.dtype)
        throw TypeError(fmt::format("evaluate: wants an output of type {}, got {}", name_of(expression.dtype()), name_of(out.dtype)));
    if (out.numel() == 0) return;
    for (int axis = 0; axis < out.rank(); ++axis)
        if (out.shape[axis] != 1 && out.strides[axis] == 0)
            throw ShapeError(fmt::format("evaluate: wants an output each of whose elements lies in one place, got shape {} with strides {} "
                                         "(write to a clone() of an expanded tensor)", out.shape.str(), out.strides.str()));
    if (const Node& node = *expression.node(); node.kind == Node::Kind::view) {
        require_same_device("evaluate", out, node.view);
        if (const View from = expanded("elementwise", node.view, out.shape); !may_overlap(from, out) && permuted_copy(from, out)) return;
    }
    const Steps steps = steps_of(expression);
    Plan plan = plan_of(steps, out);
    if (plan.operands.size() > kMostInputs + 1)
        throw Unsupported(fmt::format("evaluate: wants an expression of at most {} inputs, got {}", kMostInputs, plan.operands.size() - 1));
    for (std::size_t i = 1; i < plan.operands.size(); ++i) require_same_device("evaluate", out, plan.operands[i].view);
    merge(out.shape, plan);

    const Device device = out.device();
    const Kernel kernel = kernel_for(steps, plan, device);
    const std::int64_t columns = plan.sizes.back();
    const std::int64_t rows = plan.sizes.numel() / columns;
    const bool cpu = device.family() == Family::cpu_like;
    const std::int64_t chunk = cpu ? std::min(columns, kCpuChunk) : 1;
    std::int64_t rows_each = cpu ? std::max<std::int64_t>(1, kCpuChunk / columns) : 1;
    Range range;
    range.global = {static_cast<std::size_t>(ceil_div(columns, chunk)), static_cast<std::size_t>(ceil_div(rows, rows_each)), 1};
    range.local = {1, 1, 1};
    if (!cpu) {
        // Short rows share a group, so that few work-items idle behind the end of a row.
        std::size_t wide = 1;
        const std::size_t group = std::min(kGpuGroup, kernel.max_work_group());
        while (wide * 2 <= group && wide < static_cast<std::size_t>(columns)) wide *= 2;
        std::size_t tall = 1;
        while (wide * tall * 2 <= group && tall < static_cast<std::size_t>(rows)) tall *= 2;
        range.local = {wide, tall, 1};
        rows_each = ceil_div(rows, static_cast<std::int64_t>(tall) * kMostGroups);
        range.global = {round_up(range.global[0], wide), round_up(static_cast<std::size_t>(ceil_div(rows, rows_each)), tall), 1};
    }
    const auto layout = layout_of(plan);
    const auto chunk_argument = static_cast<std::int32_t>(chunk);
    std::vector<BufferArgument> buffers;
    for (const Operand& operand : plan.operands) buffers.push_back({&operand.view.buffer, operand.view.offset, size_of(operand.view.dtype)});
    std::vector<Number> numbers;
    for (std::size_t i = 0; i < plan.numbers.size(); ++i) numbers.push_back(number(plan.numbers[i], plan.number_types[i]));

    std::vector<Argument> arguments{RawArgument{layout.data(), layout.size() * sizeof(std::int64_t)}, rows, columns, rows_each,
                                    chunk_argument, buffers[0]};
    for (std::size_t i = 1; i < buffers.size(); ++i)
        if (!plan.operands[i].is_out) arguments.emplace_back(buffers[i]);
    for (const Number& one : numbers) arguments.emplace_back(RawArgument{one.bytes.data(), one.size});
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
        // A CPU driver copies by one core, a kernel by all.
        if (from.device().family() == Family::cpu_like && from.bytes() >= kKernelCopy) return evaluate(Expression(from), to);
        const std::size_t unit = size_of(from.dtype);
        declivity::copy(from.buffer, static_cast<std::size_t>(from.offset) * unit, to.buffer, static_cast<std::size_t>(to.offset) * unit, from.bytes());
        return;
    }
    evaluate(Expression(from), to);
}

View dense_copy_if_needed(const View& view) {
    return view.dense() ? view : dense_copy(view);
}

void fill(const View& view, double value) {
    require_fits("fill", value, view.dtype);
    const Number pattern = element(value, view.dtype);
    if (view.dense()) {
        declivity::fill(view.buffer, static_cast<std::size_t>(view.offset) * pattern.size, view.bytes(), std::span(pattern.bytes).first(pattern.size));
        return;
    }
    evaluate(Expression::constant(value, view.dtype), view);
}

void apply_epilogue(const Epilogue& epilogue, const View& out) {
    if (epilogue.tail) evaluate(with_result(epilogue.tail, out), out);
}

}  // namespace declivity::ops
