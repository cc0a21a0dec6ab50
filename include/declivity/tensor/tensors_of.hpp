// Layer 3. Enumerates the tensors of a value: of an argument or a result of a module, whatever its type.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

// tensors_of(value) lists them, in order. For a user-defined struct, define an overload next to it:
//
//     struct State { Tensor hidden, cell; };
//     std::vector<Tensor> tensors_of(const State& state) { return {state.hidden, state.cell}; }
//
// A value without tensors gives {}. The list may contain undefined tensors.

inline std::vector<Tensor> tensors_of(const Tensor& tensor) { return {tensor}; }
/// Numbers and strings have none.
template <class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) std::vector<Tensor> tensors_of(const T&) { return {}; }
inline std::vector<Tensor> tensors_of(const std::string&) { return {}; }

// Containers: the tensors of their elements.
template <class T>
std::vector<Tensor> tensors_of(const std::vector<T>& values);
template <class T, std::size_t n>
std::vector<Tensor> tensors_of(const std::array<T, n>& values);
template <class T>
std::vector<Tensor> tensors_of(const std::optional<T>& value);
template <class A, class B>
std::vector<Tensor> tensors_of(const std::pair<A, B>& values);
template <class... Values>
std::vector<Tensor> tensors_of(const std::tuple<Values...>& values);

/// Types with an overload of tensors_of().
template <class T>
concept HasTensors = requires(const T& value) {
    { tensors_of(value) } -> std::convertible_to<std::vector<Tensor>>;
};

namespace detail {

template <class T>
void append_tensors_of(std::vector<Tensor>& to, const T& value) {
    static_assert(HasTensors<T>, "define std::vector<Tensor> tensors_of(const T&) next to the type");
    std::vector<Tensor> more = tensors_of(value);
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace detail

template <class T>
std::vector<Tensor> tensors_of(const std::vector<T>& values) {
    std::vector<Tensor> all;
    for (const T& value : values) detail::append_tensors_of(all, value);
    return all;
}
template <class T, std::size_t n>
std::vector<Tensor> tensors_of(const std::array<T, n>& values) {
    std::vector<Tensor> all;
    for (const T& value : values) detail::append_tensors_of(all, value);
    return all;
}
template <class T>
std::vector<Tensor> tensors_of(const std::optional<T>& value) {
    std::vector<Tensor> all;
    if (value) detail::append_tensors_of(all, *value);
    return all;
}
template <class A, class B>
std::vector<Tensor> tensors_of(const std::pair<A, B>& values) {
    std::vector<Tensor> all;
    detail::append_tensors_of(all, values.first);
    detail::append_tensors_of(all, values.second);
    return all;
}
template <class... Values>
std::vector<Tensor> tensors_of(const std::tuple<Values...>& values) {
    std::vector<Tensor> all;
    std::apply([&](const Values&... each) { (detail::append_tensors_of(all, each), ...); }, values);
    return all;
}

/// @}

}  // namespace declivity
