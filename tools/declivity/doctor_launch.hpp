// Launches kernels of `declivity doctor` and compares their results.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <declivity/runtime/launch.hpp>
#include <fmt/format.h>

namespace declivity::tools::doctor {

template <class T>
Buffer to_device(const Device& device, const std::vector<T>& values) {
    Buffer buffer(device, values.size() * sizeof(T));
    upload(buffer, 0, std::as_bytes(std::span(values)));
    return buffer;
}

template <class T>
std::vector<T> to_host(const Buffer& buffer, std::size_t count) {
    std::vector<T> values(count);
    read(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

template <class T>
BufferArgument argument(const Buffer& buffer) {
    return {buffer, 0, sizeof(T)};
}

/// Runs a kernel (inputs..., out) with one work-item per element of out.
template <class Out, class In, class... Ins>
std::vector<Out> apply(const Kernel& kernel, const std::vector<In>& first, const std::vector<Ins>&... others) {
    const Device device = kernel.device();
    const std::vector<Buffer> buffers{to_device(device, first), to_device(device, others)...};
    const Buffer out(device, first.size() * sizeof(Out));
    std::vector<BufferArgument> inputs;
    for (const Buffer& buffer : buffers) inputs.push_back(argument<In>(buffer));
    const BufferArgument output = argument<Out>(out);
    std::vector<Argument> arguments(inputs.begin(), inputs.end());
    arguments.emplace_back(output);
    launch(kernel, {{first.size()}}, arguments);
    return to_host<Out>(out, first.size());
}

inline bool same(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && (a != 0 || std::signbit(a) == std::signbit(b));
}

/// Returns an empty string if all elements are equal; NaN equals NaN.
/// @param describe describes the operands of the i-th element
template <class T, class Describe>
std::string first_difference(const std::vector<T>& got, const std::vector<T>& expected, Describe&& describe) {
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        bool equal = false;
        if constexpr (std::is_floating_point_v<T>) equal = same(got[i], expected[i]);
        else equal = got[i] == expected[i];
        if (!equal && wrong++ == 0) first = i;
    }
    if (wrong == 0) return {};
    if constexpr (std::is_floating_point_v<T>)
        return fmt::format("{} of {} are wrong, first of {}: {:a} ({}), expected {:a} ({})", wrong, expected.size(),
                           describe(first), got[first], got[first], expected[first], expected[first]);
    else
        return fmt::format("{} of {} are wrong, first of {}: {}, expected {}", wrong, expected.size(), describe(first),
                           got[first], expected[first]);
}
template <class T>
std::string first_difference(const std::vector<T>& got, const std::vector<T>& expected) {
    return first_difference(got, expected, [](std::size_t i) { return fmt::format("element {}", i); });
}

/// first_difference() of results with parallel operand lists.
template <class T>
auto describe_inputs(const std::vector<T>& a, const std::vector<T>& b = {}, const std::vector<T>& c = {}) {
    return [&a, &b, &c](std::size_t i) {
        std::string out = fmt::format("({}", a[i]);
        if (!b.empty()) out += fmt::format(", {}", b[i]);
        if (!c.empty()) out += fmt::format(", {}", c[i]);
        return out + ")";
    };
}

/// Random bit patterns, reproducible.
template <class T>
std::vector<T> any_bits(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    std::vector<T> out(count);
    for (T& output : out) {
        if constexpr (sizeof(T) == 8) output = std::bit_cast<T>(engine());
        else if constexpr (std::is_same_v<T, float>)
            output = std::bit_cast<float>(static_cast<std::uint32_t>(engine() >> 32));
        else output = static_cast<T>(engine() >> 32);
    }
    return out;
}

}  // namespace declivity::tools::doctor
