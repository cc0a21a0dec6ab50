#include <declivity/ops/scalar.hpp>

#include <cmath>

#include <fmt/format.h>

namespace declivity {

bool Scalar::fits(DType type) const noexcept {
    const DTypeInfo& of = dtype_info(type);
    if (of.kind == DTypeKind::floating) return true;
    if (of.kind == DTypeKind::boolean) return *this == Scalar(to<bool>()) || to_double() == 0 || to_double() == 1;
    const int bits = 8 * static_cast<int>(of.size);
    if (kind_ == Kind::real) {
        const double value = to_double();
        const double low = of.is_signed ? -std::ldexp(1, bits - 1) : 0,
                     above = std::ldexp(1, of.is_signed ? bits - 1 : bits);
        return value >= low && value < above && value == std::trunc(value);
    }
    if (kind_ == Kind::above) return type == DType::u64;
    const auto value = static_cast<std::int64_t>(bits_);
    if (bits == 64) return of.is_signed || value >= 0;
    const std::int64_t max_value = (std::int64_t{1} << (of.is_signed ? bits - 1 : bits)) - 1;
    return value <= max_value && value >= (of.is_signed ? -max_value - 1 : 0);
}

std::string Scalar::str() const {
    switch (kind_) {
        case Kind::boolean:
            return to<bool>() ? "True" : "False";
        case Kind::whole:
            return fmt::format("{}", to<std::int64_t>());
        case Kind::above:
            return fmt::format("{}", to<std::uint64_t>());
        case Kind::real:
            break;
    }
    return fmt::format("{}", to_double());
}

}  // namespace declivity
