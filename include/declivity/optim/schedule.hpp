// Layer 6. Learning rate schedules.
#pragma once

#include <cstdint>
#include <functional>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// Maps the number of steps or epochs taken so far (0 before the first) to a factor of the initial learning rate.
using Schedule = std::function<double(std::int64_t)>;

/// factor^(t / every), with integer division: multiplied by `factor` after each `every`.
DECLIVITY_API Schedule step_decay(std::int64_t every, double factor = 0.1);
/// Cosine annealing from 1 to `floor` over `total` (Loshchilov, Hutter 2017, without restarts); `floor` after that.
DECLIVITY_API Schedule cosine(std::int64_t total, double floor = 0);
/// Linear warm-up from 1 / warm_up at t = 0 to 1 at t = warm_up - 1, then `after`, with its t starting at 0.
DECLIVITY_API Schedule linear_warm_up(std::int64_t warm_up, Schedule after = {});

/// Sets the learning rate of every group to its initial rate times schedule(t).
DECLIVITY_API void apply(const Schedule& schedule, std::int64_t t, Optimizer& optimizer);

}  // namespace declivity::optim
