// Layer 5. LossValue: a loss or a figure of a batch, and the weight that it was divided by.
#pragma once

#include <optional>
#include <utility>

#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

/// The result of a loss function. Means of several batches are weighted means: a loss over the tokens that are not
/// ignored, or over class weights or sample weights, counts by these, and not by the number of examples, so that
/// nothing depends on the batch size.
///
/// The weight of a loss that a function of the library computed (cross_entropy, mse_loss, ..., or mean) is known:
/// return the tensor. The same holds for a multiple of one, or one with a term added that is none of them (a penalty);
/// of a sum of several of these losses it is the sum of their weights. Of everything else it is the number of examples,
/// unless it is given here:
///
///     [](const Tensor& output, const data::Batch& batch) -> train::LossValue {
///         const Tensor counted = batch["mask"];
///         return {sum(square(output - batch["y"]) * counted) / sum(counted), sum(counted)};
///     }
///
/// A loss that is a sum (Reduction::sum) is added to that of other batches; its figure is per example.
class LossValue {
  public:
    LossValue() = default;
    LossValue(Tensor loss) : loss_(std::move(loss)) {}  // NOLINT: a tensor is a loss
    /// @param weight one element, at least 0. With a weight of 0 the batch counts for nothing: no step is made for it,
    /// and the loss may be NaN. It stays on the device.
    LossValue(Tensor loss, Tensor weight) : loss_(std::move(loss)), weight_(std::move(weight)) {}
    /// @param weight at least 0; a replay of a captured step repeats it
    LossValue(Tensor loss, double weight) : loss_(std::move(loss)), number_(weight) {}

    [[nodiscard]] const Tensor& loss() const noexcept { return loss_; }
    operator const Tensor&() const noexcept { return loss_; }  // NOLINT
    /// Whether a weight was given.
    [[nodiscard]] bool has_weight() const noexcept { return weight_.defined() || number_.has_value(); }
    /// Undefined where a number or nothing was given.
    [[nodiscard]] const Tensor& weight() const noexcept { return weight_; }
    [[nodiscard]] const std::optional<double>& number() const noexcept { return number_; }

  private:
    Tensor loss_, weight_;
    std::optional<double> number_;
};

}  // namespace declivity::train
