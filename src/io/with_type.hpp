// Layer 6, private. Dispatch from a run-time type to a C++ type.
#pragma once

#include <cstdint>

#include <declivity/ops/dtype.hpp>

namespace declivity::io {

/// Calls visit(T{}) with the C++ type of a type.
template <class Visit>
void with_type(DType dtype, Visit&& visit) {
    switch (dtype) {
        case DType::f32:
            return visit(float{});
        case DType::f64:
            return visit(double{});
        case DType::f16:
            return visit(float16{});
        case DType::bf16:
            return visit(bfloat16{});
        case DType::i8:
            return visit(std::int8_t{});
        case DType::u8:
            return visit(std::uint8_t{});
        case DType::i16:
            return visit(std::int16_t{});
        case DType::u16:
            return visit(std::uint16_t{});
        case DType::i32:
            return visit(std::int32_t{});
        case DType::u32:
            return visit(std::uint32_t{});
        case DType::i64:
            return visit(std::int64_t{});
        case DType::u64:
            return visit(std::uint64_t{});
        case DType::boolean:
            return visit(bool{});
    }
}

}  // namespace declivity::io
