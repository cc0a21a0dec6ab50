#include <declivity/ops/finite.hpp>

#include "step_arguments.hpp"

namespace declivity::ops {
namespace {

constexpr Range kOneItem{.global = {1, 1, 1}, .local = {1, 1, 1}};

}  // namespace

void check_finite(const View& losses, const View& guard) {
    require_floating("check_finite", "losses", losses);
    require_dense("check_finite", "losses", losses);
    require_guard("check_finite", guard, losses);
    const Kernel kernel(losses.device(), {"finite.cl", "check_finite", real_defines(losses.dtype)});
    launch(kernel, kOneItem, {losses.numel(), losses.argument(), guard.argument()});
}

void count_step(const View& progress, const View& guard) {
    require_floating("count_step", "progress", progress);
    require_shape("count_step", "progress", progress, {2});
    require_dense("count_step", "progress", progress);
    require_guard("count_step", guard, progress);
    const Kernel kernel(progress.device(), {"finite.cl", "count_step", real_defines(progress.dtype)});
    launch(kernel, kOneItem, {progress.argument(), guard.argument()});
}

}  // namespace declivity::ops
