// Layer 5, private. The weight of a loss: what it was divided by.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <declivity/ops/classification.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/train/step.hpp>

#include "tensor/loss_divisor.hpp"

namespace declivity::train {

/// A figure of a batch counts `weight` times in a mean of several batches; a sum is added as it is, and its mean is
/// over the weights.
struct LossWeight {
    Tensor tensor = {};  ///< f32 [], without a graph; undefined: `count`
    double count = 1;
    bool is_sum = false;
    std::optional<std::int64_t> ignore_index = std::nullopt;  ///< labels that the loss does not count

    /// By the examples of a batch.
    static LossWeight of_examples(std::int64_t examples) { return {.count = static_cast<double>(examples)}; }
    /// That which the program gives. @throws ShapeError, ValueError, DeviceError naming `function`
    static LossWeight of(const LossValue& value, std::string_view function);

    /// A tensor, f32 [], also of a number.
    [[nodiscard]] Tensor on(const Device& device) const;
    [[nodiscard]] ops::ClassificationWeight view() const;
};

/// While one lives, it knows the losses that this thread computed by functions of the library.
class LossCalls final : public CallObserver {
  public:
    LossCalls() = default;
    ~LossCalls() override = default;
    LossCalls(const LossCalls&) = delete;
    LossCalls& operator=(const LossCalls&) = delete;

    /// The weight of a loss that one of these functions gave; none where it is something else.
    /// @param examples of the batch
    [[nodiscard]] std::optional<LossWeight> weight_of(const Tensor& loss, std::int64_t examples) const;
    /// The same; of a loss that was made from means, such as a multiple or a sum of them, the sum of their weights.
    [[nodiscard]] std::optional<LossWeight> weight_of_combination(const Tensor& loss, std::int64_t examples) const;

    void called(const FunctionCall& call) override;
    void returned(const FunctionCall& call, std::span<const Tensor> results) override;

  private:
    struct Call {
        std::weak_ptr<const void> result = {};  // its value
        LossWeight weight = {};
        bool is_loss = false;  // not a plain mean()
        bool known = true;     // the weight
    };
    [[nodiscard]] const Call* found(const Tensor& loss) const;

    declivity::detail::LossDivisorScope divisors_;
    const FunctionCall* loss_ = nullptr;  // the outermost one under way
    std::vector<Call> calls_;
};

}  // namespace declivity::train
