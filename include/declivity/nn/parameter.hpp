// Layer 4. Parameter: a trained tensor, as its module computes with it.
#pragma once

#include <memory>
#include <utility>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

namespace nn {
class Module;
namespace detail {
struct ParameterSlot;
}
}  // namespace nn

/// A module's trained tensor as a member of the module, made by Module::parameter(). It stands wherever a Tensor does,
/// and is then the tensor itself or, where the module was given parametrisations of it (nn/parametrize.hpp), what these
/// make of it. In this namespace, so that operators of tensors are found for it.
class DECLIVITY_API Parameter {
  public:
    /// None, such as the bias of a layer without one.
    Parameter() = default;
    /// Computed anew by each call where there is a parametrisation. Undefined where there is no tensor.
    [[nodiscard]] Tensor value() const;
    operator Tensor() const { return value(); }          // NOLINT: that is its purpose
    operator TensorOrScalar() const { return value(); }  // NOLINT
    [[nodiscard]] bool defined() const noexcept { return slot_ != nullptr; }
    /// Of value().
    [[nodiscard]] Shape shape() const { return value().shape(); }

  private:
    friend class nn::Module;
    explicit Parameter(std::shared_ptr<nn::detail::ParameterSlot> slot) : slot_(std::move(slot)) {}
    std::shared_ptr<nn::detail::ParameterSlot> slot_;
};

namespace nn {
using declivity::Parameter;
}

}  // namespace declivity
