// Layer 2, private. The strategies of convolutions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/conv2d.hpp>
#include <declivity/runtime/device.hpp>

#include "ops/engine/partial_sums.hpp"
#include "ops/engine/epilogue.hpp"
#include "ops/support/problem_fields.hpp"
#include "ops/support/strategy.hpp"

namespace declivity::ops {

enum class Conv2dDirection : std::uint8_t { forward, backward_input, backward_weights };

/// A convolution problem; N >= 1. Pairs are vertical, horizontal.
struct Conv2dProblem {
    Conv2dDirection direction = Conv2dDirection::forward;
    DType dtype = DType::f32;
    KernelStyle style = KernelStyle::simd;
    std::int64_t images = 1;                 ///< N
    std::int64_t channels = 1, filters = 1;  ///< C, O
    std::int64_t groups = 1;
    std::array<std::int64_t, 2> input{1, 1};   ///< H, W
    std::array<std::int64_t, 2> filter{1, 1};  ///< R, S
    std::array<std::int64_t, 2> output{1, 1};  ///< P, Q
    std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
    bool constant_weight = false;  ///< of forward: packed copies of it may be cached
    bool winograd = true;          ///< allows Winograd's transforms, which round more (DECLIVITY_WINOGRAD)

    [[nodiscard]] std::int64_t channels_per_group() const { return channels / groups; }
    [[nodiscard]] std::int64_t filters_per_group() const { return filters / groups; }
    [[nodiscard]] std::int64_t taps() const { return filter[0] * filter[1]; }
    [[nodiscard]] Shape output_shape() const { return {images, filters, output[0], output[1]}; }
    [[nodiscard]] Conv2dProblem with_constants(bool constant) const {
        Conv2dProblem problem = *this;
        problem.constant_weight = constant && direction == Conv2dDirection::forward;
        return problem;
    }
    friend bool operator==(const Conv2dProblem&, const Conv2dProblem&) = default;
    /// See problem_fields.hpp. With another member this does not compile until it is listed.
    template <class Visit>
    friend void visit_fields(const Conv2dProblem& problem, Visit&& visit) {
        const auto& [direction, dtype, style, images, channels, filters, groups, input, filter, output, stride, padding,
                     dilation, constant_weight, winograd] = problem;
        visit("direction", direction, KeyPart::none);  // the key begins with it
        visit("", dtype, KeyPart::value);
        visit("", style, KeyPart::value);
        visit("N", images, KeyPart::bucket);
        visit("C", channels, KeyPart::bucket);
        visit("H", input[0], KeyPart::bucket);
        visit("W", input[1], KeyPart::bucket);
        visit("K", filters, KeyPart::bucket);
        visit("R", filter[0], KeyPart::value);
        visit("S", filter[1], KeyPart::value);
        visit("output", output, KeyPart::none);  // follows from the others
        visit("stride", stride, KeyPart::value);
        visit("padding", padding, KeyPart::value);
        visit("dilation", dilation, KeyPart::value);
        visit("groups", groups, KeyPart::bucket);
        visit("constant", constant_weight, KeyPart::value);
        visit("winograd", winograd, KeyPart::none);
    }
};

/// The problem of one direction of a convolution.
/// @throws ShapeError, ValueError as conv2d_shape
DECLIVITY_API Conv2dProblem conv2d_problem(std::string_view function, Conv2dDirection direction, DType dtype,
                                           KernelStyle style, const Shape& x, const Shape& weight,
                                           const Conv2dParameters& options);

/// x is (N, C, H, W), weight (O, C / groups, R, S), out (N, O, P, Q); the ones that a direction computes are written.
/// For the backward directions `out` and the written one are gradients.
struct Conv2dOperands {
    View x, weight, out;
    /// Bias of forward; its gradient for backward_weights, for strategies with gives_bias_gradient().
    std::optional<View> bias = {};
    /// Epilogue of forward and backward_input, without a bias of its own, for strategies that fuse it.
    KernelEpilogue epilogue = {};
    /// For backward_weights: receives partial results that the caller will reduce; null: the strategy reduces them.
    std::vector<SplitKPartial>* sums = nullptr;
};

/// Reduces partial results of backward_weights, or appends them to operands.sums: result = the sum of `partials` (k,
/// elements of the result).
void reduce_partials(const Conv2dProblem& problem, const Conv2dOperands& operands, const View& partials,
                     const View& result);

class Conv2dStrategy : public Strategy<Conv2dProblem, Conv2dOperands> {
  public:
    /// Returns whether backward_weights also computes the gradient of the bias.
    [[nodiscard]] virtual bool gives_bias_gradient() const { return false; }

  protected:
    ~Conv2dStrategy() = default;
};
using Conv2dChoice = StrategyChoice<Conv2dStrategy>;

/// All strategies in order of preference, conv2d_strategies.def; the last one is applicable to everything.
DECLIVITY_API std::span<const Conv2dStrategy* const> conv2d_strategies();
#define CONV2D_STRATEGY(name) const Conv2dStrategy& conv2d_##name();
#include "conv2d_strategies.def"
#undef CONV2D_STRATEGY

/// Returns the strategy that DECLIVITY_CONV2D names if it is applicable, otherwise the one measured as the fastest,
/// otherwise the first that is applicable and profitable.
/// @throws ValueError if DECLIVITY_CONV2D names no strategy
DECLIVITY_API Conv2dChoice choose_conv2d(const Conv2dProblem& problem, const Device& device);

/// The key of a problem's measurements.
std::string tuning_key(const Conv2dProblem& problem);

}  // namespace declivity::ops
