// Where f16 and bf16 values are rounded: discontinuous functions, and those that select elements, use the rounded
// value, stored before or not.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <ops/engine/fusion.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr DType kTypes[] = {DType::f16, DType::bf16};

/// The same elements, evaluated.
Tensor stored(const Tensor& x) {
    const std::vector<double> all = values(x);
    Tensor copy = Tensor::from<float>(std::vector<float>(all.begin(), all.end()), x.shape()).to(x.dtype());
    (void)copy.view();
    return copy;
}

std::string body(const Tensor& x) {
    const std::string text = x.str();
    return text.substr(text.find('\n') + 1);
}

void check_same(const std::vector<double>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == expected.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
        different += got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])) ? 0 : 1;
    CHECK(different == 0);
}

using OfOne = std::function<Tensor(const Tensor&)>;

struct Case {
    std::string name;
    OfOne function;
};

/// Functions whose result changes for values that differ in the last digit.
std::vector<Case> jumping() {
    const auto half_of = [](const Tensor& y) { return full(y.shape(), 0.5, {y.dtype()}); };
    return {
        {"floor", [](const Tensor& y) { return floor(y); }},
        {"ceil", [](const Tensor& y) { return ceil(y); }},
        {"round", [](const Tensor& y) { return round(y); }},
        {"trunc", [](const Tensor& y) { return trunc(y); }},
        {"frac", [](const Tensor& y) { return frac(y); }},
        {"sign", [](const Tensor& y) { return sign(y); }},
        {"remainder", [=](const Tensor& y) { return remainder(y, half_of(y)); }},
        {"fmod", [=](const Tensor& y) { return fmod(y, half_of(y)); }},
        {"floor_divide", [=](const Tensor& y) { return floor_divide(y, half_of(y)); }},
        {"heaviside", [=](const Tensor& y) { return heaviside(y, half_of(y)); }},
        {"hardshrink", [](const Tensor& y) { return hardshrink(y, 0.5); }},
        {"threshold", [](const Tensor& y) { return threshold(y, 0.5, 20); }},
        {"equal", [=](const Tensor& y) { return y == half_of(y); }},
        {"not equal", [=](const Tensor& y) { return y != half_of(y); }},
        {"less", [=](const Tensor& y) { return y < half_of(y); }},
        {"greater or equal", [=](const Tensor& y) { return y >= half_of(y); }},
        {"less, of a number", [](const Tensor& y) { return y < 0.5; }},
        {"greater, of itself as stored", [](const Tensor& y) { return y > 1 * stored(y); }},
        {"isinf", [](const Tensor& y) { return isinf(y); }},
        {"isfinite", [](const Tensor& y) { return isfinite(y); }},
        {"isnan", [](const Tensor& y) { return isnan(y); }},
        {"to f32", [](const Tensor& y) { return y.to(DType::f32); }},
        {"to i32", [](const Tensor& y) { return y.to(DType::i32); }},
        {"to u8", [](const Tensor& y) { return y.to(DType::u8); }},
        {"to bool", [](const Tensor& y) { return y.to(DType::boolean); }},
        {"to the other type", [](const Tensor& y) { return y.to(y.dtype() == DType::f16 ? DType::bf16 : DType::f16); }},
        {"sqrt", [](const Tensor& y) { return sqrt(y); }},
        {"log", [](const Tensor& y) { return log(y); }},
        {"acos", [](const Tensor& y) { return acos(y); }},
        {"atanh", [](const Tensor& y) { return atanh(y); }},
        {"pow", [](const Tensor& y) { return pow(y, 0.5); }},
        {"pow, the exponent", [](const Tensor& y) { return pow(full(y.shape(), -2, {y.dtype()}), y); }},
        {"reciprocal", [](const Tensor& y) { return reciprocal(y); }},
        {"divide", [=](const Tensor& y) { return half_of(y) / y; }},
        {"isinf, of a difference", [](const Tensor& y) { return isinf(where(y > 0, y, -y)); }},
        {"sum", [](const Tensor& y) { return sum(where(isfinite(y), y, zeros_like(y)), {0}); }},
        {"mean", [](const Tensor& y) { return mean(y, {0}); }},
        {"max", [](const Tensor& y) { return max(y, {0}); }},
        {"argmax", [](const Tensor& y) { return argmax(y, 0); }},
        {"argmin", [](const Tensor& y) { return argmin(y, 0); }},
        {"cumsum", [](const Tensor& y) { return cumsum(clamp(y, -1, 1), 0); }},
        {"softmax", [](const Tensor& y) { return softmax(clamp(y, -4, 4), 0); }},
        {"count_nonzero", [](const Tensor& y) { return count_nonzero(y); }},
        {"any", [](const Tensor& y) { return any(y.to(DType::boolean)); }},
    };
}

/// Chains of one function, so that its rounding is that of the result.
std::vector<Case> chains() {
    return {
        {"square", [](const Tensor& x) { return square(x); }},
        {"mul", [](const Tensor& x) { return x * flip(x, {0}); }},
        {"add", [](const Tensor& x) { return x + flip(x, {0}); }},
        {"mul_scalar", [](const Tensor& x) { return x * 0.3; }},
        {"exp", [](const Tensor& x) { return exp(x); }},
        {"tiny", [](const Tensor& x) { return x * 1e-6 * 1e-3; }},
        {"cosine", [](const Tensor& x) { return cos(x * 1e-2); }},
    };
}

/// Each chain is combined with these functions, and each function with the first chain: every pair is a kernel to
/// compile.
bool is_compared(const std::string& chain, const std::string& function) {
    return chain == "square" || function == "floor" || function == "less" || function == "to f32" ||
           function == "isinf" || function == "relu" || function == "sum";
}

std::vector<float> inputs() {
    std::vector<float> all;
    for (int i = 0; i < 400; ++i) all.push_back(static_cast<float>(i - 200) * 0.013F);
    for (const float value : {300.F, 250.F, 65000.F, 1e-4F, -1e-4F, 255.9F, 11.F, -11.5F}) all.push_back(value);
    return all;
}

}  // namespace

TEST_CASE("rounding: discontinuous functions use rounded values") {
    for (const DType type : kTypes)
        for (const Case& chain : chains())
            for (const Case& jump : jumping()) {
                if (!is_compared(chain.name, jump.name)) continue;
                CAPTURE(name_of(type));
                CAPTURE(chain.name);
                CAPTURE(jump.name);
                const std::vector<float> all = inputs();
                const Tensor x = Tensor::from<float>(all, {static_cast<std::int64_t>(all.size())}).to(type);
                (void)x.view();
                const Tensor expected = jump.function(stored(chain.function(x)));
                check_same(values(jump.function(chain.function(x))), values(expected));
            }
}

TEST_CASE("rounding: printing shows rounded values, including integers and overflow") {
    for (const bool fused : {true, false}) {
        const ops::FusionScope fusion(fused);
        const Tensor x = full({2}, 300, {DType::f16});
        CHECK(body(x * x) == "[inf, inf]");
        CHECK(values(isinf(x * x)) == std::vector<double>{1, 1});
        CHECK(values((x * x) == INFINITY) == std::vector<double>{1, 1});
        CHECK(body(full({1}, 256, {DType::bf16}) + 1.5) == "[258.0000]");
        CHECK(body(full({1}, 1e-5, {DType::f16}) * 1e-5) == "[0.0000]");
        const Tensor long_tensor = full({2000}, 300, {DType::f16});
        CHECK(body(long_tensor * long_tensor) == "[inf, inf, inf, ..., inf, inf, inf]");
        CHECK(values(mean(long_tensor * long_tensor)) == std::vector<double>{INFINITY});
        CHECK(std::isinf(values((x * x).to(DType::f32))[0]));
        CHECK(values((x * x).to(DType::i32))[0] == 2147483647);
    }
}

TEST_CASE("rounding: products and convolutions of f16 and bf16 are rounded before a discontinuous function") {
    for (const DType type : kTypes) {
        const Tensor a = random_tensor({32, 24}, 1, type), b = random_tensor({24, 40}, 2, type),
                     image = random_tensor({2, 3, 9, 8}, 3, type), filter = random_tensor({4, 3, 3, 3}, 4, type);
        const OfOne product = [&](const Tensor& x) { return matmul(x, b); };
        const OfOne convolution = [&](const Tensor& x) { return conv2d(x, filter); };
        for (const auto& [name, jump] : jumping()) {
            if (!is_compared("", name) && name != "sign" && name != "hardshrink") continue;
            CAPTURE(name);
            check_same(values(jump(product(a))), values(jump(stored(product(a)))));
            check_same(values(jump(convolution(image))), values(jump(stored(convolution(image)))));
        }
    }
}

TEST_CASE("rounding: discontinuous gradients use rounded values") {
    const std::vector<Case> functions{
        {"relu", [](const Tensor& y) { return relu(y); }},
        {"leaky_relu", [](const Tensor& y) { return leaky_relu(y, 0.1); }},
        {"abs", [](const Tensor& y) { return abs(y); }},
        {"clamp", [](const Tensor& y) { return clamp(y, -0.5, 0.5); }},
        {"minimum", [](const Tensor& y) { return minimum(y, full(y.shape(), 0.5, {y.dtype()})); }},
        {"maximum", [](const Tensor& y) { return maximum(y, full(y.shape(), 0.5, {y.dtype()})); }},
        {"where", [](const Tensor& y) { return where(y > 0.25, y, y * 2); }},
        {"hardtanh", [](const Tensor& y) { return hardtanh(y); }},
        {"reciprocal", [](const Tensor& y) { return reciprocal(y); }},
        {"softshrink", [](const Tensor& y) { return softshrink(y, 0.5); }},
    };
    for (const DType type : kTypes)
        for (const Case& chain : chains())
            for (const auto& [name, function] : functions) {
                if (!is_compared(chain.name, name)) continue;
                CAPTURE(name_of(type));
                CAPTURE(chain.name);
                CAPTURE(name);
                const std::vector<float> all = inputs();
                const Tensor x = Tensor::from<float>(all, {static_cast<std::int64_t>(all.size())}).to(type);
                (void)x.view();
                // Only this function, with an evaluated leaf and a pending one.
                const auto gradient = [&](const Tensor& leaf) {
                    const Tensor y = Tensor(leaf).detach().set_requires_grad();
                    sum(function(y).to(DType::f32)).backward();
                    return values(y.grad());
                };
                check_same(gradient(chain.function(x)), gradient(stored(chain.function(x))));
            }
}
