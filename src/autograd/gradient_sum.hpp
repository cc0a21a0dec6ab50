// Layer 4, private. Sum of the contributions to one gradient.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <declivity/tensor/tensor.hpp>

#include "graph.hpp"
#include "rule_call.hpp"

namespace declivity::detail {

/// a + b, differentiable: operator+, which is of layer 5 (functions/elementwise/add_gradients.cpp).
Tensor add_gradients(const Tensor& a, const Tensor& b);

/// Accumulator of a gradient that several rules contribute to.
class GradientSum {
  public:
    [[nodiscard]] Tensor take();
    void add(const Tensor& gradient);
    /// Partial gradients are collected: those that do not overlap are written directly, and if they cover the whole
    /// gradient it is not zero-filled first. @param like shape, type and device of the whole gradient
    void add(GradientRegion region, const OutputInfo& like);

  private:
    static constexpr std::size_t kMaxParts = 32;  // each is compared with all others

    /// Assembles the whole gradient from its parts.
    void assemble();

    Tensor value_;
    bool unshared_ = false;              // unshared memory, which may be written in place
    std::vector<GradientRegion> parts_;  // partial gradients not yet assembled
    std::optional<OutputInfo> gradient_info_;
};

}  // namespace declivity::detail
