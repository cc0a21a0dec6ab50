// Layer 6. Callable: base class of modules that can be called, with any argument and result types.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/nn/module.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/tensors_of.hpp>

namespace declivity::nn {

/// @addtogroup nn_module
/// @{

template <class Signature>
class Callable;

namespace detail {

class UnregisteredCalls;

/// operator() with the number of arguments in `First`, and with fewer: missing arguments are default-constructed.
template <class R, class Arguments, class First>
class CallWith;

template <class R, class... Args>
class DECLIVITY_API CallWith<R, std::tuple<Args...>, std::index_sequence<>> : public Module {
  public:
    R operator()() requires(sizeof...(Args) == 0) { return static_cast<Callable<R(Args...)>*>(this)->call({}); }
    void operator()() requires(sizeof...(Args) != 0) = delete;  // the first argument is required
};

template <class R, class... Args, std::size_t... I>
requires(sizeof...(I) > 0) class DECLIVITY_API CallWith<R, std::tuple<Args...>, std::index_sequence<I...>>
    : public CallWith<R, std::tuple<Args...>, std::make_index_sequence<sizeof...(I) - 1>> {
    using All = std::tuple<Args...>;
    using Fewer = CallWith<R, All, std::make_index_sequence<sizeof...(I) - 1>>;
    using Rest = std::make_index_sequence<sizeof...(Args) - sizeof...(I)>;

    template <std::size_t... J>
    static constexpr bool can_leave_out(std::index_sequence<J...>) {
        return (std::default_initializable<std::tuple_element_t<sizeof...(I) + J, All>> && ...);
    }
    template <std::size_t... J>
    static All completed(std::index_sequence<J...>, std::tuple_element_t<I, All>&&... given) {
        return All(std::move(given)..., std::tuple_element_t<sizeof...(I) + J, All>()...);
    }

  public:
    using Fewer::operator();
    R operator()(std::tuple_element_t<I, All>... given) requires(can_leave_out(Rest())) {
        return static_cast<Callable<R(Args...)>*>(this)->call(completed(Rest(), std::move(given)...));
    }
};

/// The values that are defined.
template <class... Values>
std::vector<Tensor> defined_tensors_of(const Values&... values) {
    std::vector<Tensor> all;
    (declivity::detail::append_tensors_of(all, values), ...);
    std::erase_if(all, [](const Tensor& item) { return !item.defined(); });
    return all;
}

}  // namespace detail

/// RAII scope of a call of the module: opens the scope of its name, registers dependencies of a captured step, and
/// attributes its tensors to the scope in memory statistics.
class DECLIVITY_API Module::Call {
  public:
    /// @throws ValueError for a moved-from module
    explicit Call(Module& module);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// @throws ValueError unless the first argument is defined
    void require_defined(const Tensor& first) const;
    /// Must be called before hooks. @throws Unsupported in a captured step that does not allow hooks
    /// (CaptureOptions::hooks)
    void runs_hooks() const;
    /// True if there are observers (ObserveCalls).
    [[nodiscard]] static bool observed() noexcept;
    void notify_observers(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const;
    /// Returns the id of a new hook. @throws ValueError naming `function` for an empty one
    [[nodiscard]] static int new_hook(Module& module, std::string_view function, bool callable);

  private:
    friend class detail::UnregisteredCalls;
    Module& module_;
    Scope scope_;
    const Call* caller_;  // the enclosing call of this thread, or null
    const Module* root_;
};

/// A module that is called with arguments of these types and returns an R; each is a tensor or a type with
/// tensors_of(), by value. A subclass overrides `forward`:
///
///     struct Attention : nn::Callable<Tensor(Tensor query, Tensor memory, Tensor mask)> {
///         Tensor forward(Tensor query, Tensor memory, Tensor mask) override;
///     };
///     Attention attention;
///     attention(query, memory);       // the mask is omitted: an undefined tensor
///
/// Omitted trailing arguments are default-constructed.
///
/// Hooks are called with the module, before and after `forward`, in registration order. Under CaptureOptions::hooks
/// they may only enqueue work, like tensor hooks: a replay does not call them.
template <class R, class... Args>
class DECLIVITY_API Callable<R(Args...)>
    : public detail::CallWith<R, std::tuple<Args...>, std::index_sequence_for<Args...>> {
    static_assert((std::is_same_v<Args, std::decay_t<Args>> && ...) && std::is_same_v<R, std::decay_t<R>>,
                  "Callable: expected types by value: Callable<Tensor(Tensor)>, not Callable<Tensor(const Tensor&)>");
    static_assert((std::is_copy_constructible_v<Args> && ...),
                  "Callable: expected copyable arguments, for hooks and observers");
    static_assert(!std::is_void_v<R>, "Callable: expected a result type, got void");

  public:
    using Arguments = std::tuple<Args...>;
    using Result = R;
    using ForwardPreHook = std::function<void(Callable& module, Arguments& arguments)>;
    using ForwardHook = std::function<void(Callable& module, const Arguments& arguments, R& result)>;

    /// `hook` is called before `forward` and may replace arguments. Returns an id for remove_hook.
    int register_forward_pre_hook(ForwardPreHook hook) {
        const int number = Module::Call::new_hook(*this, "register_forward_pre_hook", hook != nullptr);
        pre_hooks_.emplace_back(number, std::move(hook));
        return number;
    }
    /// `hook` is called after `forward`, with its arguments, and may replace its result. Returns an id for remove_hook.
    int register_forward_hook(ForwardHook hook) {
        const int number = Module::Call::new_hook(*this, "register_forward_hook", hook != nullptr);
        hooks_.emplace_back(number, std::move(hook));
        return number;
    }
    /// Removes a hook of either kind. An id that was removed already is ignored.
    void remove_hook(int number) {
        const auto is = [number](const auto& hook) { return hook.first == number; };
        if (std::erase_if(pre_hooks_, is) + std::erase_if(hooks_, is) > 0) this->note_change();
    }

    /// summary() for a first argument of zeros of the given shape; the others are omitted.
    /// @param dtype of the input; that of the first parameter if none
    [[nodiscard]] std::string summary(
        const Shape& input, std::optional<DType> dtype = std::nullopt) requires std::invocable<Callable&, Tensor> {
        TensorOptions options = this->options_of_tensors();
        if (dtype) options.dtype = *dtype;
        const Tensor x = zeros(input, options);
        return this->summary_of({x}, [&] { (void)(*this)(x); });
    }

  protected:
    virtual R forward(Args... arguments) = 0;

  private:
    template <class, class, class>
    friend class detail::CallWith;

    [[nodiscard]] bool is_called() const noexcept final { return true; }
    static constexpr bool first_is_tensor() {
        if constexpr (sizeof...(Args) == 0) return false;
        else return std::is_same_v<std::tuple_element_t<0, Arguments>, Tensor>;
    }
    void require_first(const Module::Call& call, const Arguments& arguments) const {
        if constexpr (first_is_tensor()) call.require_defined(std::get<0>(arguments));
    }
    R forward_with(Arguments& arguments) {
        return std::apply([this](Args&... each) { return forward(std::move(each)...); }, arguments);
    }

    R call(Arguments arguments) {
        const Module::Call call(*this);
        require_first(call, arguments);
        if (pre_hooks_.empty() && hooks_.empty() && !Module::Call::observed()) [[likely]]
            return forward_with(arguments);
        return call_seen(call, std::move(arguments));
    }
    /// Call with hooks or observers. The hooks are copied, since a hook may add or remove hooks.
    R call_seen(const Module::Call& call, Arguments arguments) {
        if (!pre_hooks_.empty() || !hooks_.empty()) call.runs_hooks();
        for (const auto& [number, hook] : std::vector(pre_hooks_)) hook(*this, arguments);
        require_first(call, arguments);
        const Arguments seen = arguments;
        R result = forward_with(arguments);
        for (const auto& [number, hook] : std::vector(hooks_)) hook(*this, seen, result);
        if (Module::Call::observed())
            call.notify_observers(detail::defined_tensors_of(seen), detail::defined_tensors_of(result));
        return result;
    }

    std::vector<std::pair<int, ForwardPreHook>> pre_hooks_;
    std::vector<std::pair<int, ForwardHook>> hooks_;
};

/// A module from one tensor to one tensor, as most layers are.
using Layer = Callable<Tensor(Tensor)>;
extern template class DECLIVITY_API Callable<Tensor(Tensor)>;

/// Table of the layers that a call with these inputs runs, in evaluation mode and without gradients: output shapes,
/// parameters, multiply-adds. The last line has the totals.
template <class R, class... Args, class... Inputs>
requires std::invocable < Callable<R(Args...)>
&, const Inputs&... > std::string summary(Callable<R(Args...)>& model, const Inputs&... inputs) {
    return model.summary_of(detail::defined_tensors_of(inputs...), [&] { (void)model(inputs...); });
}

/// RAII observer of all module calls of this thread: after each call it receives the path of scopes, the module, and
/// the defined tensors of arguments and result (tensors_of). Parametrizations of parameters are excluded.
class DECLIVITY_API ObserveCalls {
  public:
    using Observer = std::function<void(const std::string& path, const Module& module,
                                        const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs)>;
    explicit ObserveCalls(Observer observer);
    ~ObserveCalls();
    ObserveCalls(const ObserveCalls&) = delete;
    ObserveCalls& operator=(const ObserveCalls&) = delete;

  private:
    Observer observer_;
    const Observer* before_;
};

/// @}

}  // namespace declivity::nn
