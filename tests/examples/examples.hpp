// Examples in the docstrings of public headers: runtime of the tests that cmake/DocExamples.cmake generates.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <declivity/tensor/tensor.hpp>
#include <declivity/tensor/tensors_of.hpp>

namespace declivity::test {

/// A tensor of this type from nested brackets: "[[1, 2], [3, 4]]"; without axes from a number. Elements may be nan,
/// inf, -inf, true and false.
/// @throws std::invalid_argument if the rows differ in size, or for other text
Tensor literal(std::string_view type, std::string_view text);

std::string shown(const Tensor& x);
std::string shown(double number);

/// A value as an example writes it: elements in nested brackets, numbers with at most 4 significant digits, shapes in
/// brackets, strings in quotes; lists of tensors, and structs of tensors, in braces.
template <class T>
std::string shown(const T& value) {
    if constexpr (std::convertible_to<T, Tensor>) {
        return shown(Tensor(value));
    } else if constexpr (std::same_as<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::integral<T>) {
        return std::to_string(value);
    } else if constexpr (std::floating_point<T>) {
        return shown(static_cast<double>(value));
    } else if constexpr (std::convertible_to<T, std::string_view>) {
        return '"' + std::string(std::string_view(value)) + '"';
    } else if constexpr (std::same_as<T, DType>) {
        return std::string(name_of(value));
    } else if constexpr (std::same_as<T, Shape>) {
        return value.str();
    } else {
        std::string out;
        for (const Tensor& part : tensors_of(value)) out += (out.empty() ? "" : ", ") + shown(part);
        return '{' + out + '}';
    }
}

struct Example {
    int line;
    const char* expression;
    const char* result;
    std::string (*run)();
};

/// The examples of a header.
class Examples {
  public:
    Examples(std::string_view header, std::initializer_list<Example> examples);
    [[nodiscard]] const std::string& header() const { return header_; }
    [[nodiscard]] const std::vector<Example>& list() const { return list_; }
    /// Checks that each expression has its result, white space left out.
    void check() const;
    /// The examples of all headers.
    static std::vector<const Examples*>& all();

  private:
    std::string header_;
    std::vector<Example> list_;
};

}  // namespace declivity::test
