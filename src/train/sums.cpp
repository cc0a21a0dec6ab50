#include "sums.hpp"

#include <algorithm>
#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::train {

Sums::Sums(const Device& device)
    : values_(zeros({kMax, 2}, {DType::f32, device})),
      is_sum_(Tensor::from(std::vector<std::uint8_t>{1, 0}, {1, 2}, device) != 0) {
    (void)is_sum_.view();  // not within a captured step
}

std::int64_t Sums::index_of(std::string_view name) {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) return found - names_.begin();
    if (!is_name(name))
        throw ValueError(
            fmt::format("Step::report: expected a name without commas, quotes and line ends, got '{}'", name));
    if (std::cmp_equal(names_.size(), kMax))
        throw ValueError(fmt::format("Step::report: expected at most {} names, got another one, '{}'", kMax, name));
    names_.emplace_back(name);
    return static_cast<std::int64_t>(names_.size()) - 1;
}

void Sums::add(std::string_view name, const Tensor& value, const LossWeight& weight) {
    if (!value.defined())
        throw ValueError(fmt::format("Step::report: expected one element as '{}', got an undefined tensor", name));
    if (value.numel() != 1)
        throw ShapeError(fmt::format("Step::report: expected one element as '{}', got {}", name, value.shape().str()));
    const NoGrad no_grad;
    const std::int64_t row = index_of(name);
    const Tensor scalar = reshape(value.detach(), {1, 1}).to(DType::f32);
    Tensor weighted;  // the value times its weight, and the weight
    if (weight.is_sum) {
        weighted = where(is_sum_, scalar, weight.count);
    } else if (!weight.tensor.defined()) {
        weighted = where(is_sum_, scalar, 1) * weight.count;
    } else {  // an empty mean is NaN, and has weight 0
        const Tensor factor = reshape(weight.tensor, {1, 1});
        weighted = where(factor == 0, 0, where(is_sum_, scalar, 1) * factor);
    }
    slice(values_, 0, row, row + 1).add_(weighted);
}

void Sums::reset() {
    const NoGrad no_grad;
    values_.zero_();
}

void Sums::append(Metrics& metrics, const std::string& prefix, std::span<const float> values) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
        const auto weights = static_cast<double>(values[2 * i + 1]);
        metrics.add(prefix + names_[i], weights > 0 ? static_cast<double>(values[2 * i]) / weights : NAN);
    }
}

}  // namespace declivity::train
