// Floor 5, private. What a step of the program's own is handed.
#pragma once

#include <optional>
#include <string>

#include <declivity/train/step.hpp>

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

    /// Before each call.
    void begin(std::int64_t examples) {
        examples_ = examples;
        checked_ = false;
    }
    /// After it: the guard counts each step once.
    void end();

    void backward(const Tensor& loss) override;
    void report(std::string_view name, const Tensor& value) override;
    [[nodiscard]] std::int64_t number() const override;
    /// The first loss that was not finite has been seen.
    [[nodiscard]] bool found() const noexcept { return found_; }

  private:
    const Trainer::State& state_;
    Purpose purpose_;
    Sums& sums_;
    std::optional<std::int64_t> number_;
    std::int64_t examples_ = 0;
    bool checked_ = false, found_ = false;
};

/// @throws ValueError, ShapeError unless it has one element
void require_loss(const Tensor& loss, const char* function);

/// Notes in the guard where a loss is not finite.
void check_loss(const Tensor& loss, const Tensor& guard);

/// Whether all elements are. Waits for the device.
bool is_finite(const Tensor& tensor);

}  // namespace declivity::train
