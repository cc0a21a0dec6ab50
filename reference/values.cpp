#include <reference/values.hpp>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string_view>

#include <fmt/format.h>

namespace declivity::reference {

std::vector<double> random_values(std::int64_t count, std::uint64_t seed, double low, double high) {
    std::mt19937_64 engine(seed);
    std::vector<double> out(static_cast<std::size_t>(count));
    for (double& value : out) value = low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
    return out;
}

namespace {

template <class T>
Tensor converted(const std::vector<double>& values, const Shape& shape) {
    std::vector<T> out;
    out.reserve(values.size());
    for (const double value : values) out.push_back(static_cast<T>(value));
    return Tensor::from(out, shape);
}

template <class T>
std::vector<double> upcast(const Tensor& tensor) {
    const auto elements = tensor.to_vector<T>();
    return {elements.begin(), elements.end()};
}

}  // namespace

Tensor tensor(const std::vector<double>& values, const Shape& shape, DType dtype) {
    switch (dtype) {
        case DType::f32:
            return converted<float>(values, shape);
        case DType::f64:
            return converted<double>(values, shape);
        case DType::i8:
            return converted<std::int8_t>(values, shape);
        case DType::u8:
            return converted<std::uint8_t>(values, shape);
        case DType::i16:
            return converted<std::int16_t>(values, shape);
        case DType::u16:
            return converted<std::uint16_t>(values, shape);
        case DType::i32:
            return converted<std::int32_t>(values, shape);
        case DType::u32:
            return converted<std::uint32_t>(values, shape);
        case DType::i64:
            return converted<std::int64_t>(values, shape);
        case DType::u64:
            return converted<std::uint64_t>(values, shape);
        case DType::f16:
            return converted<float16>(values, shape);
        case DType::bf16:
            return converted<bfloat16>(values, shape);
        case DType::boolean:
            break;
    }
    return converted<std::uint8_t>(values, shape).to(DType::boolean);
}

Tensor int64_tensor(const std::vector<std::int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype, double low, double high) {
    return tensor(random_values(shape.numel(), seed, low, high), shape, dtype);
}

std::vector<double> values(const Tensor& tensor) {
    switch (tensor.dtype()) {
        case DType::f32:
            return upcast<float>(tensor);
        case DType::f64:
            return upcast<double>(tensor);
        case DType::i8:
            return upcast<std::int8_t>(tensor);
        case DType::i16:
            return upcast<std::int16_t>(tensor);
        case DType::u16:
            return upcast<std::uint16_t>(tensor);
        case DType::i32:
            return upcast<std::int32_t>(tensor);
        case DType::u32:
            return upcast<std::uint32_t>(tensor);
        case DType::i64:
            return upcast<std::int64_t>(tensor);
        case DType::u64:
            return upcast<std::uint64_t>(tensor);
        case DType::f16:
            return upcast<float16>(tensor);
        case DType::bf16:
            return upcast<bfloat16>(tensor);
        case DType::u8:
        case DType::boolean:
            return upcast<std::uint8_t>(tensor);
    }
    return {};
}

double as_type(double value, DType dtype) {
    switch (dtype) {
        case DType::f32:
            return static_cast<float>(value);
        case DType::f64:
            return value;
        case DType::i8:
            return static_cast<std::int8_t>(static_cast<std::int64_t>(value));
        case DType::u8:
            return static_cast<std::uint8_t>(static_cast<std::int64_t>(value));
        case DType::i16:
            return static_cast<std::int16_t>(static_cast<std::int64_t>(value));
        case DType::u16:
            return static_cast<std::uint16_t>(static_cast<std::int64_t>(value));
        case DType::i32:
            return static_cast<std::int32_t>(static_cast<std::int64_t>(value));
        case DType::u32:
            return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
        case DType::i64:
            return static_cast<double>(static_cast<std::int64_t>(value));
        case DType::u64:
            return static_cast<double>(value < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                                                 : static_cast<std::uint64_t>(value));
        case DType::boolean:
            return value != 0 ? 1 : 0;
        case DType::f16:
            return float16(value);
        case DType::bf16:
            return bfloat16(value);
    }
    return 0;
}

Tolerance tolerance(DType dtype, double terms, double scale) {
    const double unit = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
    return {.absolute = 4 * unit * std::sqrt(terms + 1) * scale, .relative = 8 * unit * std::sqrt(terms + 1)};
}

Tolerance sum_tolerance(DType dtype, double terms) {
    Tolerance out = tolerance(dtype, terms);
    out.absolute += terms * (dtype == DType::f64 ? 0x1p-53 : 0x1p-24);
    return out;
}

std::string difference(const std::vector<double>& actual, const std::vector<double>& expected,
                       const Tolerance& allowed) {
    if (actual.size() != expected.size())
        return fmt::format("{} elements instead of {}", actual.size(), expected.size());
    double worst = 1;
    std::string text;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        if (actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]))) continue;
        const double error = std::abs(actual[i] - expected[i]);
        const double excess = error / (allowed.absolute + allowed.relative * std::abs(expected[i]));
        if (excess <= worst) continue;  // NaN compares false and so is reported
        worst = std::isnan(excess) ? INFINITY : excess;
        text = fmt::format("element {} is {}, expected {} (error {} is {:.1f} times what is allowed)", i, actual[i],
                           expected[i], error, excess);
    }
    return text;
}

std::string difference(const Tensor& actual, const std::vector<double>& expected, const Tolerance& allowed) {
    return difference(values(actual), expected, allowed);
}

namespace {
bool cases_mode_is(std::string_view mode) {
    const char* value = std::getenv("DECLIVITY_CASES");
    return value != nullptr && mode == value;
}
}  // namespace

bool small_cases() { return cases_mode_is("small"); }
bool all_cases() { return cases_mode_is("all"); }

}  // namespace declivity::reference
