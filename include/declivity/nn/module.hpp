// Floor 4. Module: a function with parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <declivity/runtime/recording.hpp>
#include <declivity/tensor/state_dict.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::nn {

/// Base of all layers and networks. A subclass registers its parameters, buffers and children, and overrides `forward`:
///
///     struct Net : nn::Module {
///         nn::Conv2d& conv = add("conv", nn::Conv2d(1, 16, 3));
///         nn::Linear& dense = add("dense", nn::Linear(16, 10));
///         Tensor forward(const Tensor& x) override { return dense(flatten(global_avg_pool2d(relu(conv(x))))); }
///     };
///
/// Modules can be moved, not copied; a tensor handed out earlier stays the module's own. Children live on the heap, so
/// that references to them, as in the example, are right after a move as well. What refers to the module itself is not:
/// a lambda that captures `this`, a pointer to a member. Such a module is built where it stays, as a child by
/// emplace(). One that was moved from can be destroyed or assigned to; calls, parameters and children of it throw
/// ValueError.
class DECLIVITY_API Module {
  public:
    Module() = default;
    virtual ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    Module(Module&& from) noexcept;
    Module& operator=(Module&& from) noexcept;

    /// Runs `forward` in a scope of the module's name.
    Tensor operator()(Tensor x);

    /// Parameters of this module and all below it, in order of registration. A tensor that is registered twice (tied
    /// weights) comes once, by its first name.
    [[nodiscard]] std::vector<Tensor> parameters() const;
    [[nodiscard]] std::vector<NamedTensor> named_parameters() const;
    /// Tensors that are kept but not trained, such as running statistics. Each once.
    [[nodiscard]] std::vector<NamedTensor> named_buffers() const;
    [[nodiscard]] std::vector<std::pair<std::string, Module*>> children() const;
    /// Calls visit(module) for each child, in order of registration.
    template <class Visit>
    void for_each_child(Visit&& visit) const {
        require_in_place();
        for (const auto& [name, child] : children_) visit(*child);
    }

    /// Moves all parameters and buffers; handles to them stay valid. Gradients are dropped.
    void to(const Device& device);
    /// The same of what is floating. @throws TypeError for a type that is not
    void to(DType dtype);
    /// Training or evaluation: dropout and batch normalisation behave accordingly.
    void train(bool on = true);
    void eval() { train(false); }
    [[nodiscard]] bool training() const noexcept { return training_; }
    void zero_grad();

    /// Parameters and buffers by name; one that is registered twice has both its names. The tensors share the module's
    /// memory.
    [[nodiscard]] StateDict state_dict() const;
    /// Copies values into parameters and buffers of the same names. Of a tensor with two names, the values of the later
    /// one stay.
    /// @throws ValueError naming the missing and unexpected names (unless not strict), ShapeError, TypeError; nothing
    /// is
    /// changed then
    void load_state_dict(const StateDict& state, bool strict = true);

    /// A table of the layers that an input of this shape runs through: output shape, parameters, multiply-adds. The
    /// last line has the sums.
    /// @param dtype of the input, which is zeros; that of the first parameter if none
    [[nodiscard]] std::string summary(const Shape& input, std::optional<DType> dtype = std::nullopt);
    /// Multiply-adds of one call of this module itself, without its children.
    [[nodiscard]] virtual std::int64_t multiply_adds(const Shape& input, const Shape& output) const;
    /// "Conv2d", as summaries print it.
    [[nodiscard]] virtual std::string type_name() const;

    /// Which class promises that a recorded step may call `forward` once and then repeat what it launched
    /// (docs/recording.md): that it launches the same for every input of the same shape and type, but for what it reads
    /// by training(), guarded() or record_guard(). A class that does says
    ///
    ///     const std::type_info& replayable() const override { return typeid(Net); }
    ///
    /// and speaks for itself alone: not for children, and not for classes that derive from it. void, as here, promises
    /// nothing.
    [[nodiscard]] virtual const std::type_info& replayable() const;
    /// Of this module and all below it, the first whose very class does not promise to be replayable, such as "module
    /// '2.norm' (MyNorm)"; empty when all do.
    [[nodiscard]] std::string not_replayable() const;

  protected:
    virtual Tensor forward(const Tensor& x) = 0;

    /// Registers a trained tensor; an undefined one (no bias) is passed through. Gives it back, requiring a gradient.
    /// Another module's parameter ties the two: parameter("weight", encoder.weight()).
    Tensor parameter(std::string_view name, Tensor value);
    /// Registers a tensor that is kept but not trained.
    Tensor buffer(std::string_view name, Tensor value);
    /// Registers a child and gives it back; its address does not change when this module is moved. The child itself is
    /// moved once, to its place: one that refers to itself (a lambda that captures `this`) is built there, by
    /// emplace().
    template <class M>
    M& add(std::string_view name, M module) {
        static_assert(std::is_base_of_v<Module, M>, "a child must be a Module");
        auto owned = std::make_unique<M>(std::move(module));
        M& reference = *owned;
        add_child(name, std::move(owned));
        return reference;
    }
    /// Builds a child in place, from the arguments of a constructor, and gives it back: for modules that cannot be
    /// moved, or must not. Options need the name of their type here: emplace<nn::Conv2d>("conv", 1, 16, 3,
    /// nn::Conv2dOptions{.padding = 1}).
    template <class M, class... Args>
    M& emplace(std::string_view name, Args&&... args) {
        static_assert(std::is_base_of_v<Module, M>, "a child must be a Module");
        auto owned = std::make_unique<M>(std::forward<Args>(args)...);
        M& reference = *owned;
        add_child(name, std::move(owned));
        return reference;
    }
    /// @throws ValueError for a name that is taken or has a dot, null, or a module that was moved from
    void add_child(std::string_view name, std::unique_ptr<Module> module);

    /// A member of this module that `forward` decides by, such as `guarded(&Dropout::probability_)`: a recorded step is
    /// called and recorded anew when the member has changed, or the module has moved or ended. The member's type can be
    /// copied and compared.
    template <class M, class Owner>
    const M& guarded(M Owner::*member) const {
        const M& now = static_cast<const Owner&>(*this).*member;
        if (is_recording())
            guard_recording([here = presence_.watch(), owner = &static_cast<const Owner&>(*this), member, value = now] {
                return !here.expired() && owner->*member == value;
            });
        return now;
    }

  private:
    /// Tells guards whether the module is still where it was.
    class DECLIVITY_API Presence {
      public:
        Presence() = default;
        Presence(Presence&& other) noexcept { other.token_.reset(); }
        Presence& operator=(Presence&& other) noexcept;
        std::weak_ptr<const void> watch() const;

      private:
        mutable std::shared_ptr<const void> token_;  // made when it is first asked for
    };
    void guard_call() const;

    void place();
    void forget_places();
    void check_name(std::string_view name) const;
    /// @throws ValueError when it was moved from
    void require_in_place(std::string_view path = {}) const;
    void collect(std::string_view prefix, std::vector<NamedTensor>* parameters,
                 std::vector<NamedTensor>* buffers) const;

    std::string name_;
    std::vector<NamedTensor> parameters_;
    std::vector<NamedTensor> buffers_;
    std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
    bool training_ = true;
    Presence presence_;
    bool placed_ = false;  // its tensors count as memory of its scope
    bool moved_from_ = false;
};

/// While one lives, it is told of every module call of this thread, after the call: the path of scopes, the module,
/// what it got and what it gave.
class DECLIVITY_API ObserveCalls {
  public:
    using Observer =
        std::function<void(const std::string& path, const Module& module, const Tensor& input, const Tensor& output)>;
    explicit ObserveCalls(Observer observer);
    ~ObserveCalls();
    ObserveCalls(const ObserveCalls&) = delete;
    ObserveCalls& operator=(const ObserveCalls&) = delete;

  private:
    Observer observer_;
    const Observer* before_;
};

}  // namespace declivity::nn
