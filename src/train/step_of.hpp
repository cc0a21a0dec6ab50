// Layer 5, private. What a step of the program's own is handed.
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

/// In a training, in an evaluation, or when a step is called again to find what was not finite in it.
class StepOf final : public Step {
  public:
    enum class Purpose : std::uint8_t { train, evaluate, find };
    /// @param number of the step; that where the trainer stands if none
    StepOf(const Trainer::State& state, Purpose purpose, Sums& sums, std::optional<std::int64_t> number = std::nullopt)
        : state_(state), purpose_(purpose), sums_(sums), number_(number) {}

    /// Before each call, and before each replay of one.
    void begin(std::int64_t examples) {
        examples_ = examples;
        calls_ = nullptr;
        checked_ = may_skip_ = false;
    }
    /// @param calls the losses of this call
    void observe(const LossCalls& calls) { calls_ = &calls; }
    /// After it: the guard counts each step once.
    void end();

    void backward(const LossValue& loss) override;
    void report(std::string_view name, const LossValue& value) override;
    [[nodiscard]] std::int64_t number() const override;
    /// The first loss that was not finite has been seen.
    [[nodiscard]] bool found() const noexcept { return found_; }
    /// The parameter whose gradient was the first that was not finite; empty where all were.
    [[nodiscard]] const std::string& found_gradient() const noexcept { return found_gradient_; }

  private:
    const Trainer::State& state_;
    Purpose purpose_;
    Sums& sums_;
    std::optional<std::int64_t> number_;
    std::int64_t examples_ = 0;
    const LossCalls* calls_ = nullptr;
    bool checked_ = false, may_skip_ = false, found_ = false;
    std::string found_gradient_;
    optim::GradientCheck check_gradients_;
};

/// @throws ValueError, ShapeError unless it has one element
void require_loss(const Tensor& loss, const char* function);

/// Notes in the guard where a loss is not finite, unless its weight is 0.
/// @param skips whether optimizers then skip the step
/// @return whether they may
bool check_loss(const Tensor& loss, const LossWeight& weight, const Tensor& guard, bool skips);

/// The last parameter, as backward() comes to it before the others, that has a gradient with an element that is not
/// finite; empty where there is none. Synchronises.
std::string non_finite_gradient(const Trainer::State& state);

/// Whether all elements are. Waits for the device.
bool is_finite(const Tensor& tensor);

}  // namespace declivity::train
