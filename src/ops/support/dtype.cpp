#include <declivity/ops/dtype.hpp>

#include <array>
#include <ostream>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

constexpr auto kFloating = DTypeKind::floating, kInteger = DTypeKind::integer;

// In the order of DType.
constexpr std::array<DTypeInfo, kDTypes.size()> kTypes{{
    {"f32", 4, kFloating, true, "float", DType::f32, DType::f32},
    {"f64", 8, kFloating, true, "double", DType::f64, DType::f64},
    {"f16", 2, kFloating, true, "ushort", DType::f32, DType::f16},
    {"bf16", 2, kFloating, true, "ushort", DType::f32, DType::bf16},
    {"i8", 1, kInteger, true, "char", DType::i8, DType::i64},
    {"u8", 1, kInteger, false, "uchar", DType::u8, DType::i64},
    {"i16", 2, kInteger, true, "short", DType::i16, DType::i64},
    {"u16", 2, kInteger, false, "ushort", DType::u16, DType::i64},
    {"i32", 4, kInteger, true, "int", DType::i32, DType::i64},
    {"u32", 4, kInteger, false, "uint", DType::u32, DType::i64},
    {"i64", 8, kInteger, true, "long", DType::i64, DType::i64},
    {"u64", 8, kInteger, false, "ulong", DType::u64, DType::u64},
    {"bool", 1, DTypeKind::boolean, false, "uchar", DType::boolean, DType::i64},
}};

}  // namespace

const DTypeInfo& dtype_info(DType type) noexcept { return kTypes[static_cast<std::size_t>(type)]; }

std::ostream& operator<<(std::ostream& out, DType type) { return out << name_of(type); }

DType promote_types(DType a, DType b) {
    if (a == b) return a;
    const DTypeInfo &a_info = dtype_info(a), &b_info = dtype_info(b);
    if (a_info.kind != b_info.kind) return a_info.kind > b_info.kind ? a : b;
    const auto [smaller, larger] = a_info.size <= b_info.size ? std::pair(a, b) : std::pair(b, a);
    if (a_info.kind == DTypeKind::floating) return size_of(smaller) == size_of(larger) ? DType::f32 : larger;
    if (a_info.is_signed == b_info.is_signed || (dtype_info(larger).is_signed && size_of(smaller) < size_of(larger)))
        return larger;
    // An unsigned type of at least the width of the signed one.
    switch (size_of(larger)) {
        case 1:
            return DType::i16;
        case 2:
            return DType::i32;
        case 4:
            return DType::i64;
        default:
            throw TypeError(fmt::format("promote_types: expected an integer type that holds both, got {} and {}",
                                        name_of(a), name_of(b)));
    }
}

}  // namespace declivity
