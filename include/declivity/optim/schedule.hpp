// Layer 6. Learning rate schedules.
#pragma once

#include <cstdint>
#include <functional>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

/// Maps a count t (0 before the first) to a factor of the initial learning rate. The caller of apply() decides what is
/// counted: optimizer steps or epochs, as train::LearningRate::Unit does; periods and totals below are in the same
/// unit.
using Schedule = std::function<double(std::int64_t)>;

/// factor^(t / every), with integer division: multiplied by `factor` after each `every` (at least 1) steps or epochs.
/// @throws ValueError for an `every` below 1
DECLIVITY_API Schedule step_decay(std::int64_t every, double factor = 0.1);
/// Cosine annealing from 1 at t = 0 to `min_factor` from t = total on, for a total of at least 1 step or epoch:
/// min_factor + (1 - min_factor) (1 + cos(pi t / total)) / 2 (Loshchilov, Hutter 2017, without restarts).
/// @throws ValueError for a total below 1
DECLIVITY_API Schedule cosine(std::int64_t total, double min_factor = 0);
/// Linear warm-up (t + 1) / warm_up up to 1 at t = warm_up - 1, for a warm_up of at least 1 step or epoch; then
/// `after`, with its t starting at 0, or 1 without it.
/// @throws ValueError for a warm_up below 1
DECLIVITY_API Schedule linear_warm_up(std::int64_t warm_up, Schedule after = {});

/// Sets the learning rate of every group to its initial rate times schedule(t).
/// @throws ValueError for an empty schedule, and a negative or infinite rate
DECLIVITY_API void apply(const Schedule& schedule, std::int64_t t, Optimizer& optimizer);

/// @}

}  // namespace declivity::optim
