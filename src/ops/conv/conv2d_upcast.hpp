// Layer 2, private. Strategies of convolutions that read f32 and f64 alone, for f16 and bf16, too.
#pragma once

#include "conv2d_strategy.hpp"

namespace declivity::ops {

/// A strategy, and for halves the same on copies in f32 that live for its launches; the result is rounded once. Such
/// copies take the memory that halves are to save, so by rule of thumb they pay only where nothing that reads halves
/// comes near.
class Conv2dUpcast final : public Conv2dStrategy {
  public:
    /// Of halves: whether it may serve by rule of thumb, or only where it was measured to be the fastest.
    enum class When : bool { measured, profitable };

    constexpr Conv2dUpcast(const Conv2dStrategy& of, When when) : of_(of), when_(when) {}

    [[nodiscard]] std::string_view name() const override { return of_.name(); }
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        return of_.is_applicable(wide(problem), device);
    }
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device& device) const override {
        return (!is_16bit_float(problem.dtype) || when_ == When::profitable) &&
               of_.is_profitable(wide(problem), device);
    }
    /// What it made of a copy would be kept with that.
    [[nodiscard]] bool keeps_constants(const Conv2dProblem& problem) const override {
        return !is_16bit_float(problem.dtype) && of_.keeps_constants(problem);
    }
    [[nodiscard]] std::optional<PackedCopy> packed_copy(const Conv2dProblem& problem, const Device& device,
                                                        std::string_view variant) const override {
        return is_16bit_float(problem.dtype) ? std::nullopt : of_.packed_copy(problem, device, variant);
    }
    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        return of_.variants(wide(problem), device);
    }
    [[nodiscard]] bool worth_measuring(const Conv2dProblem& problem) const override {
        return of_.worth_measuring(wide(problem));
    }
    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem& problem, const Device& device,
                                      std::string_view variant) const override {
        return of_.fuses_epilogue(wide(problem), device, variant);
    }
    [[nodiscard]] bool gives_bias_gradient() const override { return of_.gives_bias_gradient(); }
    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override;

  private:
    /// What the strategy is asked in place of a problem of halves.
    static Conv2dProblem wide(const Conv2dProblem& problem);

    const Conv2dStrategy& of_;
    When when_;
};

}  // namespace declivity::ops
