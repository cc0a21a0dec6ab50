// Layer 3. Call record: a call of a function of tensors as data, with its name, inputs, attributes and results.
//
// Every function of the catalogue creates one. Errors and profiles use its name; observers of calls, such as an
// exporter, receive all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include <declivity/ops/dtype.hpp>
#include <declivity/ops/scalar.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

/// One named input of a call, or several tensors of one name (the parts of concat). Undefined: omitted by the caller.
struct CallInput {
    std::string_view name;
    std::span<const Tensor> tensors;

    CallInput() = default;
    CallInput(std::string_view input_name, const Tensor& tensor) : name(input_name), tensors(&tensor, 1) {}
    CallInput(std::string_view input_name, std::span<const Tensor> list) : name(input_name), tensors(list) {}
};

/// Attribute value: a size, a flag, a number, a string, or a list of sizes or numbers.
using AttributeValue =
    std::variant<bool, std::int64_t, double, std::string_view, std::span<const std::int64_t>, std::span<const double>>;

/// An argument of a call that is not a tensor. Lists and strings are owned by the caller.
struct DECLIVITY_API CallAttribute {
    std::string_view name;
    AttributeValue value;

    CallAttribute() = default;
    template <class T>
    CallAttribute(std::string_view attribute_name, const T& argument)
        : name(attribute_name), value(to_attribute(argument)) {}
    /// Formats the value in Python syntax: "2", "0.5", "True", "'mean'", "(1, 1)".
    [[nodiscard]] std::string str() const;

  private:
    static AttributeValue to_number(const Scalar& number) {
        if (number.is_floating()) return number.to_double();
        if (number.kind() == DTypeKind::boolean) return number.to<bool>();
        return number.to<std::int64_t>();
    }
    template <class T>
    static AttributeValue to_attribute(const T& argument) {
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) return argument;
        else if constexpr (std::is_same_v<T, Scalar>) return to_number(argument);
        else if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(argument);
        else if constexpr (std::is_enum_v<T>) return name_of(argument);
        else if constexpr (std::is_convertible_v<const T&, std::string_view>) return std::string_view(argument);
        else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*argument.begin())>, double>)
            return std::span<const double>(argument.begin(), argument.end());
        else return std::span<const std::int64_t>(argument.begin(), argument.end());
    }
};

/// A local variable of the function, alive while it runs.
///
///     Tensor softmax(const Tensor& x, std::int64_t axis) {
///         const FunctionCall call("softmax", {{"x", x}}, {{"axis", axis}});
///         ...
///         return call.result(out);
///     }
class DECLIVITY_API FunctionCall {
  public:
    static constexpr std::size_t kMaxInputs = 8, kMaxAttributes = 12;

    /// @param name public name of the function; outlives the call
    /// @param inputs,attributes at most kMaxInputs, kMaxAttributes; what they refer to outlives the call
    FunctionCall(std::string_view name, std::initializer_list<CallInput> inputs,
                 std::initializer_list<CallAttribute> attributes = {})
        : FunctionCall(name, name, std::span(inputs.begin(), inputs.size()),
                       std::span(attributes.begin(), attributes.size())) {}
    /// @param alias name in error messages, if the function was called by an alias
    FunctionCall(std::string_view name, std::string_view alias, std::span<const CallInput> inputs,
                 std::span<const CallAttribute> attributes);
    ~FunctionCall();
    FunctionCall(const FunctionCall&) = delete;
    FunctionCall& operator=(const FunctionCall&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] std::span<const CallInput> inputs() const noexcept { return {inputs_.data(), input_count_}; }
    [[nodiscard]] std::span<const CallAttribute> attributes() const noexcept {
        return {attributes_.data(), attribute_count_};
    }
    /// The enclosing call in this thread; null for a call made by the program or by backward.
    [[nodiscard]] const FunctionCall* caller() const noexcept { return caller_; }

    /// Reports the result to the observers, and returns it.
    [[nodiscard]] Tensor result(Tensor tensor) const {
        if (observed_) notify_observers({&tensor, 1});
        return tensor;
    }
    /// Reports several results, in order.
    void results(std::span<const Tensor> tensors) const {
        if (observed_) notify_observers(tensors);
    }
    void results(std::initializer_list<Tensor> tensors) const { results({tensors.begin(), tensors.size()}); }

    /// @throws ValueError naming the function and the input, unless all inputs of these names are defined
    void require_defined(std::initializer_list<std::string_view> names) const;

  private:
    void notify_observers(std::span<const Tensor> results) const;

    std::string_view name_;
    // Unions, so that only the entries in use are constructed: most calls have no observer.
    union {
        std::array<CallInput, kMaxInputs> inputs_;
    };
    union {
        std::array<CallAttribute, kMaxAttributes> attributes_;
    };
    std::size_t input_count_, attribute_count_;
    const FunctionCall* caller_;
    bool observed_;
    FunctionScope scope_;
};

/// Observes the calls of this thread while it is alive, including those within functions of the library
/// (FunctionCall::caller()). Calls that the observer itself makes are not reported.
class DECLIVITY_API CallObserver {
  public:
    CallObserver();
    virtual ~CallObserver();
    CallObserver(const CallObserver&) = delete;
    CallObserver& operator=(const CallObserver&) = delete;

    /// Called before the function checks its arguments.
    virtual void called(const FunctionCall& call) = 0;
    /// Called with the results; not called if the function throws.
    virtual void returned(const FunctionCall& call, std::span<const Tensor> results) = 0;

  private:
    CallObserver* before_;
    friend class FunctionCall;
};

/// @}

}  // namespace declivity
