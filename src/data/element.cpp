#include "element.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "io/with_type.hpp"

namespace declivity::data {
namespace {

/// Rounds and saturates to an integer type; 0 for NaN.
template <class T>
T nearest(double value) {
    if constexpr (std::is_same_v<T, bool>) return value != 0;
    if (std::isnan(value)) return 0;
    // The largest number of a 64-bit type is not a double, so values that reach it are handled before the conversion.
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(std::nearbyint(value));
}

void refuse_16bit_float(const char* function, DType dtype) {
    if (is_16bit_float(dtype))
        throw TypeError(fmt::format("{}: expected f32, f64, integers or bool, got {}", function, name_of(dtype)));
}

}  // namespace

std::vector<std::byte> element_of(DType dtype, double value) {
    std::vector<std::byte> bytes(size_of(dtype));
    io::with_type(dtype, [&]<class T>(T) {
        T element{};
        if constexpr (std::is_integral_v<T>) {
            element = nearest<T>(value);
            if (static_cast<double>(element) != value)
                throw ValueError(
                    fmt::format("pad: expected a padding value representable in {}, got {}", name_of(dtype), value));
        } else {
            element = static_cast<T>(value);
        }
        std::memcpy(bytes.data(), &element, sizeof(T));
    });
    return bytes;
}

void to_floats(const char* function, DType dtype, std::span<const std::byte> from, std::span<float> to) {
    refuse_16bit_float(function, dtype);
    io::with_type(dtype, [&]<class T>(T element) {
        if constexpr (std::is_arithmetic_v<T>)
            for (std::size_t i = 0; i < to.size(); ++i) {
                std::memcpy(&element, from.data() + i * sizeof(T), sizeof(T));
                to[i] = static_cast<float>(element);
            }
    });
}

void from_floats(const char* function, DType dtype, std::span<const float> from, std::span<std::byte> to) {
    refuse_16bit_float(function, dtype);
    io::with_type(dtype, [&]<class T>(T element) {
        if constexpr (std::is_arithmetic_v<T>)
            for (std::size_t i = 0; i < from.size(); ++i) {
                if constexpr (std::is_floating_point_v<T>) element = static_cast<T>(from[i]);
                else element = nearest<T>(static_cast<double>(from[i]));
                std::memcpy(to.data() + i * sizeof(T), &element, sizeof(T));
            }
    });
}

}  // namespace declivity::data
