// Conversion of a module's tensors to another device or type, all or none.
#pragma once

#include <functional>

#include <declivity/nn/module.hpp>

namespace declivity::nn::detail {

/// Replaces each tensor by `conversion` of it. If that throws for one of them, all are unchanged.
void convert(const StateDict& tensors, const std::function<Tensor(const Tensor&)>& conversion);

}  // namespace declivity::nn::detail
