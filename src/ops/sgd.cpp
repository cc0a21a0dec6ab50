#include <declivity/ops/sgd.hpp>

#include "ops/engine/real_arguments.hpp"
#include "step_arguments.hpp"

namespace declivity::ops {

void sgd_step(const MultiTensor& tensors, const View& progress, const View& guard, const SgdParameters& parameters) {
    require_step("sgd_step", tensors, parameters.momentum != 0 ? 3 : 2, progress, guard);
    const RealArguments reals(tensors.dtype(), {parameters.momentum, parameters.dampening, parameters.weight_decay});
    const BufferArgument progress_argument = progress.argument(), guard_argument = guard.argument();
    const int nesterov = parameters.nesterov ? 1 : 0;
    const Argument further[] = {progress_argument, guard_argument, reals[0], reals[1], reals[2], nesterov};
    const WorkScope work("sgd_step", parameters.momentum != 0 ? tensors.work(6, 5) : tensors.work(4, 3));
    tensors.launch({"sgd.cl", "sgd_step", {{"MOMENTUM", parameters.momentum != 0 ? "1" : "0"}}}, further);
}

}  // namespace declivity::ops
