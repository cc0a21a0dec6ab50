#include <declivity/nn/functional.hpp>

namespace declivity::nn {

Tensor Lambda::forward(const Tensor& x) { return function_(x); }

}  // namespace declivity::nn
