#include "reduce_defines.hpp"

#include <string_view>

namespace declivity::ops {
namespace {

/// @param type of accumulation
std::string_view identity(Reduce kind, DType type) {
    if (kind == Reduce::sum || kind == Reduce::mean) return "0";
    const bool is_max = kind == Reduce::max;
    if (is_floating(type)) return is_max ? "-INFINITY" : "INFINITY";
    if (!dtype_info(type).is_signed && is_max) return "0";
    switch (type) {
        case DType::i8:
            return is_max ? "CHAR_MIN" : "CHAR_MAX";
        case DType::i16:
            return is_max ? "SHRT_MIN" : "SHRT_MAX";
        case DType::u16:
            return "USHRT_MAX";
        case DType::i32:
            return is_max ? "INT_MIN" : "INT_MAX";
        case DType::u32:
            return "UINT_MAX";
        case DType::i64:
            return is_max ? "LONG_MIN" : "LONG_MAX";
        case DType::u64:
            return "ULONG_MAX";
        default:
            return "UCHAR_MAX";
    }
}

}  // namespace

Defines reduce_defines(Reduce kind, DType accumulate) {
    Defines defines;
    defines.set("ACC", cl_type(accumulate)).set("IDENTITY", identity(kind, accumulate));
    defines.set("COMBINE", kind == Reduce::max ? 1 : kind == Reduce::min ? 2 : 0);
    if (is_floating(accumulate) && (kind == Reduce::sum || kind == Reduce::mean)) defines.set("FLOATING_SUM", 1);
    return defines;
}

}  // namespace declivity::ops
