// Layer 7, private. Weight of a loss: its divisor.
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

#include "functions/loss/loss_divisor.hpp"

namespace declivity::train {

/// Weight of a batch's value in the mean over several batches; a sum is added without it, and divided by the sum of
/// weights.
struct LossWeight {
    Tensor tensor = {};  ///< f32 [], without a graph; undefined: `count`
    double count = 1;
    bool is_sum = false;
    std::optional<std::int64_t> ignore_index = std::nullopt;  ///< labels that the loss ignores

    /// Weighted by the number of examples of a batch.
    static LossWeight of_examples(std::int64_t examples) { return {.count = static_cast<double>(examples)}; }
    /// The weight given by the program. @throws ShapeError, ValueError, DeviceError naming `function`
    static LossWeight of(const LossValue& value, std::string_view function);

    /// The weight as a tensor, f32 [].
    [[nodiscard]] Tensor on(const Device& device) const;
    [[nodiscard]] ops::ClassificationWeight view() const;
};

/// While an instance is alive, it records the losses that this thread computes by functions of the library.
class LossCalls final : public CallObserver {
  public:
    LossCalls() = default;
    ~LossCalls() override = default;
    LossCalls(const LossCalls&) = delete;
    LossCalls& operator=(const LossCalls&) = delete;

    /// Weight of a loss returned by one of these functions; none for other tensors.
    /// @param examples of the batch
    [[nodiscard]] std::optional<LossWeight> weight_of(const Tensor& loss, std::int64_t examples) const;
    /// The same, including combinations of means, such as a multiple or a sum, for which it is the sum of their
    /// weights.
    [[nodiscard]] std::optional<LossWeight> weight_of_combination(const Tensor& loss, std::int64_t examples) const;

    void called(const FunctionCall& call) override;
    void returned(const FunctionCall& call, std::span<const Tensor> results) override;

  private:
    struct Call {
        std::weak_ptr<const void> result = {};  // its value
        LossWeight weight = {};
        bool is_loss = false;  // other than a plain mean()
        bool known_weight = true;
    };
    [[nodiscard]] const Call* find_call(const Tensor& loss) const;

    declivity::detail::LossDivisorScope divisors_;
    const FunctionCall* loss_ = nullptr;  // the outermost call in progress
    std::vector<Call> calls_;
};

}  // namespace declivity::train
