// Layer 6. Parameter: a trainable tensor of a module, after parametrization.
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

/// @addtogroup nn_module
/// @{

/// A trainable tensor as a member of a module, created by Module::parameter(). It converts to the tensor or, if the
/// parameter is parametrized (nn/parametrize.hpp), to the parametrized value. In this namespace, so that tensor
/// operators are found by argument-dependent lookup.
class DECLIVITY_API Parameter {
  public:
    /// Null parameter, such as a disabled bias.
    Parameter() = default;
    /// Recomputed in each call if parametrized. Undefined if there is no tensor.
    [[nodiscard]] Tensor value() const;
    operator Tensor() const { return value(); }          // NOLINT: implicit by design
    operator TensorOrScalar() const { return value(); }  // NOLINT
    [[nodiscard]] bool defined() const noexcept { return slot_ != nullptr; }
    /// Properties of value().
    [[nodiscard]] Shape shape() const { return value().shape(); }

  private:
    friend class nn::Module;
    explicit Parameter(std::shared_ptr<nn::detail::ParameterSlot> slot) : slot_(std::move(slot)) {}
    std::shared_ptr<nn::detail::ParameterSlot> slot_;
};

/// @}

namespace nn {
using declivity::Parameter;
}

}  // namespace declivity
