// Layer 3, private. The state behind a Tensor handle, which also tells whether two handles are of one tensor.
#pragma once

#include <memory>
#include <utility>

#include <declivity/tensor/tensor.hpp>

#include "runtime/access.hpp"

namespace declivity {

[[nodiscard]] inline const std::shared_ptr<detail::TensorState>& state_of(const Tensor& tensor) noexcept {
    return detail::StateAccess::state(tensor);
}
[[nodiscard]] inline Tensor tensor_of(std::shared_ptr<detail::TensorState> state) noexcept {
    return detail::StateAccess::handle<Tensor>(std::move(state));
}

}  // namespace declivity
