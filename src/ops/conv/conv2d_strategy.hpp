// The ways to compute a convolution, behind one interface. Each says for itself what it can serve; conv2d.cpp chooses.
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

namespace declivity::ops {

enum class Conv2dDirection : std::uint8_t { forward, backward_input, backward_weights };

/// What is to be computed; N >= 1. Pairs are vertical, horizontal.
struct Conv2dProblem {
    Conv2dDirection direction = Conv2dDirection::forward;
    DType dtype = DType::f32;
    Family family = Family::cpu_like;
    std::int64_t images = 1;                 ///< N
    std::int64_t channels = 1, filters = 1;  ///< C, O
    std::int64_t groups = 1;
    std::array<std::int64_t, 2> input{1, 1};   ///< H, W
    std::array<std::int64_t, 2> filter{1, 1};  ///< R, S
    std::array<std::int64_t, 2> output{1, 1};  ///< P, Q
    std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
    bool constant_weight = false;  ///< what is made of it may be kept

    [[nodiscard]] std::int64_t channels_per_group() const { return channels / groups; }
    [[nodiscard]] std::int64_t filters_per_group() const { return filters / groups; }
    [[nodiscard]] std::int64_t taps() const { return filter[0] * filter[1]; }
    friend bool operator==(const Conv2dProblem&, const Conv2dProblem&) = default;
};

/// x is (N, C, H, W), weight (O, C / groups, R, S), out (N, O, P, Q); those that a direction computes are written. For
/// the backward directions `out` and the written one are gradients.
struct Conv2dOperands {
    View x, weight, out;
    std::optional<View> bias = {};  ///< of forward; of backward_weights its gradient, for strategies that say so
    KernelEpilogue epilogue =
        {};  ///< of forward and backward_input, without a bias of its own, for strategies that say so
    std::vector<PartialSum>* sums =
        nullptr;  ///< of backward_weights: where sums go that the caller will add up; null: the strategy does
};

/// For backward_weights, whose work-items leave partial results: result = the sum of `partials` (k, elements of the
/// result).
void reduce_partials(const Conv2dProblem& problem, const Conv2dOperands& operands, const View& partials,
                     const View& result);

class Conv2dStrategy {
  public:
    Conv2dStrategy() = default;
    Conv2dStrategy(const Conv2dStrategy&) = delete;
    Conv2dStrategy& operator=(const Conv2dStrategy&) = delete;
    /// As DECLIVITY_CONV2D names it.
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual bool can_serve(const Conv2dProblem& problem) const = 0;
    /// Whether it is worth while where it can serve, by what is known of its costs.
    [[nodiscard]] virtual bool pays(const Conv2dProblem&) const { return true; }
    /// Parameters worth a measurement, by names of the strategy's own; the empty one stands for its own choice.
    [[nodiscard]] virtual std::vector<std::string> variants(const Device&, const Conv2dProblem&) const { return {""}; }
    /// Launches; operands are checked already.
    virtual void run(const Conv2dProblem& problem, const Conv2dOperands& operands,
                     std::string_view variant = {}) const = 0;
    /// Whether backward_weights gives the gradient of the bias, too.
    [[nodiscard]] virtual bool gives_bias_gradient() const { return false; }
    /// Whether forward, or backward_input, takes a epilogue, with the parameters of `variant`.
    [[nodiscard]] virtual bool takes_epilogue(const Conv2dProblem&, const Device&, std::string_view) const {
        return false;
    }

  protected:
    // Trivial, so that the strategies serve while objects in static storage are destroyed.
    ~Conv2dStrategy() = default;
};

/// All strategies, the preferred first; the last one, `direct`, serves everything.
DECLIVITY_API std::span<const Conv2dStrategy* const> conv2d_strategies();
const Conv2dStrategy& conv2d_banded();
const Conv2dStrategy& conv2d_depthwise();
const Conv2dStrategy& conv2d_depthwise_direct();
const Conv2dStrategy& conv2d_depthwise_channels_last();
const Conv2dStrategy& conv2d_direct();
const Conv2dStrategy& conv2d_col2im();
const Conv2dStrategy& conv2d_gemm();
const Conv2dStrategy& conv2d_local();
const Conv2dStrategy& conv2d_matmul();
const Conv2dStrategy& conv2d_tiled();
const Conv2dStrategy& conv2d_winograd2();
const Conv2dStrategy& conv2d_winograd4();

struct Conv2dChoice {
    const Conv2dStrategy* strategy;
    std::string variant, reason;
};
/// The strategy that DECLIVITY_CONV2D names if it can serve, otherwise the one that was measured as the fastest,
/// otherwise the first that can serve and pays.
/// @throws ValueError when DECLIVITY_CONV2D names none
DECLIVITY_API Conv2dChoice choose_conv2d(const Conv2dProblem& problem, const Device& device);

/// Under which name a problem's measurements are kept.
std::string tuning_key(const Conv2dProblem& problem);
struct TuningEntry;
/// Measures all strategies and keeps the result.
TuningEntry measure_conv2d(const Device& device, const Conv2dProblem& problem);

}  // namespace declivity::ops
