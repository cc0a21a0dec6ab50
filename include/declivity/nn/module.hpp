// Layer 6. Module: parameters, buffers and child modules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <declivity/nn/parameter.hpp>
#include <declivity/runtime/command_list.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/state_dict.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::nn {

namespace detail {

struct ModuleState;

}  // namespace detail

/// @addtogroup nn_module
/// @{

/// Base class of all layers and networks: holds parameters, buffers and children. Modules that can be called derive
/// from Callable (callable.hpp), which declares `forward`:
///
///     struct Net : nn::Layer {  // nn::Callable<Tensor(Tensor)>
///         nn::Conv2d& conv = add("conv", nn::Conv2d(1, 16, 3));
///         nn::Linear& dense = add("dense", nn::Linear(16, 10));
///         Tensor forward(Tensor x) override { return dense(flatten(global_avg_pool2d(relu(conv(x))))); }
///     };
///
/// Modules can be moved, not copied; tensors obtained earlier still refer to the module's data. Children are allocated
/// on the heap, so references to them, as in the example, stay valid after a move. References to the module itself do
/// not: a lambda that captures `this`, a pointer to a member. Construct such a module in place, as a child by
/// emplace(). A moved-from module can be destroyed or assigned to; calls and access to parameters and children throw
/// ValueError.
///
/// A layer that is a plain member (`nn::Linear dense{16, 10};`) is not a child: it is not included in parameters(), not
/// saved, and not affected by train(), eval() and to(). If `forward` calls such a module with gradients enabled, and it
/// has parameters that require a gradient, or is dropout, a warning on stderr names both, once for each module; within
/// Trainer::fit the call throws ValueError. Use set_external() for a module that is trained separately.
class DECLIVITY_API Module {
  public:
    Module();
    virtual ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    Module(Module&& from) noexcept;
    Module& operator=(Module&& from) noexcept;

    /// Parameters of this module and its descendants, in registration order. A tensor that is registered twice (tied
    /// weights) is listed once, under its first name.
    [[nodiscard]] std::vector<Tensor> parameters() const;
    [[nodiscard]] std::vector<NamedTensor> named_parameters() const;
    /// Tensors that are part of the state but not trained, such as running statistics. Each is listed once.
    [[nodiscard]] std::vector<NamedTensor> named_buffers() const;
    [[nodiscard]] std::vector<std::pair<std::string, Module*>> children() const;
    /// Calls visit(module) for each child, in registration order.
    template <class Visit>
    void for_each_child(Visit&& visit) const {
        require_in_place();
        guard_children();
        for (std::size_t i = 0; Module* const child = child_at(i); ++i) visit(*child);
    }

    /// Moves all parameters and buffers; handles to them stay valid. Gradients are dropped. Old and new tensors are in
    /// memory until all are converted: a call that fails (OutOfMemory) leaves the module unchanged.
    void to(const Device& device);
    /// Converts all floating parameters and buffers. @throws TypeError for a type that is not floating
    void to(DType dtype);
    /// Sets training or evaluation mode, which affects dropout and batch normalisation. A child that is added later, or
    /// replaced by an assignment, takes the mode of its parent.
    void train(bool on = true);
    void eval() { train(false); }
    [[nodiscard]] bool training() const noexcept;
    void zero_grad();

    /// Declares that this module is called by modules other than its parent, and is trained, saved and moved
    /// separately, for example a critic called by a loss. Disables the warning for such calls.
    void set_external(bool external = true) noexcept;
    [[nodiscard]] bool external() const noexcept;

    /// Parameters and buffers by name; a tied tensor is listed under each of its names. The tensors share memory with
    /// the module.
    [[nodiscard]] StateDict state_dict() const;
    /// Copies values into parameters and buffers of the same names. A tied tensor may have its values under any or all
    /// of its names; different bits under two of them are an error, for which the values are read.
    /// @return missing and unexpected names; both empty if strict
    /// @throws ValueError listing the missing and unexpected names (if strict), or two names of one tensor whose values
    /// differ; ShapeError, TypeError; nothing is changed then
    LoadedState load_state_dict(const StateDict& state, bool strict = true);

    /// Table of the layers run by `call`, a call of this module in evaluation mode and without gradients: output
    /// shapes, parameters, multiply-adds. Implements summary() of callable.hpp.
    /// @param inputs of the call, for the last line
    [[nodiscard]] std::string summary_of(const std::vector<Tensor>& inputs, const std::function<void()>& call);
    /// Number of multiply-adds of one call of this module itself, without its children.
    /// @param inputs,outputs the defined tensors of its arguments and its result
    [[nodiscard]] virtual std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                                     const std::vector<Tensor>& outputs) const;
    /// Class name for summaries, such as "Conv2d".
    [[nodiscard]] virtual std::string type_name() const;

    /// The class for which it is guaranteed that graph capture may call `forward` once and replay its commands
    /// (docs/internals/capture.md): that it launches the same commands for every input of the same shape and type,
    /// except for state read by training(), guarded() or capture_guard(). Such a class overrides this by
    ///
    ///     const std::type_info& capture_safe() const override { return typeid(Net); }
    ///
    /// which covers neither children nor derived classes. void, the default, guarantees nothing.
    [[nodiscard]] virtual const std::type_info& capture_safe() const;
    /// Deprecated name of capture_safe(), for classes that override it under that name.
    [[nodiscard]] virtual const std::type_info& replayable() const;
    /// Description of the first of this module and its descendants whose exact class is not capture_safe, such as
    /// "module '2.norm' (MyNorm)"; empty if there is none.
    [[nodiscard]] std::string not_capture_safe() const;
    [[deprecated("not_capture_safe")]] [[nodiscard]] std::string not_replayable() const { return not_capture_safe(); }

    /// The value of a parameter of this module, after parametrization.
    /// @throws ValueError if there is none of this name
    [[nodiscard]] Tensor parameter_value(std::string_view name) const;
    /// True if the parameter of this name, or any parameter if no name is given, is parametrized (parametrize.hpp).
    /// @throws ValueError for a name that is not a parameter
    [[nodiscard]] bool is_parametrized(std::string_view name = {}) const;

  protected:
    /// Registers a trainable tensor, which then requires a gradient. The member that stores it is a Parameter, which
    /// supports parametrization, or a Tensor, which does not. An undefined tensor (no bias) is passed through.
    /// Registering a parameter of another module ties the two: parameter("weight", encoder.weight()).
    Parameter parameter(std::string_view name, Tensor value);
    /// Registers a tensor that is part of the state but not trained.
    Tensor buffer(std::string_view name, Tensor value);
    /// Registers a child, in the mode of this module, and returns it; its address is stable even if this module is
    /// moved. The child is moved once, into its heap allocation: construct a child that refers to itself (a lambda that
    /// captures `this`) in place by emplace().
    template <class M>
    M& add(std::string_view name, M module) {
        static_assert(std::is_base_of_v<Module, M>, "a child must be a Module");
        auto owned = std::make_unique<M>(std::move(module));
        M& reference = *owned;
        add_child(name, std::move(owned));
        return reference;
    }
    /// Constructs a child in place, from constructor arguments, and returns it: for modules that cannot or must not be
    /// moved. Options need an explicit type here: emplace<nn::Conv2d>("conv", 1, 16, 3, nn::Conv2dOptions{.padding =
    /// 1}).
    template <class M, class... Args>
    M& emplace(std::string_view name, Args&&... args) {
        static_assert(std::is_base_of_v<Module, M>, "a child must be a Module");
        auto owned = std::make_unique<M>(std::forward<Args>(args)...);
        M& reference = *owned;
        add_child(name, std::move(owned));
        return reference;
    }
    /// @throws ValueError for a name that is taken or contains a dot, a null pointer, or a moved-from module
    void add_child(std::string_view name, std::unique_ptr<Module> module);

    /// Adds a capture guard on a member that `forward` depends on, such as `guarded(&Dropout::p_)`, and returns its
    /// value: a captured step is captured again if the member has changed, or the module was moved or destroyed. The
    /// member's type must be copyable and comparable.
    template <class M, class Owner>
    const M& guarded(M Owner::*member) const {
        const Owner& owner = static_cast<const Owner&>(*this);
        if (is_capturing()) guard([&owner, member, value = owner.*member] { return owner.*member == value; });
        return owner.*member;
    }

    /// @throws ValueError if it was moved from
    void require_in_place(std::string_view path = {}) const;
    /// Must be called by all accessors of children: a captured step that uses them is captured again if their number
    /// has changed, or the module was moved or destroyed.
    void guard_children() const;
    /// Invalidates captured steps, since a call may launch other commands from now on.
    void note_change() noexcept;
    /// Options of the first parameter or buffer, if there is one.
    [[nodiscard]] TensorOptions options_of_tensors() const;

    class Call;  // RAII scope of a call, for Callable (callable.hpp)

  private:
    friend struct detail::ModuleState;
    /// Overridden by Callable. The scopes of other modules, such as lists, are never opened: their children show both
    /// names.
    [[nodiscard]] virtual bool is_called() const noexcept { return false; }
    /// Null after the last child.
    [[nodiscard]] Module* child_at(std::size_t index) const noexcept;
    /// Adds a capture guard that also fails once the module was moved or destroyed.
    void guard(std::function<bool()> is_unchanged) const;

    std::unique_ptr<detail::ModuleState> state_;  // null in a moved-from module
    Module* parent_ = nullptr;                    // a moved-from child remains a child
};

/// @}

}  // namespace declivity::nn
