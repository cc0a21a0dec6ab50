// Layer 2, private. Runs f32 and f64 convolution strategies for f16 and bf16 by upcasting.
#pragma once

#include "conv2d_strategy.hpp"

namespace declivity::ops {

/// Wraps a strategy and repeats its answers: each virtual function of Conv2dStrategy is overridden here. f16 and bf16
/// operands are upcast to temporary f32 copies; the result is rounded once. Since the copies use the memory that 16-bit
/// types should save, the heuristic treats them as profitable only where no strategy that reads 16-bit floats is nearly
/// as fast.
class Conv2dUpcast final : public Conv2dStrategy {
  public:
    /// For f16 and bf16: profitable by the heuristic, or only if measured as the fastest.
    enum class When : bool { measured, profitable };

    constexpr Conv2dUpcast(const Conv2dStrategy& of, When when) : of_(of), when_(when) {}

    [[nodiscard]] std::string_view name() const override { return of_.name(); }
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        return of_.is_applicable(upcast_problem(problem), device);
    }
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device& device) const override {
        return (!is_16bit_float(problem.dtype) || when_ == When::profitable) &&
               of_.is_profitable(upcast_problem(problem), device);
    }
    /// A packed copy would be cached with the temporary operand.
    [[nodiscard]] bool keeps_constants(const Conv2dProblem& problem) const override {
        return !is_16bit_float(problem.dtype) && of_.keeps_constants(problem);
    }
    [[nodiscard]] std::optional<PackedCopy> packed_copy(const Conv2dProblem& problem, const Device& device,
                                                        std::string_view variant) const override {
        return is_16bit_float(problem.dtype) ? std::nullopt : of_.packed_copy(problem, device, variant);
    }
    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        return of_.variants(upcast_problem(problem), device);
    }
    [[nodiscard]] bool worth_measuring(const Conv2dProblem& problem) const override {
        return of_.worth_measuring(upcast_problem(problem));
    }
    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem& problem, const Device& device,
                                      std::string_view variant) const override {
        return of_.fuses_epilogue(upcast_problem(problem), device, variant);
    }
    [[nodiscard]] bool error_is_relative_to_norm() const override { return of_.error_is_relative_to_norm(); }
    [[nodiscard]] bool gives_bias_gradient() const override { return of_.gives_bias_gradient(); }
    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override;

  private:
    /// The f32 problem that replaces a 16-bit one.
    static Conv2dProblem upcast_problem(const Conv2dProblem& problem);

    const Conv2dStrategy& of_;
    When when_;
};

}  // namespace declivity::ops
