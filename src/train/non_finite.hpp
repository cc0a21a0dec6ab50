// Floor 5, private. Finding out where a loss stopped being a number.
#pragma once

#include <declivity/train/trainer.hpp>

namespace declivity::train {

/// Runs the model on the batch again, looking at every layer's output. @throws NonFiniteLoss always
[[noreturn]] void throw_loss_not_finite(nn::Module& model, const Loss& loss, const data::Batch& batch, std::int64_t step, std::int64_t epoch);

}  // namespace declivity::train
