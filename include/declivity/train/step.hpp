// Floor 5. Step: what a training step of a program's own says to its trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <declivity/data/batch.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

/// Handed to a TrainStep.
class DECLIVITY_API Step {
  public:
    virtual ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    /// loss.backward(), guarded: where the loss is infinite or NaN no optimizer of the trainer changes anything any
    /// more, and the training ends with NonFiniteLoss.
    /// @throws ShapeError unless the loss has one element; ValueError in an evaluation
    virtual void backward(const Tensor& loss) = 0;
    /// A figure of this batch, of one element, such as a loss: a mean over the batch. The trainer adds it up on the
    /// device, weighted by the batch's size, and reports the mean over those batches of the epoch that reported it.
    /// @throws ShapeError unless it has one element; ValueError for a name that is empty or has a comma, and for more
    /// than 64 names
    virtual void report(std::string_view name, const Tensor& value) = 0;
    /// Steps of the whole training before this one, a resumed one's included: what to count by, where each third step
    /// does something else, say.
    [[nodiscard]] virtual std::int64_t number() const = 0;

  protected:
    Step() = default;
};

/// A training step over a batch: gradients, and steps of optimizers. Or an evaluation of one, which reports alone.
using TrainStep = std::function<void(Step& step, const data::Batch& batch)>;

}  // namespace declivity::train
