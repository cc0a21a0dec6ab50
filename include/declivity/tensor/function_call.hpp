// Layer 3. A call of a function of tensors, as data: its name, its inputs, its attributes, and what it gave.
//
// Each function of the catalogue opens with one. Errors and profiles take its name; whoever watches calls, such as an
// export, is told of all of it.
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

/// One input of a call, or several of one name (the parts of concat). Undefined: left out by the caller.
struct CallInput {
    std::string_view name;
    std::span<const Tensor> tensors;

    CallInput() = default;
    CallInput(std::string_view called, const Tensor& tensor) : name(called), tensors(&tensor, 1) {}
    CallInput(std::string_view called, std::span<const Tensor> list) : name(called), tensors(list) {}
};

/// A size, a flag, a number, a word, or a list of sizes or numbers.
using AttributeValue =
    std::variant<bool, std::int64_t, double, std::string_view, std::span<const std::int64_t>, std::span<const double>>;

/// What a call was given beside tensors. Lists and words are the caller's.
struct DECLIVITY_API CallAttribute {
    std::string_view name;
    AttributeValue value;

    CallAttribute() = default;
    template <class T>
    CallAttribute(std::string_view called, const T& of) : name(called), value(value_of(of)) {}
    /// As Python writes it: "2", "0.5", "True", "'mean'", "(1, 1)".
    [[nodiscard]] std::string str() const;

  private:
    static AttributeValue of_scalar(const Scalar& number) {
        if (number.is_floating()) return number.to_double();
        if (number.kind() == DTypeKind::boolean) return number.to<bool>();
        return number.to<std::int64_t>();
    }
    template <class T>
    static AttributeValue value_of(const T& of) {
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) return of;
        else if constexpr (std::is_same_v<T, Scalar>) return of_scalar(of);
        else if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(of);
        else if constexpr (std::is_enum_v<T>) return name_of(of);
        else if constexpr (std::is_convertible_v<const T&, std::string_view>) return std::string_view(of);
        else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*of.begin())>, double>)
            return std::span<const double>(of.begin(), of.end());
        else return std::span<const std::int64_t>(of.begin(), of.end());
    }
};

/// Alive while the function runs, in a variable of it.
///
///     Tensor softmax(const Tensor& x, std::int64_t axis) {
///         const FunctionCall call("softmax", {{"x", x}}, {{"axis", axis}});
///         ...
///         return call.result(out);
///     }
class DECLIVITY_API FunctionCall {
  public:
    static constexpr std::size_t kMaxInputs = 8, kMaxAttributes = 12;

    /// @param name as users know it; outlives the call
    /// @param inputs,attributes at most kMaxInputs, kMaxAttributes; what they refer to outlives the call
    FunctionCall(std::string_view name, std::initializer_list<CallInput> inputs,
                 std::initializer_list<CallAttribute> attributes = {})
        : FunctionCall(name, name, std::span(inputs.begin(), inputs.size()),
                       std::span(attributes.begin(), attributes.size())) {}
    /// @param called what errors call it, where that is another name of the same function
    FunctionCall(std::string_view name, std::string_view called, std::span<const CallInput> inputs,
                 std::span<const CallAttribute> attributes);
    ~FunctionCall();
    FunctionCall(const FunctionCall&) = delete;
    FunctionCall& operator=(const FunctionCall&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] std::span<const CallInput> inputs() const noexcept { return {inputs_.data(), input_count_}; }
    [[nodiscard]] std::span<const CallAttribute> attributes() const noexcept {
        return {attributes_.data(), attribute_count_};
    }
    /// The call within which it was made, of this thread; null for one that the program made itself, or that backward
    /// made.
    [[nodiscard]] const FunctionCall* caller() const noexcept { return caller_; }

    /// What the function gives: tells who watches, and gives it back.
    [[nodiscard]] Tensor result(Tensor tensor) const {
        if (observed_) tell({&tensor, 1});
        return tensor;
    }
    /// The same for several results, in order.
    void results(std::span<const Tensor> tensors) const {
        if (observed_) tell(tensors);
    }
    void results(std::initializer_list<Tensor> tensors) const { results({tensors.begin(), tensors.size()}); }

    /// @throws ValueError naming the function and the input, unless all inputs of these names are defined
    void require_defined(std::initializer_list<std::string_view> names) const;

  private:
    void tell(std::span<const Tensor> results) const;

    std::string_view name_;
    // Of each as many as there are: most calls are watched by nobody.
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

/// While one lives, it is told of the calls of this thread, those within functions of the library included
/// (FunctionCall::caller()). What it does with tensors itself is not told.
class DECLIVITY_API CallObserver {
  public:
    CallObserver();
    virtual ~CallObserver();
    CallObserver(const CallObserver&) = delete;
    CallObserver& operator=(const CallObserver&) = delete;

    /// Before the function looks at its arguments.
    virtual void called(const FunctionCall& call) = 0;
    /// With what the function gives; not for a call that throws.
    virtual void returned(const FunctionCall& call, std::span<const Tensor> results) = 0;

  private:
    CallObserver* before_;
    friend class FunctionCall;
};

}  // namespace declivity
