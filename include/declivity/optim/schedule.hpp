// Layer 4. Learning rates that change over time.
#pragma once

#include <cstdint>
#include <functional>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// A factor for the initial learning rate, from the number of steps or epochs taken so far (0 before the first).
using Schedule = std::function<double(std::int64_t)>;

/// factor^(t / every): multiplied by `factor` after each `every`.
DECLIVITY_API Schedule step_decay(std::int64_t every, double factor = 0.1);
/// From 1 to `floor` along half a cosine over `total` (Loshchilov, Hutter 2017, without restarts); `floor` after it.
DECLIVITY_API Schedule cosine(std::int64_t total, double floor = 0);
/// Rises linearly from 1 / warm_up at t = 0 to 1 at t = warm_up - 1, then `after`, counted from its own 0.
DECLIVITY_API Schedule linear_warm_up(std::int64_t warm_up, Schedule after = {});

/// Sets every group to its initial rate times schedule(t).
DECLIVITY_API void apply(const Schedule& schedule, std::int64_t t, Optimizer& optimizer);

}  // namespace declivity::optim
