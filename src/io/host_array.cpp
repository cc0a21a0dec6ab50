#include <declivity/io/host_array.hpp>

#include <cstring>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "with_type.hpp"

namespace declivity::io {

std::vector<double> HostArray::to_doubles() const {
    check("HostArray::to_doubles");
    std::vector<double> out(bytes.size() / size_of(dtype));
    with_type(dtype, [&]<class T>(T element) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
            out[i] = static_cast<double>(element);
        }
    });
    return out;
}

void HostArray::check(const char* function) const {
    // Divided step by step, since the product of an invalid shape could overflow.
    std::size_t elements = bytes.size() / size_of(dtype);
    bool consistent = bytes.size() % size_of(dtype) == 0;
    bool empty = false;
    for (const std::int64_t extent : shape) {
        if (extent < 0)
            throw ShapeError(fmt::format("{}: expected no negative sizes, got shape {}", function, shape.str()));
        if (extent == 0) empty = true;
    }
    for (const std::int64_t extent : shape) {
        if (empty) break;
        consistent = consistent && elements % static_cast<std::size_t>(extent) == 0;
        elements /= static_cast<std::size_t>(extent);
    }
    consistent = consistent && elements == (empty ? 0U : 1U);
    if (!consistent)
        throw ShapeError(fmt::format("{}: expected {} values of type {} and {} bytes each, got {} bytes", function,
                                     shape.str(), name_of(dtype), size_of(dtype), bytes.size()));
}

void HostArray::check_type(const char* function, DType expected) const {
    if (dtype != expected)
        throw TypeError(
            fmt::format("{}: expected {}, got an array of {}", function, name_of(expected), name_of(dtype)));
}

}  // namespace declivity::io
