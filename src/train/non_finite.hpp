// Layer 7, private. Finds the origin of a non-finite loss.
#pragma once

#include "trainer_state.hpp"

namespace declivity::train {

/// Runs the step on the batch again, checking every layer's output, then the gradients, which are removed afterwards.
/// @param label_errors label statistics of that step; zeros if there are none
/// @param last whether this is the last batch of the step; if not, and all is finite, it returns
/// @throws ValueError if the loss rejects a label, otherwise NonFiniteLoss
void throw_loss_not_finite(const Trainer::State& state, const data::Batch& batch, const LabelErrors& label_errors,
                           std::int64_t step, std::int64_t epoch, bool last);

}  // namespace declivity::train
