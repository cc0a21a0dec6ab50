// Layer 5. Step: what a training step of a program's own says to its trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <declivity/data/batch.hpp>
#include <declivity/tensor/tensor.hpp>
#include <declivity/train/loss_value.hpp>

namespace declivity::train {

/// Handed to a TrainStep.
class DECLIVITY_API Step {
  public:
    virtual ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    /// loss.backward(), guarded: where the loss or a gradient is infinite or NaN no optimizer of the trainer changes
    /// anything any more, and the training ends with NonFiniteLoss. Where the weight of the loss is 0, as that of a
    /// batch whose labels are all ignored, its gradients count for nothing: optimizers skip their steps until the next
    /// backward() or the end of the step.
    /// @throws ShapeError unless the loss has one element; ValueError in an evaluation, and for a weight below 0
    virtual void backward(const LossValue& loss) = 0;
    /// A figure of this batch, of one element, such as a loss: a mean over the batch. The trainer adds it up on the
    /// device and reports the mean over those batches of the epoch that reported it, weighted by what the mean was
    /// divided by where that is known (see LossValue), else by the batch's size.
    /// @throws ShapeError unless it has one element; ValueError for a name that is empty or has a comma, for more than
    /// 64 names, and for a weight below 0
    virtual void report(std::string_view name, const LossValue& value) = 0;
    /// Steps of the whole training before this one, a resumed one's included: what to count by, where each third step
    /// does something else, say.
    [[nodiscard]] virtual std::int64_t number() const = 0;

  protected:
    Step() = default;
};

/// A training step over a batch: gradients, and steps of optimizers. Or an evaluation of one, which reports alone.
using TrainStep = std::function<void(Step& step, const data::Batch& batch)>;

}  // namespace declivity::train
