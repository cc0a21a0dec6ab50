// Layer 4. Module: what has parameters, buffers and modules below it.
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

#include <declivity/nn/parameter.hpp>
#include <declivity/runtime/command_list.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/state_dict.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::nn {

namespace detail {

class UnregisteredCalls;

}  // namespace detail

/// Base of all layers and networks: their parameters, buffers and children. What is called derives from Callable
/// (callable.hpp), which has `forward`:
///
///     struct Net : nn::Layer {  // nn::Callable<Tensor(Tensor)>
///         nn::Conv2d& conv = add("conv", nn::Conv2d(1, 16, 3));
///         nn::Linear& dense = add("dense", nn::Linear(16, 10));
///         Tensor forward(Tensor x) override { return dense(flatten(global_avg_pool2d(relu(conv(x))))); }
///     };
///
/// Modules can be moved, not copied; a tensor handed out earlier stays the module's own. Children live on the heap, so
/// that references to them, as in the example, are right after a move as well. What refers to the module itself is not:
/// a lambda that captures `this`, a pointer to a member. Such a module is built where it stays, as a child by
/// emplace(). One that was moved from can be destroyed or assigned to; calls, parameters and children of it throw
/// ValueError.
///
/// A layer that is a plain member (`nn::Linear dense{16, 10};`) is no child: it is not among parameters(), not saved,
/// and not reached by train(), eval() and to(). Where `forward` calls such a module while gradients are enabled, and it
/// has parameters that require a gradient, or is dropout, a warning on stderr names both, once for each module; within
/// Trainer::fit the call throws ValueError. A module that is trained on its own is declared by set_external().
class DECLIVITY_API Module {
  public:
    Module() = default;
    virtual ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    Module(Module&& from) noexcept;
    Module& operator=(Module&& from) noexcept;

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
        guard_children();
        for (const auto& [name, child] : children_) visit(*child);
    }

    /// Moves all parameters and buffers; handles to them stay valid. Gradients are dropped. Both the old and the new
    /// ones take memory until all are made: a call that fails (OutOfMemory) leaves the module as it was.
    void to(const Device& device);
    /// The same of what is floating. @throws TypeError for a type that is not
    void to(DType dtype);
    /// Training or evaluation: dropout and batch normalisation behave accordingly. A child that is added later, or
    /// replaced by an assignment, takes the mode of its parent.
    void train(bool on = true);
    void eval() { train(false); }
    [[nodiscard]] bool training() const noexcept { return training_; }
    void zero_grad();

    /// Declares that other modules call this one, or modules below it, without being their parent: a network that is
    /// trained, saved and moved on its own, such as a critic that a loss calls. Such calls are not reported then.
    void set_external(bool external = true) noexcept { external_ = external; }
    [[nodiscard]] bool external() const noexcept { return external_; }

    /// Parameters and buffers by name; one that is registered twice (tied) has both its names. The tensors share the
    /// module's memory.
    [[nodiscard]] StateDict state_dict() const;
    /// Copies values into parameters and buffers of the same names. A tensor with two names may have its values under
    /// either or both; where both differ in any bit it is an error, for which the values are read.
    /// @return names that were missing and names that are none of this module's; none of either where strict
    /// @throws ValueError naming the missing and unexpected names (unless not strict), or two names of one tensor whose
    /// values differ; ShapeError, TypeError; nothing is changed then
    LoadedState load_state_dict(const StateDict& state, bool strict = true);

    /// A table of the layers that `call` runs through, a call of this module in evaluation mode and without a graph:
    /// shapes of the outputs, parameters, multiply-adds. What summary() in callable.hpp gives.
    /// @param inputs of the call, for the last line
    [[nodiscard]] std::string summary_of(const std::vector<Tensor>& inputs, const std::function<void()>& call);
    /// Multiply-adds of one call of this module itself, without its children.
    /// @param inputs,outputs the defined tensors of its arguments and its result
    [[nodiscard]] virtual std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                                     const std::vector<Tensor>& outputs) const;
    /// "Conv2d", as summaries print it.
    [[nodiscard]] virtual std::string type_name() const;

    /// Which class promises that a recorded step may call `forward` once and then repeat what it launched
    /// (docs/capture.md): that it launches the same for every input of the same shape and type, but for what it reads
    /// by training(), guarded() or capture_guard(). A class that does says
    ///
    ///     const std::type_info& capture_safe() const override { return typeid(Net); }
    ///
    /// and speaks for itself alone: not for children, and not for classes that derive from it. void, as here, promises
    /// nothing.
    [[nodiscard]] virtual const std::type_info& capture_safe() const;
    /// Of this module and all below it, the first whose very class does not promise to be capture_safe, such as "module
    /// '2.norm' (MyNorm)"; empty when all do.
    [[nodiscard]] std::string not_capture_safe() const;

    /// The parameter of this name, of this module itself, as the module computes with it.
    /// @throws ValueError where there is none
    [[nodiscard]] Tensor parameter_value(std::string_view name) const;
    /// Whether parametrisations compute the parameter of this name, or any where no name is given (parametrize.hpp).
    /// @throws ValueError for a name that is no parameter
    [[nodiscard]] bool is_parametrized(std::string_view name = {}) const;

  protected:
    /// Registers a trained tensor, which requires a gradient from then on. Its member is a Parameter, which
    /// parametrisations can get at, or a Tensor, for a parameter that has none. An undefined one (no bias) is passed
    /// through. Another module's parameter ties the two: parameter("weight", encoder.weight()).
    Parameter parameter(std::string_view name, Tensor value);
    /// Registers a tensor that is kept but not trained.
    Tensor buffer(std::string_view name, Tensor value);
    /// Registers a child, in the mode of this module, and gives it back; its address does not change when this module
    /// is moved. The child itself is moved once, to its place: one that refers to itself (a lambda that captures
    /// `this`) is built there, by emplace().
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

    /// A member of this module that `forward` decides by, such as `guarded(&Dropout::p_)`: a recorded step is
    /// called and recorded anew when the member has changed, or the module has moved or ended. The member's type can be
    /// copied and compared.
    template <class M, class Owner>
    const M& guarded(M Owner::*member) const {
        const M& now = static_cast<const Owner&>(*this).*member;
        if (is_capturing())
            add_capture_guard([here = lifetime_token_.watch(), owner = &static_cast<const Owner&>(*this), member,
                               value = now] { return !here.expired() && owner->*member == value; });
        return now;
    }

    /// A call of the module, from before its arguments are looked at until its result is there: opens the scope of its
    /// name, registers what a recorded step depends on, and counts its tensors as memory of the scope.
    class DECLIVITY_API Call {
      public:
        /// @throws ValueError for a module that was moved from
        explicit Call(Module& module);
        ~Call();
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        /// @throws ValueError unless the first argument is defined
        void require_defined(const Tensor& first) const;
        /// Hooks are about to be called. @throws Unsupported in a recorded step that allows none (CaptureOptions::hooks)
        void runs_hooks() const;
        /// Whether somebody looks on (ObserveCalls).
        [[nodiscard]] static bool observed() noexcept;
        void tell(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const;

      private:
        friend class detail::UnregisteredCalls;
        Module& module_;
        Scope scope_;
        const Call* caller_;  // the call of this thread within which this one is, or null
        const Module* root_;
    };
    /// @throws ValueError when it was moved from
    void require_in_place(std::string_view path = {}) const;
    /// For all that gives out children: a recorded step that asks is called and recorded anew when their number has
    /// changed, or the module has moved or ended.
    void guard_children() const;
    /// A number for a hook that is registered. @throws ValueError naming `function` for an empty one
    int new_hook(std::string_view function, bool callable);
    /// What a call launches may be another from now on: recorded steps are recorded anew.
    void note_change() noexcept { ++changes_; }
    /// Of the first parameter or buffer, if there is one.
    [[nodiscard]] TensorOptions options_of_tensors() const;

  private:
    friend class ModuleParametrizations;
    friend class detail::UnregisteredCalls;
    struct OwnParameter {
        std::string name;
        std::shared_ptr<detail::ParameterSlot> slot;
    };
    /// Tells guards whether the module is still where it was.
    class DECLIVITY_API LifetimeToken {
      public:
        LifetimeToken() = default;
        LifetimeToken(LifetimeToken&& other) noexcept { other.token_.reset(); }
        LifetimeToken& operator=(LifetimeToken&& other) noexcept;
        std::weak_ptr<const void> watch() const;

      private:
        mutable std::shared_ptr<const void> token_;  // made when it is first asked for
    };
    void guard_call() const;
    /// Callable says yes. The scopes of others, such as lists, are never opened: those below them have both names.
    [[nodiscard]] virtual bool is_called() const noexcept { return false; }
    void set_scope_name(std::string name);

    void set_mode(bool training) noexcept;
    void adopt_children() noexcept;
    void place();
    void forget_places();
    void check_name(std::string_view name) const;
    void collect(std::string_view prefix, std::vector<NamedTensor>* parameters,
                 std::vector<NamedTensor>* buffers) const;

    std::string scope_name_;
    std::vector<OwnParameter> parameters_;
    std::vector<NamedTensor> buffers_;
    std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
    Module* parent_ = nullptr;  // whose child it is
    bool training_ = true;
    bool external_ = false;
    bool reported_ = false;  // as called without being a child
    std::uint64_t changes_ = 0;
    LifetimeToken lifetime_token_;
    bool placed_ = false;  // its tensors count as memory of its scope
    bool moved_from_ = false;
};

}  // namespace declivity::nn
