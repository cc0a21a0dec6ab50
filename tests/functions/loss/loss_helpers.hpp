// Helpers of the tests of losses.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <tests/support/values.hpp>

namespace declivity::test {

using Values = std::vector<double>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr auto kNone = Reduction::none;

/// The gradient with respect to x of the sum of `loss`.
inline Values gradient_of(const Tensor& x, const std::function<Tensor(const Tensor&)>& loss) {
    Tensor leaf = x.detach().clone();
    leaf.set_requires_grad();
    sum(loss(leaf)).backward();
    return values(leaf.grad());
}

}  // namespace declivity::test
