// Layer 4. Parametrisations: a module computes with a function of what is trained.
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

/// A parametrisation, and how it is called.
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
                  "a parametrisation takes tensors: Callable<Tensor(Tensor)>, or more of them");
    calls.originals = sizeof...(Args);
    calls.forward = [&of](const std::vector<Tensor>& originals) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) { return of(originals.at(I)...); }
        (std::index_sequence_for<Args...>());
    };
}

}  // namespace detail

/// From now on the module computes with `parametrization(original)` where it computed with its parameter of this name:
///
///     struct Symmetric : nn::Layer {
///         Tensor forward(Tensor w) override { return (w + transpose(w)) * 0.5; }
///     };
///     nn::Linear layer(4, 4);
///     nn::register_parametrization(layer, "weight", Symmetric());
///
/// What is trained, and kept in state dicts, is `parametrizations.<name>.original`: the same tensor under another name,
/// with its values, so that optimizers and tensors tied to it keep it. The parametrisation is the module
/// `parametrizations.<name>.0`, and may have parameters of its own. Further ones are applied to what those before give.
///
/// A parametrisation is a Callable<Tensor(Tensor)>. Where it has a member `right_inverse(Tensor)`, the original begins
/// as what that makes of the parameter; one that takes several tensors, which only the first can be, needs such a
/// member, that gives as many (a pair, a vector, ...), and its originals are called `original0`, `original1`, ... A
/// member `freezes_originals` that is true says that they are not trained.
///
/// The module's member must be a Parameter, not a Tensor. Optimizers are made after this where new tensors are trained.
/// @return the parametrisation, at its place
/// @throws ValueError for a name that is no parameter, a parameter kept as a Tensor, or a parametrisation that gives
/// another shape, type or device; nothing is changed then
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

/// Takes all parametrisations of a parameter away: what is trained is the parameter itself again, with the value that
/// they gave, and requires a gradient where it did before.
/// @param leave_parametrized false: with the value of the original, of which there is one then
/// @throws ValueError for a parameter that has none
DECLIVITY_API void remove_parametrizations(Module& module, std::string_view name, bool leave_parametrized = true);
/// As Module::is_parametrized.
inline bool is_parametrized(const Module& module, std::string_view name = {}) { return module.is_parametrized(name); }

struct LoRAOptions {
    std::int64_t rank = 8;
    double alpha = 8;
};

/// original + alpha / rank * lora_B lora_A, with the original frozen (Hu et al. 2021): lora_A (rank, n) starts as a
/// weight of a linear layer, lora_B (out, rank) as zeros, for a weight (out, ...) of n numbers a row.
class DECLIVITY_API LoRA : public Layer {
  public:
    static constexpr bool freezes_originals = true;

    /// @param weight that it is for: of its shape, type and device
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
/// Registers one for a module's parameter. The module's other parameters are trained as before.
DECLIVITY_API LoRA& lora(Module& module, std::string_view name = "weight", const LoRAOptions& options = {});

/// g v / |v| from original0 g and original1 v, with a norm for each element of one axis (Salimans, Kingma 2016).
class DECLIVITY_API WeightNorm : public Callable<Tensor(Tensor, Tensor)> {
  public:
    /// @param dim the axis; none: one norm for all
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
/// Registers one for a module's parameter.
DECLIVITY_API WeightNorm& weight_norm(Module& module, std::string_view name = "weight",
                                      std::optional<std::int64_t> dim = 0);

}  // namespace declivity::nn
