// Layer 6. HostArray: an array in host memory, as read from files and copied to tensors.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Dense row-major array of one element type, in native byte order.
struct DECLIVITY_API HostArray {
    DType dtype = DType::f32;
    Shape shape;
    /// shape.numel() * size_of(dtype) bytes.
    std::vector<std::byte> bytes;

    /// Copies typed values. @throws ShapeError unless there are shape.numel() values
    template <class T>
    static HostArray of(const Shape& shape, std::span<const T> values) {
        HostArray array{dtype_of<T>(), shape, {}};
        const std::span<const std::byte> raw = std::as_bytes(values);
        array.bytes.assign(raw.begin(), raw.end());
        array.check("HostArray::of");
        return array;
    }
    template <class T>
    static HostArray of(const Shape& shape, const std::vector<T>& values) {
        return of(shape, std::span<const T>(values));
    }
    /// One byte per element, since std::vector<bool> is a bitset.
    template <std::same_as<bool> T>
    static HostArray of(const Shape& shape, const std::vector<T>& values) {
        HostArray array{DType::boolean, shape, std::vector<std::byte>(values.size())};
        for (std::size_t i = 0; i < values.size(); ++i) array.bytes[i] = values[i] ? std::byte{1} : std::byte{0};
        array.check("HostArray::of");
        return array;
    }
    /// A scalar, of shape [].
    template <class T>
    requires std::is_arithmetic_v<T>
    static HostArray of(T value) { return of(Shape{}, std::span<const T>(&value, 1)); }

    /// The elements. @throws TypeError if their type is not T; ShapeError if bytes and shape do not match
    template <class T>
    [[nodiscard]] std::span<const T> as() const {
        check_type("HostArray::as", dtype_of<T>());
        check("HostArray::as");
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
    /// Mutable overload.
    template <class T>
    [[nodiscard]] std::span<T> as() {
        const std::span<const T> values = std::as_const(*this).template as<T>();
        return {const_cast<T*>(values.data()), values.size()};
    }

    /// All elements as doubles. Integers beyond 2^53 are rounded.
    [[nodiscard]] std::vector<double> to_doubles() const;

    /// @throws ShapeError naming `function` unless bytes, shape and type match
    void check(const char* function) const;
    /// @throws TypeError naming `function` unless the elements have the given type
    void check_type(const char* function, DType wanted) const;

    friend bool operator==(const HostArray&, const HostArray&) = default;
};

/// @}

}  // namespace declivity::io
