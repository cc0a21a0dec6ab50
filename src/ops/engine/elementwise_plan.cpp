#include "elementwise_plan.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "runtime/environment.hpp"
#include "runtime/per_device.hpp"
#include "ops/support/index_space.hpp"
#include "ops/support/work.hpp"

namespace declivity::ops {

using Node = ExpressionNode;

void append_numbers_of(const Node& node, ElementwisePlan& plan) {
    if (node.kind == Node::Kind::constant) {
        plan.numbers.push_back(node.value);
        plan.number_types.push_back(node.dtype);
    }
    for (const Scalar& parameter : node.parameters) {
        plan.numbers.push_back(parameter);
        plan.number_types.push_back(compute_type(working_type(node)));
    }
}

ElementwisePlan plan_of(const Steps& steps, const Shape& shape, const View* out, Steps::Memory memory) {
    ElementwisePlan plan(memory);
    int inputs = 0;
    for (const int operand : steps.operand) inputs = std::max(inputs, operand + 1);
    plan.operands.reserve(1 + static_cast<std::size_t>(inputs) + kMaxExtraOutputs);
    plan.operands.push_back(out != nullptr ? Operand{*out, out->strides} : Operand{});
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
        const Node& node = *steps.nodes[at];
        switch (node.kind) {
            case Node::Kind::view: {
                if (steps.operand[at] + 1 < static_cast<int>(plan.operands.size())) break;  // computed once
                View view = expanded("elementwise", node.view, shape);
                const bool is_out = out != nullptr && same_elements(view, *out);
                // Elements that another work-item overwrites must be read before.
                if (!is_out && out != nullptr && may_overlap(view, *out))
                    view = expanded("elementwise", dense_copy(node.view), shape);
                plan.operands.push_back({view, view.strides, is_out});
                break;
            }
            case Node::Kind::random: {
                const View numbers = expanded(
                    "elementwise",
                    View{node.view.buffer, node.view.offset, node.view.dtype, node.shape, dense_strides(node.shape)},
                    shape);
                plan.operands.push_back({numbers, numbers.strides, false, &node});
                break;
            }
            case Node::Kind::value:
                break;  // replaced by over_views()
            case Node::Kind::operator_result:
                if (steps.of_rows) break;  // supplied by the kernel
                throw ValueError("evaluate: an expression with operator_result() is valid only as an Epilogue");
            default:
                break;
        }
        append_numbers_of(node, plan);
    }
    if (plan.operands.size() > kMaxInputs + 1)
        throw Unsupported(fmt::format("evaluate: expected an expression of at most {} inputs, got {}", kMaxInputs,
                                      plan.operands.size() - 1));
    return plan;
}

bool merge_rows(const Shape& shape, int inner, ElementwisePlan& plan) {
    Strides of_parts;
    std::int64_t rows = 1;
    for (int axis = 0; axis < inner; ++axis) rows *= shape[axis];
    std::int64_t step = rows;
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (axis < inner && shape[axis] != 0) step /= shape[axis];
        of_parts.push_back(axis < inner ? step : 0);
    }
    IndexSpace space{shape, {of_parts}};
    for (std::size_t i = 1; i < plan.operands.size(); ++i) space.strides.push_back(plan.operands[i].view.strides);
    space = merge_axes(space);
    std::int64_t columns = 1;
    for (int axis = inner; axis < shape.rank(); ++axis) columns *= shape[axis];
    if (space.sizes.back() != columns || space.strides[0].back() != 0) return false;
    plan.sizes = space.sizes;
    for (std::size_t i = 0; i < plan.operands.size(); ++i) plan.operands[i].strides = space.strides[i];
    return true;
}

void append_inputs(const ElementwisePlan& plan, std::pmr::vector<Argument>& arguments) {
    for (std::size_t i = 1; i < plan.operands.size(); ++i) {
        if (plan.operands[i].is_out) continue;
        arguments.emplace_back(plan.operands[i].view.argument());
        if (const Node* random = plan.operands[i].random) arguments.emplace_back(random->random_offset);
    }
}

Expression of_one_real(const Expression& expression, const Steps& steps, DType out) {
    bool doubles = out == DType::f64, floats = false;
    for (const Node* node : steps.nodes) {
        doubles = doubles || node->dtype == DType::f64;
        floats = floats || (node->kind == Node::Kind::random && node->dtype == DType::f32);
    }
    if (!doubles || !floats) return expression;
    return with_leaves(expression, [](const Node& leaf) -> Expression {
        if (leaf.kind != Node::Kind::random || leaf.dtype == DType::f64) return {};
        return evaluate(with_inputs(leaf, {}), leaf.view.device());
    });
}

std::pmr::vector<std::int64_t> layout_of(const ElementwisePlan& plan, Steps::Memory memory) {
    std::pmr::vector<std::int64_t> layout(static_cast<std::size_t>(Dims::kMaxRank) * (1 + plan.operands.size()), 0,
                                          memory);
    for (int axis = 0; axis < plan.sizes.rank(); ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        layout[at] = plan.sizes[axis];
        for (std::size_t i = 0; i < plan.operands.size(); ++i)
            layout[(i + 1) * Dims::kMaxRank + at] = plan.operands[i].strides[axis];
    }
    return layout;
}

Number element(const Scalar& value, DType type) {
    Number out{};
    const auto put = [&](auto converted) {
        std::copy_n(reinterpret_cast<const std::byte*>(&converted), sizeof converted, out.bytes.begin());
        out.size = sizeof converted;
    };
    switch (type) {
        case DType::f32:
            put(value.to<float>());
            break;
        case DType::f64:
            put(value.to<double>());
            break;
        case DType::f16:
            put(float16(value.to_double()));
            break;
        case DType::bf16:
            put(bfloat16(value.to_double()));
            break;
        case DType::boolean:
            put(static_cast<std::uint8_t>(value.to<bool>()));
            break;
        default: {  // the low bytes of an integer, modulo 2^bits
            const std::uint64_t bits = value.kind() == DTypeKind::floating && value.to_double() < 0
                                           ? static_cast<std::uint64_t>(value.to<std::int64_t>())
                                           : value.to<std::uint64_t>();
            put(bits);
            if constexpr (std::endian::native == std::endian::big)
                std::ranges::rotate(out.bytes, out.bytes.begin() + static_cast<std::ptrdiff_t>(8 - size_of(type)));
            out.size = size_of(type);
        }
    }
    return out;
}

namespace {
/// The number as a kernel argument. It keeps its value, except for f16 and bf16, which are computed in f32.
Number number(const Scalar& value, DType type) { return element(value, compute_type(type)); }
}  // namespace

void append_numbers(const ElementwisePlan& plan, std::pmr::vector<Argument>& arguments) {
    for (std::size_t i = 0; i < plan.numbers.size(); ++i) {
        const Number bytes_of_number = number(plan.numbers[i], plan.number_types[i]);
        arguments.emplace_back(
            RawArgument{bytes_of_number.bytes.data(), std::min(bytes_of_number.size, bytes_of_number.bytes.size())});
    }
}

std::string functions_of(const Steps& steps) {
    constexpr std::size_t max_length = 80;
    std::string names;
    for (const Node* node : steps.nodes) {
        const bool gradient = node->kind == Node::Kind::gradient;
        const bool random = node->kind == Node::Kind::random;
        if (!gradient && !random && node->kind != Node::Kind::apply && node->kind != Node::Kind::cast) continue;
        const std::string_view name = random                           ? name_of(node->distribution)
                                      : node->kind == Node::Kind::cast ? "cast"
                                                                       : info(node->function).name;
        names += fmt::format("{}{}{}", names.empty() ? "" : "+", name, gradient ? "'" : "");
        if (names.size() > max_length) return names.substr(0, max_length) + "...";
    }
    return names.empty() ? "copy" : names;
}

Work work_of(const Steps& steps, const ElementwisePlan& plan, const View& out) {
    const auto functions = std::ranges::count_if(steps.nodes, [](const Node* node) {
        return node->kind == Node::Kind::apply || node->kind == Node::Kind::gradient;
    });
    Work work{.flops = static_cast<double>(functions) * static_cast<double>(plan.sizes.numel()),
              .bytes = bytes_of(out),
              .f64 = out.dtype == DType::f64};
    for (std::size_t i = 1; i < plan.operands.size(); ++i)
        if (plan.operands[i].random == nullptr) work.bytes += bytes_of(plan.operands[i].view);
    return work;
}

namespace {

/// DECLIVITY_LOG=kernels: prints a new kernel in readable form.
void log_kernel(const KernelSpec& spec, const ElementwisePlan& plan) {
    if (!declivity::detail::environment().log_kernels.get()) return;
    std::string text = fmt::format("kernel of {} inputs over {} axes, in {}:\n", plan.operands.size() - 1,
                                   plan.sizes.rank(), spec.file);
    for (const char c : spec.defines.text()) {
        text += c;
        if (c == ';' || c == '{' || c == ',') text += "\n       ";
    }
    std::fputs(text.c_str(), stderr);
}

}  // namespace

Kernel kernel_of_structure(std::string_view form, const Steps& steps, const ElementwisePlan& plan, const Device& device,
                           const std::function<KernelSpec()>& specification) {
    declivity::detail::refuse_after_fork("an elementwise kernel");
    struct CachedKernel {
        Kernel kernel;
        std::size_t text;  // hash of the structure that it was compiled with
        std::uint64_t found = 0;
    };
    struct KernelCache {
        std::mutex mutex;
        std::unordered_map<std::string, CachedKernel> kernels;
    };
    auto& [mutex, kernels] = declivity::detail::per_device<KernelCache>(device);
    const auto text_of = [](const KernelSpec& spec) { return std::hash<std::string>()(spec.defines.text()); };
    std::string key;
    key.reserve(form.size() + 96);
    key += form;
    append_structure(steps, plan, key);
    bool check = false;
    std::optional<CachedKernel> cached;
    {
        const std::scoped_lock lock(mutex);
        if (const auto found = kernels.find(key); found != kernels.end()) {
            check = std::has_single_bit(++found->second.found);
            if (!check) return found->second.kernel;
            cached = found->second;
        }
    }
    const KernelSpec spec = specification();
    if (cached && cached->text == text_of(spec)) return cached->kernel;
    // The structure key must cover everything the text depends on. Verified at the first, second, fourth ... lookup of
    // a kernel, so that the amortised cost vanishes.
    if (cached)
        throw DeviceError(
            fmt::format("elementwise: expected one text for kernels of one structure, got another for {} (a "
                        "bug of the library, please report it)",
                        spec.name));
    log_kernel(spec, plan);
    Kernel kernel(device, spec);
    const std::scoped_lock lock(mutex);
    return kernels.emplace(std::move(key), CachedKernel{std::move(kernel), text_of(spec)}).first->second.kernel;
}

}  // namespace declivity::ops
