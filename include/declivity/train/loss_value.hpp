// Layer 7. LossValue: a loss or metric of a batch, with its weight, the divisor of the mean.
#pragma once

#include <optional>
#include <utility>

#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

/// Result of a loss function. Averages over several batches are weighted: a loss over the tokens that are not ignored,
/// or with class weights or sample weights, is weighted by these instead of the number of examples, so that the result
/// does not depend on the batch size.
///
/// The weight of a loss computed by a library function (cross_entropy, mse_loss, ..., or mean) is derived
/// automatically: return the tensor. The same holds for a multiple of such a loss, or one plus a term that is not such
/// a loss (a penalty); for a sum of several such losses it is the sum of their weights. For any other loss it is the
/// number of examples, unless it is given here:
///
///     [](const Tensor& output, const data::Batch& batch) -> train::LossValue {
///         const Tensor counted = batch["mask"];
///         return {sum(square(output - batch["y"]) * counted) / sum(counted), sum(counted)};
///     }
///
/// A loss that is a sum (Reduction::sum) is added to that of other batches; its metric is per example.
class LossValue {
  public:
    LossValue() = default;
    LossValue(Tensor loss) : loss_(std::move(loss)) {}  // NOLINT: a tensor is a loss
    /// @param weight one element, at least 0; stays on the device. With a weight of 0 the batch is ignored: no step is
    /// made for it, and the loss may be NaN.
    LossValue(Tensor loss, Tensor weight) : loss_(std::move(loss)), weight_(std::move(weight)) {}
    /// @param weight at least 0; constant in replays of a captured step
    LossValue(Tensor loss, double weight) : loss_(std::move(loss)), number_(weight) {}

    [[nodiscard]] const Tensor& loss() const noexcept { return loss_; }
    operator const Tensor&() const noexcept { return loss_; }  // NOLINT
    /// True if a weight was given.
    [[nodiscard]] bool has_weight() const noexcept { return weight_.defined() || number_.has_value(); }
    /// Undefined if the weight is a number or was not given.
    [[nodiscard]] const Tensor& weight() const noexcept { return weight_; }
    [[nodiscard]] const std::optional<double>& number() const noexcept { return number_; }

  private:
    Tensor loss_, weight_;
    std::optional<double> number_;
};

/// @}

}  // namespace declivity::train
