#include <array>

#include <declivity/ops/dtype.hpp>

namespace declivity {
namespace {

struct TypeInfo {
    std::size_t size;
    std::string_view name;
};
constexpr std::array<TypeInfo, 7> kTypes{{{4, "f32"}, {8, "f64"}, {1, "i8"}, {1, "u8"}, {4, "i32"}, {8, "i64"}, {1, "bool"}}};

}  // namespace

std::size_t size_of(DType type) noexcept { return kTypes[static_cast<std::size_t>(type)].size; }
std::string_view name_of(DType type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }
bool is_floating(DType type) noexcept { return type == DType::f32 || type == DType::f64; }

}  // namespace declivity
