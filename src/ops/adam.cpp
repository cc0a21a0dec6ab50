#include <declivity/ops/adam.hpp>

#include <cmath>

#include "ops/engine/real_arguments.hpp"
#include "step_arguments.hpp"

namespace declivity::ops {

void adam_step(const MultiTensor& tensors, const View& progress, const View& guard, const AdamParameters& parameters) {
    const auto& [beta1, beta2, epsilon, weight_decay, decoupled] = parameters;
    require_step("adam_step", tensors, 4, progress, guard);
    require_decay("adam_step", "beta1", beta1);
    require_decay("adam_step", "beta2", beta2);
    const RealArguments reals(
        tensors.dtype(), {beta1, 1 - beta1, std::log(beta1), beta2, 1 - beta2, std::log(beta2), epsilon, weight_decay});
    const BufferArgument progress_argument = progress.argument(), guard_argument = guard.argument();
    const int decoupled_argument = decoupled ? 1 : 0;
    const Argument further[] = {progress_argument, guard_argument, reals[0], reals[1], reals[2],          reals[3],
                                reals[4],          reals[5],       reals[6], reals[7], decoupled_argument};
    const WorkScope work(
        "adam_step", tensors.work(13, 7));  // reads parameter, gradient and both moments, writes all but the gradient
    tensors.launch({"adam.cl", "adam_step"}, further);
}

}  // namespace declivity::ops
