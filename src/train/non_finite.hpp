// Layer 5, private. Finding out where a loss stopped being a number.
#pragma once

#include "trainer_state.hpp"

namespace declivity::train {

/// Runs the step on the batch again, looking at every layer's output, then at the gradients. It leaves none.
/// @param noted of the labels of that step; zeros when none was
/// @param last whether no other batch of the step is left; if not, and all is finite, it returns
/// @throws ValueError when it was a label that the loss refuses, otherwise NonFiniteLoss
void throw_loss_not_finite(const Trainer::State& state, const data::Batch& batch, const NotedLabels& noted,
                           std::int64_t step, std::int64_t epoch, bool last);

}  // namespace declivity::train
