// Floor 4. Sequential: modules one after the other.
#pragma once

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// Feeds each module with what the one before gave: nn::Sequential(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::Flatten()). The
/// children are called "0", "1", ... Without any it gives x back.
class DECLIVITY_API Sequential : public Module {
  public:
    template <class... Modules>
    requires(sizeof...(Modules) > 0 && (std::is_base_of_v<Module, Modules> && ...) &&
             !(sizeof...(Modules) == 1 &&
               (std::is_same_v<Sequential, Modules> && ...))) explicit Sequential(Modules... modules) {
        (append(std::move(modules)), ...);
    }
    Sequential() = default;

    /// Puts a module at the end and gives it back. As with the constructor's, it is moved to its place.
    template <class M>
    M& append(M module) {
        return add(std::to_string(children().size()), std::move(module));
    }
    /// Builds the next module in place, from the arguments of its constructor: for one that refers to itself, or cannot
    /// be moved.
    template <class M, class... Args>
    M& emplace(Args&&... args) {
        return Module::emplace<M>(std::to_string(children().size()), std::forward<Args>(args)...);
    }
    [[nodiscard]] std::size_t size() const { return children().size(); }
    [[nodiscard]] std::string type_name() const override { return "Sequential"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Sequential); }

  protected:
    Tensor forward(const Tensor& x) override;
};

}  // namespace declivity::nn
