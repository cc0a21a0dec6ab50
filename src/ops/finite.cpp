#include <declivity/ops/finite.hpp>

#include <algorithm>
#include <bit>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "step_arguments.hpp"

namespace declivity::ops {
namespace {

constexpr Range kOneItem{.global = {1, 1, 1}, .local = {1, 1, 1}};
constexpr std::size_t kCountGroup = 128;

}  // namespace

void check_finite(const View& losses, const View& guard) {
    require_floating("check_finite", "losses", losses);
    require_dense("check_finite", "losses", losses);
    require_guard("check_finite", guard, losses);
    const Kernel kernel(losses.device(), {"finite.cl", "check_finite", real_defines(losses.dtype)});
    launch(kernel, kOneItem, {losses.numel(), losses.argument(), guard.argument()});
}

void count_step(const View& steps, const View& tensors, const View& guard) {
    require_floating("count_step", "steps", steps);
    require_dense("count_step", "steps", steps);
    require_dense("count_step", "tensors", tensors);
    if (tensors.dtype != DType::i64)
        throw TypeError(fmt::format("count_step: expected tensors of i64, got {}", name_of(tensors.dtype)));
    require_guard("count_step", guard, steps);
    require_same_device("count_step", steps, tensors);
    const Kernel kernel(steps.device(), {"finite.cl", "count_step", real_defines(steps.dtype)});
    // A CPU takes a loop over some hundreds of numbers as one work-item, others as the items of one work-group.
    const std::size_t most = steps.device().family() == Family::cpu_like ? 1 : kCountGroup;
    const std::size_t items = std::min(most, std::bit_floor(std::max<std::size_t>(1, kernel.max_work_group())));
    launch(kernel, {.global = {items, 1, 1}, .local = {items, 1, 1}},
           {tensors.numel(), tensors.argument(), steps.argument(), guard.argument()});
}

}  // namespace declivity::ops
