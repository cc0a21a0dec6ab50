// Integers overflow modulo 2^bits, in a fused kernel as between two: a compiler that assumes no overflow would compare
// and widen the unwrapped value.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Numbers near both limits, near 0, and near the square root of the maximum.
template <class T>
std::vector<T> operands() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(static_cast<T>(Limits::max() - i));
        all.push_back(static_cast<T>(Limits::min() + i));
        all.push_back(static_cast<T>(i));
        all.push_back(static_cast<T>((std::uint64_t{1} << (sizeof(T) * 4)) + static_cast<std::uint64_t>(i)));
    }
    for (const double random_value : random_values(45, 3, 0, 1))
        all.push_back(static_cast<T>(static_cast<std::uint64_t>(random_value * 0x1p53) * 0x9e3779b97f4a7c15));
    return all;
}

template <class T, class F>
std::vector<std::int64_t> apply_elementwise(const std::vector<T>& a, const std::vector<T>& b, F function) {
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < a.size(); ++i) out.push_back(static_cast<std::int64_t>(function(a[i], b[i])));
    return out;
}

/// In well-defined arithmetic.
template <class T>
T wrapped(std::uint64_t value) {
    return static_cast<T>(value);
}

template <class T>
void check(DType dtype) {
    const std::vector<T> x = operands<T>(), y(x.rbegin(), x.rend());
    const auto count = static_cast<std::int64_t>(x.size());
    const Tensor a = Tensor::from(x, {count}), b = Tensor::from(y, {count});
    REQUIRE(a.dtype() == dtype);
    using U = std::uint64_t;
    const auto add = [](T p, T q) { return wrapped<T>(static_cast<U>(p) + static_cast<U>(q)); };
    const auto sub = [](T p, T q) { return wrapped<T>(static_cast<U>(p) - static_cast<U>(q)); };
    const auto mul = [](T p, T q) { return wrapped<T>(static_cast<U>(p) * static_cast<U>(q)); };
    const auto same = [&](const char* name, const Tensor& result, const std::vector<std::int64_t>& expected) {
        const auto got = result.to(DType::i64).template to_vector<std::int64_t>();
        REQUIRE(got.size() == expected.size());
        const auto at = static_cast<std::size_t>(std::ranges::mismatch(got, expected).in1 - got.begin());
        const std::string wrong = at == got.size() ? ""
                                                   : fmt::format("{} of {}, from {} and {}: {}, expected {}", name,
                                                                 name_of(dtype), x[at], y[at], got[at], expected[at]);
        CHECK(wrong == "");
    };
    same("a + b", a + b, apply_elementwise(x, y, add));
    same("a - b", a - b, apply_elementwise(x, y, sub));
    same("a * b", a * b, apply_elementwise(x, y, mul));
    same("a + 1", a + 1, apply_elementwise(x, y, [&](T p, T) { return add(p, 1); }));
    same("a * 3", a * 3, apply_elementwise(x, y, [&](T p, T) { return mul(p, 3); }));
    same("-a", -a, apply_elementwise(x, y, [&](T p, T) { return sub(0, p); }));
    same("square(a)", square(a), apply_elementwise(x, y, [&](T p, T) { return mul(p, p); }));
    same("abs(a)", abs(a),
         apply_elementwise(x, y, [&](T p, T) { return std::is_signed_v<T> && p < 0 ? sub(0, p) : p; }));
    same("a + 1 > a", a + 1 > a, apply_elementwise(x, y, [&](T p, T) { return add(p, 1) > p; }));
    same("a * b < a", a * b < a,
         apply_elementwise(
             x, y, [&](T p, T q) { return mul(p, q) < p; }));
    same("abs(a) >= 0", abs(a) >= 0,
         apply_elementwise(x, y, [&](T p, T) { return !std::is_signed_v<T> || p >= 0 || sub(0, p) >= 0; }));
    same("maximum(a + b, a)", maximum(a + b, a),
         apply_elementwise(x, y, [&](T p, T q) { return std::max(add(p, q), p); }));
    same("square(a) % 100", square(a) % 100, apply_elementwise(x, y, [&](T p, T) {
             const auto m = static_cast<T>(mul(p, p) % 100);
             return std::is_signed_v<T> && m < 0 ? static_cast<T>(m + 100) : m;
         }));
}

}  // namespace

TEST_CASE("overflow: integers wrap, whatever is fused with them") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
        check<std::int8_t>(DType::i8);
        check<std::uint32_t>(DType::u32);
        check<std::int64_t>(DType::i64);
        if (small_cases()) continue;
        check<std::uint8_t>(DType::u8);
        check<std::int16_t>(DType::i16);
        check<std::uint16_t>(DType::u16);
        check<std::int32_t>(DType::i32);
    }
}
