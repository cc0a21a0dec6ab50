// C++ numbers combined with f16 and bf16 tensors keep their value in every function: it is computed in f32, and only
// the result is rounded.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Case {
    const char* name;
    std::function<Tensor(const Tensor& x)> call;
};

/// The numbers are not representable in either type, so that rounding them would show.
std::vector<Case> cases() {
    return {
        {"x + number", [](const Tensor& x) { return x + 0.333; }},
        {"x - number", [](const Tensor& x) { return x - 0.333; }},
        {"number - x", [](const Tensor& x) { return 0.333 - x; }},
        {"x * number", [](const Tensor& x) { return x * 0.999; }},
        {"x / number", [](const Tensor& x) { return x / 0.3; }},
        {"number / x", [](const Tensor& x) { return 0.333 / x; }},
        {"pow(x, number)", [](const Tensor& x) { return pow(x, 0.999); }},
        {"pow(number, x)", [](const Tensor& x) { return pow(0.999, x); }},
        {"fmod(x, number)", [](const Tensor& x) { return fmod(x, 0.3); }},
        {"remainder(x, number)", [](const Tensor& x) { return remainder(x, 0.3); }},
        {"remainder(number, x)", [](const Tensor& x) { return remainder(0.3, x); }},
        {"floor_divide(x, number)", [](const Tensor& x) { return floor_divide(x, 0.3); }},
        {"maximum", [](const Tensor& x) { return maximum(x, 0.333) * 3.0; }},
        {"minimum", [](const Tensor& x) { return minimum(x, 0.333); }},
        {"fmax", [](const Tensor& x) { return fmax(x, 0.333); }},
        {"fmin", [](const Tensor& x) { return fmin(0.333, x); }},
        {"lerp, a number as weight", [](const Tensor& x) { return lerp(x, x * 2, 0.999); }},
        {"lerp, a number as end", [](const Tensor& x) { return lerp(x, 0.333, 0.999); }},
        {"atan2", [](const Tensor& x) { return atan2(x, 0.333); }},
        {"hypot", [](const Tensor& x) { return hypot(x, 0.333); }},
        {"logaddexp", [](const Tensor& x) { return logaddexp(x, 0.333); }},
        {"logaddexp2", [](const Tensor& x) { return logaddexp2(x, 0.333); }},
        {"xlogy", [](const Tensor& x) { return xlogy(x, 0.999); }},
        {"xlogy, a number first", [](const Tensor& x) { return xlogy(0.999, x); }},
        {"copysign", [](const Tensor& x) { return copysign(0.333, x); }},
        {"heaviside", [](const Tensor& x) { return heaviside(x, 0.333); }},
        {"where", [](const Tensor& x) { return where(x > 1, 0.333, x); }},
        {"clamp", [](const Tensor& x) { return clamp(x, 0.333, 0.777); }},
        {"clamp_min", [](const Tensor& x) { return clamp_min(x, 0.333); }},
        {"threshold", [](const Tensor& x) { return threshold(x, 0.333, 0.777); }},
        {"hardshrink", [](const Tensor& x) { return hardshrink(x, 0.333); }},
        {"softshrink", [](const Tensor& x) { return softshrink(x, 0.333); }},
        {"addcmul", [](const Tensor& x) { return addcmul(x, x, x, 0.999); }},
        {"addcdiv", [](const Tensor& x) { return addcdiv(x, x, flip(x, {0}), 0.999); }},
        {"masked_fill", [](const Tensor& x) { return masked_fill(x, x > 1, 0.333); }},
        {"nan_to_num",
         [](const Tensor& x) { return nan_to_num(x * std::numeric_limits<float>::infinity(), 0.3, 0.7); }},
        {"ldexp", [](const Tensor& x) { return ldexp(x, 0.3); }},
        {"quantile", [](const Tensor& x) { return quantile(x, 0.333, 0); }},
        {"elu", [](const Tensor& x) { return elu(-x, 0.333); }},
        {"leaky_relu", [](const Tensor& x) { return leaky_relu(-x, 0.333); }},
    };
}

}  // namespace

TEST_CASE("reduced precision: numbers combined with f16 and bf16 tensors keep their value") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        // The rounded values of 0.333 and 0.3 are among them.
        const Tensor x =
            concat({random_tensor({21}, 1, DType::f32, 0.1, 2), tensor({0.333, 0.3, 0.777, 1, 200}, {5})}, 0).to(dtype);
        const Tensor upcast = x.to(DType::f32);
        for (const Case& test_case : cases()) {
            CAPTURE(std::string(test_case.name));
            const std::vector<double> exact = values(test_case.call(upcast));
            const Tolerance one_rounding{.absolute = 1e-6,
                                         .relative = (dtype == DType::f16 ? 0x1p-11 : 0x1p-8) * 1.002};
            const Tensor got = test_case.call(x);
            CHECK(got.dtype() == dtype);
            CHECK(difference(got, exact, one_rounding) == "");
            const ops::FusionScope unfused(false);
            if (std::string(test_case.name) == "maximum") continue;  // two calls
            CHECK(difference(test_case.call(x), exact, one_rounding) == "");
        }
    }
}

TEST_CASE("reduced precision: numbers keep their value in gradients") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        const Tensor start =
            concat({random_tensor({21}, 1, DType::f32, 0.4, 2), tensor({0.35, 0.8, 1.5}, {3})}, 0).to(dtype);
        const auto gradients_of = [&](const Case& test_case, DType type, bool create_graph) {
            const Tensor x = start.to(type).clone().set_requires_grad();
            const Tensor y = test_case.call(x);
            if (!y.requires_grad()) return std::vector<double>{};
            const Tensor g =
                grad({sum(y.to(DType::f32))}, {x}, {.create_graph = create_graph, .allow_unused = true})[0];
            return g.defined() ? values(g) : std::vector<double>{};
        };
        for (const Case& test_case : cases()) {
            CAPTURE(std::string(test_case.name));
            if (std::string(test_case.name) == "addcdiv") continue;  // its three gradients, each rounded, cancel
            // Each result of several calls is rounded, and each of several gradients.
            const Tolerance several_roundings{.absolute = 1e-6,
                                              .relative = 6 * (dtype == DType::f16 ? 0x1p-11 : 0x1p-8)};
            const std::vector<double> exact = gradients_of(test_case, DType::f32, false);
            CHECK(difference(gradients_of(test_case, dtype, false), exact, several_roundings) == "");
            CHECK(difference(gradients_of(test_case, dtype, true), exact, several_roundings) == "");
        }
        Tensor x = start.clone().set_requires_grad();
        sum(lerp(x, ones_like(start), 0.999)).backward();
        CHECK(values(x.grad()) == std::vector<double>(24, as_type(1 - 0.999, dtype)));
    }
}

TEST_CASE("reduced precision: numbers keep their value in comparisons") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        const Tensor x = tensor({0.1, 0.3, 1, 0.999}, {4}).to(dtype), upcast = x.to(DType::f32);
        for (const double number : {0.1, 0.3, 0.999, 1.0}) {
            CAPTURE(number);
            CHECK(values(x == number) == values(upcast == number));
            CHECK(values(x != number) == values(upcast != number));
            CHECK(values(x < number) == values(upcast < number));
            CHECK(values(x <= number) == values(upcast <= number));
            CHECK(values(number < x) == values(number < upcast));
            CHECK(values(x >= number) == values(upcast >= number));
        }
    }
    CHECK(values(full({1}, 65504, {DType::f16}) < 65519) == std::vector<double>{1});
    CHECK(values(full({1}, INFINITY, {DType::f16}) == 1e6) == std::vector<double>{0});
}

TEST_CASE("reduced precision: a moving average in bf16 with a factor that bf16 rounds to 1") {
    const Tensor average = zeros({2}, {DType::bf16}), x = full({2}, 200, {DType::bf16});
    CHECK(values(lerp(x, average, 0.999)) == std::vector<double>(2, as_type(200 * 0.001F, DType::bf16)));
}

TEST_CASE("reduced precision: 0-d tensors keep their value like numbers") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        const Tensor x = tensor({0.1, 0.3, 200}, {3}).to(dtype), upcast = x.to(DType::f32), number = full({}, 0.999);
        CHECK((x * number).dtype() == dtype);
        CHECK(values(x * number) == values((upcast * 0.999).to(dtype)));
        CHECK(values(pow(number, x)) == values(pow(0.999, upcast).to(dtype)));
        CHECK(values(x == full({}, 0.1)) == std::vector<double>(3, 0));
        CHECK(values(x.clone().mul_(number)) == values((upcast * 0.999).to(dtype)));
        CHECK(values(x.clone().add_(full({3}, 0.333))) == values((upcast + 0.333).to(dtype)));
        Tensor scale = full({}, 0.999).set_requires_grad();
        sum(x * scale).backward();
        CHECK(scale.grad().dtype() == DType::f32);
        CHECK(difference(scale.grad(), {values(sum(upcast))[0]}, {.relative = 1e-6}) == "");
    }
}

TEST_CASE("reduced precision: numbers keep their value in gradients at bounds, and with create_graph") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        // The rounded value of 0.3 is above 0.3 in both types.
        Tensor x = tensor({0.3, 0.2}, {2}).to(dtype).set_requires_grad();
        const bool rounds_up = values(x)[0] > 0.3F;
        for (const bool graph : {false, true}) {
            const auto gradient_of = [&](const Tensor& y) {
                return values(grad({sum(y)}, {x}, {.create_graph = graph})[0]);
            };
            CHECK(gradient_of(clamp_min(x, 0.3)) == std::vector<double>{rounds_up ? 1.0 : 0.0, 0});
            CHECK(gradient_of(clamp(x, -1, 0.3)) == std::vector<double>{rounds_up ? 0.0 : 1.0, 1});
            CHECK(gradient_of(threshold(x, 0.3, 0)) == std::vector<double>{rounds_up ? 1.0 : 0.0, 0});
        }
    }
}
