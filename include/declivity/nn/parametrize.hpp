// Layer 6. Parametrizations: a parameter of a module is computed from other trainable tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

namespace detail {

/// A parametrization with type-erased calls.
struct ParametrizationCalls {
    std::unique_ptr<Module> module;
    std::function<Tensor(const std::vector<Tensor>& originals)> forward;
    std::function<std::vector<Tensor>(const Tensor& value)> right_inverse;  ///< empty: the original is the value
    std::size_t originals;
    bool freezes_originals;
};
DECLIVITY_API void register_parametrization(Module& module, std::string_view name, ParametrizationCalls calls);

template <class... Args>
void set_forward(ParametrizationCalls& calls, Callable<Tensor(Args...)>& of) {
    static_assert((std::is_same_v<Args, Tensor> && ...) && sizeof...(Args) > 0,
                  "a parametrization must take one or more tensors: Callable<Tensor(Tensor)>");
    calls.originals = sizeof...(Args);
    calls.forward = [&of](const std::vector<Tensor>& originals) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) { return of(originals.at(I)...); }
        (std::index_sequence_for<Args...>());
    };
}

}  // namespace detail

/// @addtogroup nn_module
/// @{

/// Parametrizes a parameter: from now on the module uses `parametrization(original)` in its place:
///
///     struct Symmetric : nn::Layer {
///         Tensor forward(Tensor w) override { return (w + transpose(w)) * 0.5; }
///     };
///     nn::Linear layer(4, 4);
///     nn::register_parametrization(layer, "weight", Symmetric());
///
/// The trained tensor, also in state dicts, is `parametrizations.<name>.original`: the same tensor under another name,
/// with its values, so that optimizers and tied tensors stay valid. The parametrization is the module
/// `parametrizations.<name>.0`, and may have its own parameters. Several parametrizations are applied in sequence.
///
/// A parametrization is a Callable<Tensor(Tensor)>. If it has a member `right_inverse(Tensor)`, the original is
/// initialised with its result for the parameter. A parametrization that takes several tensors, which is possible only
/// for the first one, requires this member, which must return as many tensors (a pair, a vector, ...); the originals
/// are then called `original0`, `original1`, ... A member `freezes_originals` that is true freezes them.
///
/// The member of the module must be a Parameter, not a Tensor. Create optimizers afterwards if new tensors are to be
/// trained.
/// @return the registered parametrization
/// @throws ValueError for a name that is not a parameter, a parameter stored as a Tensor, or a parametrization whose
/// result has another shape, type or device; nothing is changed then
template <class P>
requires std::is_base_of_v<Module, P> P& register_parametrization(Module& module, std::string_view name,
                                                                  P parametrization) {
    auto owned = std::make_unique<P>(std::move(parametrization));
    P& reference = *owned;
    detail::ParametrizationCalls calls{
        .module = std::move(owned), .forward = {}, .right_inverse = {}, .originals = 0, .freezes_originals = false};
    detail::set_forward(calls, reference);
    if constexpr (requires(const Tensor& value) { reference.right_inverse(value); })
        calls.right_inverse = [&reference](const Tensor& value) {
            return detail::defined_tensors_of(reference.right_inverse(value));
        };
    if constexpr (requires { P::freezes_originals; }) calls.freezes_originals = P::freezes_originals;
    detail::register_parametrization(module, name, std::move(calls));
    return reference;
}

/// Removes all parametrizations of a parameter: the trained tensor is the parameter itself again, with the parametrized
/// value, and requires a gradient if it did before.
/// @param leave_parametrized false: keeps the value of the original, of which there must be exactly one
/// @throws ValueError for a parameter without parametrization
DECLIVITY_API void remove_parametrizations(Module& module, std::string_view name, bool leave_parametrized = true);
/// See Module::is_parametrized.
inline bool is_parametrized(const Module& module, std::string_view name = {}) { return module.is_parametrized(name); }

struct LoRAOptions {
    std::int64_t rank = 8;
    double alpha = 8;
};

/// Low-rank parametrization original + alpha / rank * lora_B lora_A, with the original frozen (Hu et al. 2021): lora_A
/// (rank, n) is initialised as the weight of a linear layer, lora_B (out, rank) to zeros, for a weight (out, ...) with
/// n elements per row.
class DECLIVITY_API LoRA : public Layer {
  public:
    static constexpr bool freezes_originals = true;

    /// @param weight the parameter to parametrize, for shape, type and device
    /// @throws ValueError for a rank below 1, ShapeError for a weight of fewer than two axes
    explicit LoRA(const Tensor& weight, const LoRAOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "LoRA"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LoRA); }

  protected:
    Tensor forward(Tensor original) override;

  private:
    Parameter lora_a_, lora_b_;
    double scaling_;
};
/// Registers LoRA for a parameter of a module. Other parameters of the module are not frozen.
DECLIVITY_API LoRA& lora(Module& module, std::string_view name = "weight", const LoRAOptions& options = {});

/// Weight normalisation g v / |v| of original0 g and original1 v, with a norm for each element of one axis (Salimans,
/// Kingma 2016).
class DECLIVITY_API WeightNorm : public Callable<Tensor(Tensor, Tensor)> {
  public:
    /// @param dim the axis; none: a single norm
    explicit WeightNorm(std::optional<std::int64_t> dim = 0) : dim_(dim) {}
    [[nodiscard]] std::string type_name() const override { return "WeightNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(WeightNorm); }
    [[nodiscard]] std::pair<Tensor, Tensor> right_inverse(const Tensor& weight) const;

  protected:
    Tensor forward(Tensor g, Tensor v) override;

  private:
    [[nodiscard]] Tensor norm(const Tensor& v) const;
    std::optional<std::int64_t> dim_;
};
/// Registers weight normalisation for a parameter of a module.
DECLIVITY_API WeightNorm& weight_norm(Module& module, std::string_view name = "weight",
                                      std::optional<std::int64_t> dim = 0);

/// @}

}  // namespace declivity::nn
