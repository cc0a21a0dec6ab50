// Modules' tensors on another device or of another type, all of them or none.
#pragma once

#include <functional>

#include <declivity/nn/module.hpp>

namespace declivity::nn::detail {

/// Each tensor becomes what `converted` makes of it. When that throws for one of them, all stay as they were.
void convert(const StateDict& tensors, const std::function<Tensor(const Tensor&)>& converted);

}  // namespace declivity::nn::detail
