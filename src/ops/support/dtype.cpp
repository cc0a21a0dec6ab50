#include <array>

#include <declivity/ops/dtype.hpp>

namespace declivity {
namespace {

struct TypeInfo {
    std::size_t size;
    std::string_view name;
};
constexpr std::array<TypeInfo, 9> kTypes{
    {{4, "f32"}, {8, "f64"}, {1, "i8"}, {1, "u8"}, {4, "i32"}, {8, "i64"}, {1, "bool"}, {2, "f16"}, {2, "bf16"}}};

}  // namespace

std::size_t size_of(DType type) noexcept { return kTypes[static_cast<std::size_t>(type)].size; }
std::string_view name_of(DType type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }
bool is_floating(DType type) noexcept { return type == DType::f32 || type == DType::f64 || is_half(type); }
bool is_half(DType type) noexcept { return type == DType::f16 || type == DType::bf16; }
DType compute_type(DType type) noexcept { return is_half(type) ? DType::f32 : type; }

}  // namespace declivity
