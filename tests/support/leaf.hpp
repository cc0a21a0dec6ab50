// Leaf tensors for autograd tests.
#pragma once

#include <vector>

#include <tests/support/values.hpp>

namespace declivity::test {

using Values = std::vector<double>;

inline Tensor leaf(const std::vector<double>& elements, const Shape& shape, DType dtype = DType::f32) {
    return tensor(elements, shape, dtype).set_requires_grad();
}

}  // namespace declivity::test
