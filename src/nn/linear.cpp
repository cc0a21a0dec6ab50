#include <declivity/nn/linear.hpp>

#include <cmath>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
    if (in < 1 || out < 1)
        throw ValueError(fmt::format("Linear: wants at least 1 input and output, got {} and {}", in, out));
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    weight_ = parameter("weight", uniform({out, in}, -bound, bound, options.tensor));
    bias_ = parameter("bias", options.bias ? uniform({out}, -bound, bound, options.tensor) : Tensor());
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight_, bias_); }

std::int64_t Linear::multiply_adds(const Shape& input, const Shape& output) const {
    return input.numel() * output.back();
}

}  // namespace declivity::nn
