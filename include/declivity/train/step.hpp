// Layer 7. Step: interface between a custom training step and its trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <declivity/data/batch.hpp>
#include <declivity/tensor/tensor.hpp>
#include <declivity/train/loss_value.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

/// Passed to a TrainStep.
class DECLIVITY_API Step {
  public:
    virtual ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    /// loss.backward(), guarded: if the loss or a gradient is infinite or NaN, no optimizer of the trainer changes
    /// anything from then on, and training ends with NonFiniteLoss. If the weight of the loss is 0, as for a batch
    /// whose labels are all ignored, its gradients are ignored: optimizers skip their steps until the next backward()
    /// or the end of the step.
    /// @throws ShapeError unless the loss has one element; ValueError in an evaluation, and for a weight below 0
    virtual void backward(const LossValue& loss) = 0;
    /// Reports a metric of this batch with one element, such as a loss: a mean over the batch. The trainer accumulates
    /// it on the device and reports the mean over those batches of the epoch that reported it, weighted by the divisor
    /// of the mean if known (see LossValue), otherwise by the batch size.
    /// @throws ShapeError unless it has one element; ValueError for a name that is empty or has a comma, for more than
    /// 64 names, and for a weight below 0
    virtual void report(std::string_view name, const LossValue& value) = 0;
    /// Number of previous steps of the whole training, including those before a resume; for example, to do something in
    /// every third step.
    [[nodiscard]] virtual std::int64_t number() const = 0;

  protected:
    Step() = default;
};

/// A training step for a batch: computes gradients and steps optimizers. Or an evaluation step, which only reports.
using TrainStep = std::function<void(Step& step, const data::Batch& batch)>;

/// @}

}  // namespace declivity::train
