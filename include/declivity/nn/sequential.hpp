// Layer 6. Sequential: a chain of layers.
#pragma once

#include <declivity/nn/module_list.hpp>

namespace declivity::nn {

/// @addtogroup nn_module
/// @{

/// Applies layers in sequence: nn::Sequential(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::Flatten()). The layers are called
/// "0", "1", ... Without layers it is the identity.
class DECLIVITY_API Sequential : public Layer {
  public:
    template <class... Layers>
    requires(sizeof...(Layers) > 0 && (std::is_base_of_v<Layer, Layers> && ...) &&
             !(sizeof...(Layers) == 1 &&
               (std::is_same_v<Sequential, Layers> && ...))) explicit Sequential(Layers... layers) {
        (append(std::move(layers)), ...);
    }
    Sequential() = default;

    /// Moves a layer to the end of the chain and returns it.
    template <class L>
    requires std::is_base_of_v<Layer, L> L& append(L layer) {
        L& reference = add(std::to_string(layers_.size()), std::move(layer));
        layers_.append(reference);
        return reference;
    }
    /// Constructs the next layer in place, from constructor arguments: for one that refers to itself, or cannot be
    /// moved.
    template <class L, class... Args>
    requires std::is_base_of_v<Layer, L> L& emplace(Args&&... args) {
        L& reference = Module::emplace<L>(std::to_string(layers_.size()), std::forward<Args>(args)...);
        layers_.append(reference);
        return reference;
    }
    /// Layer number `index`; negative indices count from the end. @throws ValueError for an index out of range
    [[nodiscard]] Layer& operator[](std::int64_t index) const {
        guard_children();
        return layers_.at("Sequential", index);
    }
    [[nodiscard]] std::size_t size() const {
        require_in_place();
        guard_children();
        return layers_.size();
    }
    [[nodiscard]] auto begin() const {
        guard_children();
        return layers_.begin();
    }
    [[nodiscard]] auto end() const { return layers_.end(); }
    [[nodiscard]] std::string type_name() const override { return "Sequential"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Sequential); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    detail::ModuleReferences<Layer> layers_;
};

/// @}

}  // namespace declivity::nn
