// Gradients of a 1 x 1 convolution without strides and padding, as matrix products.
#include <declivity/ops/matmul.hpp>

#include "conv2d_strategy.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMinWeights = 1 << 14;  // below this, a launch for split-K sums costs too much

class Conv2dMatmul final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "matmul"; }

    /// Weight gradients only for a single image, since several would need a sum over two axes.
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device&) const override {
        constexpr std::array<std::int64_t, 2> unit{1, 1}, no_padding{0, 0};
        const bool single =
            problem.filter == unit && problem.stride == unit && problem.padding == no_padding && problem.groups == 1;
        return single && (problem.direction == Conv2dDirection::backward_input ||
                          (problem.direction == Conv2dDirection::backward_weights && problem.images == 1));
    }

    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        return problem.style == KernelStyle::simd && problem.direction == Conv2dDirection::backward_weights &&
               problem.channels * problem.filters >= kMinWeights;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const std::int64_t images = problem.images, positions = problem.output[0] * problem.output[1];
        const View x = reshaped(operands.x, {images, problem.channels, positions}),
                   g = reshaped(operands.out, {images, problem.filters, positions});
        const View weight = reshaped(operands.weight, {1, problem.filters, problem.channels});
        if (problem.direction == Conv2dDirection::backward_weights) return matmul(g, permuted(x, {0, 2, 1}), weight);
        matmul(expanded("conv2d_matmul", permuted(weight, {0, 2, 1}), {images, problem.channels, problem.filters}), g,
               x);
    }
};

}  // namespace

const Conv2dStrategy& conv2d_matmul() {
    static const Conv2dMatmul strategy;
    return strategy;
}

}  // namespace declivity::ops
