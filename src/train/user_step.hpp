// Layer 7, private. The Step passed to a user-defined training step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <declivity/train/step.hpp>

#include "loss_weight.hpp"
#include "optim/gradient_check.hpp"
#include "sums.hpp"
#include "trainer_state.hpp"

namespace declivity::train {

/// Used in training, in evaluation, or when a step is repeated to find a non-finite value.
class UserStep final : public Step {
  public:
    enum class Purpose : std::uint8_t { train, evaluate, diagnose };
    /// @param number of the step; the trainer's current one if none
    UserStep(const Trainer::State& state, Purpose purpose, Sums& sums,
             std::optional<std::int64_t> number = std::nullopt)
        : state_(state), purpose_(purpose), sums_(sums), number_(number) {}

    /// Called before each call, and before each replay.
    void begin(std::int64_t examples) {
        examples_ = examples;
        calls_ = nullptr;
        checked_ = may_skip_ = false;
    }
    /// @param calls the losses of this call
    void observe(const LossCalls& calls) { calls_ = &calls; }
    /// Called afterwards: the guard counts each step once.
    void end();

    void backward(const LossValue& loss) override;
    void report(std::string_view name, const LossValue& value) override;
    [[nodiscard]] std::int64_t number() const override;
    /// Returns whether the first non-finite loss has been found.
    [[nodiscard]] bool found_loss() const noexcept { return found_loss_; }
    /// The parameter with the first non-finite gradient; empty if all are finite.
    [[nodiscard]] const std::string& found_gradient() const noexcept { return found_gradient_; }

  private:
    const Trainer::State& state_;
    Purpose purpose_;
    Sums& sums_;
    std::optional<std::int64_t> number_;
    std::int64_t examples_ = 0;
    const LossCalls* calls_ = nullptr;
    bool checked_ = false, may_skip_ = false, found_loss_ = false;
    std::string found_gradient_;
    optim::GradientCheck check_gradients_;
};

/// @throws ValueError, ShapeError unless it has one element
void require_loss(const Tensor& loss, const char* function);

/// Sets the guard if a loss is not finite, unless its weight is 0.
/// @param skips whether optimizers then skip the step
/// @return whether they may skip it
bool check_loss(const Tensor& loss, const LossWeight& weight, const Tensor& guard, bool skips);

/// The last parameter, which backward() reaches first, whose gradient has a non-finite element; empty if there is none.
/// Synchronises.
std::string non_finite_gradient(const Trainer::State& state);

/// Returns whether all elements are finite. Synchronises.
bool is_finite(const Tensor& tensor);

}  // namespace declivity::train
