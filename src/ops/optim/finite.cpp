#include <declivity/ops/finite.hpp>

#include <algorithm>
#include <bit>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/guard.hpp"

namespace declivity::ops {
namespace {

constexpr Range kOneItem{.global = {1, 1, 1}, .local = {1, 1, 1}};
constexpr std::size_t kCountGroup = 128;

Kernel kernel_of(const Device& device, const char* name, DType dtype) {
    return {device, {"finite.cl", name, real_defines(dtype)}};
}

void require_weight(std::string_view function, const View& weight, const View& guard) {
    if (weight.dtype != DType::f32 || weight.numel() != 1)
        throw TypeError(fmt::format("{}: expected a weight of one f32, got {} {}", function, name_of(weight.dtype),
                                    weight.shape.str()));
    require_same_device(function, weight, guard);
}

/// The unsigned integer type of a floating-point type's width, and its exponent bits, which are all set in infinities
/// and NaN.
struct FloatBits {
    const char *word, *exponent;
};
FloatBits bits_of(DType dtype) {
    if (dtype == DType::f64) return {"ulong", "0x7ff0000000000000UL"};
    if (dtype == DType::f32) return {"uint", "0x7f800000u"};
    return {"ushort", dtype == DType::f16 ? "0x7c00" : "0x7f80"};
}

}  // namespace

void check_finite(const View& losses, const View& guard) {
    require_floating("check_finite", "losses", losses);
    require_dense("check_finite", "losses", losses);
    require_guard("check_finite", guard, losses);
    launch(kernel_of(losses.device(), "check_finite", losses.dtype), kOneItem,
           {losses.numel(), losses.argument(), guard.argument()});
}

void check_finite(const View& loss, const View& weight, const View& guard, bool skips) {
    require_floating("check_finite", "the loss", loss);
    if (loss.numel() != 1)
        throw ShapeError(fmt::format("check_finite: expected a loss of one element, got {}", loss.shape.str()));
    require_guard("check_finite", guard, loss);
    require_weight("check_finite", weight, guard);
    launch(kernel_of(loss.device(), "check_weighted", loss.dtype), kOneItem,
           {loss.argument(), weight.argument(), guard.argument(), static_cast<std::int32_t>(skips)});
}

void check_finite(const MultiTensor& tensors, const View& guard) {
    const FloatBits bits = bits_of(tensors.dtype());
    const Argument further[] = {guard.argument()};
    const WorkScope work("check_finite", tensors.work(1, 1));
    tensors.launch(
        [&](std::size_t items) {
            Defines defines;
            defines.set("REAL", bits.word).set("EXPONENT", bits.exponent).set("ROLES", "1");
            defines.set("GROUP", static_cast<std::int64_t>(items));
            return Kernel(tensors.device(), {"guarded.cl", "check_tensors", defines});
        },
        further);
}

void skip_weightless(const View& weight, const View& guard) {
    require_guard("skip_weightless", guard, weight);
    require_weight("skip_weightless", weight, guard);
    launch(kernel_of(guard.device(), "skip_weightless", DType::f32), kOneItem, {weight.argument(), guard.argument()});
}

void end_skip(const View& guard) {
    require_guard("end_skip", guard, guard);
    launch(kernel_of(guard.device(), "end_skip", DType::f32), kOneItem, {guard.argument()});
}

void save_unless_noted(const MultiTensor& tensors, const View& guard) {
    const FloatBits bits = bits_of(tensors.dtype());
    const Argument further[] = {guard.argument()};
    const WorkScope work("save_unless_noted", tensors.work(0, 2));
    tensors.launch(
        [&](std::size_t items) {
            Defines defines;
            defines.set("REAL", bits.word).set("ROLES", "2").set("GROUP", static_cast<std::int64_t>(items));
            return Kernel(tensors.device(), {"guarded.cl", "save_tensors", defines});
        },
        further);
}

void count_step(const View& steps, const View& tensors, const View& guard) {
    require_floating("count_step", "steps", steps);
    require_dense("count_step", "steps", steps);
    require_dense("count_step", "tensors", tensors);
    if (tensors.dtype != DType::i64)
        throw TypeError(fmt::format("count_step: expected tensors of i64, got {}", name_of(tensors.dtype)));
    require_guard("count_step", guard, steps);
    require_same_device("count_step", steps, tensors);
    const Kernel kernel = kernel_of(steps.device(), "count_step", steps.dtype);
    // simd: one work-item loops over some hundreds of numbers; simt: the work-items of one work-group.
    const std::size_t max_items = steps.device().kernel_style() == KernelStyle::simd ? 1 : kCountGroup;
    const std::size_t items = std::min(max_items, std::bit_floor(std::max<std::size_t>(1, kernel.max_work_group())));
    launch(kernel, {.global = {items, 1, 1}, .local = {items, 1, 1}},
           {tensors.numel(), tensors.argument(), steps.argument(), guard.argument()});
}

}  // namespace declivity::ops
