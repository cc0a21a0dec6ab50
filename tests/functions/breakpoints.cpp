// Gradients at the breakpoints of piecewise functions, at ties and at NaN match PyTorch 2.15: of first and, where
// PyTorch has them, of second order, with and without create_graph.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/complex.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/statistics.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct BreakpointCase {
    const char* name;
    std::function<Tensor(const Tensor& x)> call;
    Values x, first, second;
};

std::vector<BreakpointCase> piecewise_functions() {
    const auto against_zero = [](const Tensor& x) { return zeros_like(x.detach()); };
    return {
        {"relu", [](const Tensor& x) { return relu(x); }, {-1, 0, 1, NAN}, {0, 0, 1, 1}, {0, 0, 0, 0}},
        {"relu6", [](const Tensor& x) { return relu6(x); }, {0, 3, 6, NAN}, {0, 1, 0, 1}, {0, 0, 0, 0}},
        {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.25); }, {0, 1, NAN}, {0.25, 1, 0.25}, {0, 0, 0}},
        {"elu", [](const Tensor& x) { return elu(x, 0.75); }, {0, 1, NAN}, {0.75, 1, 1}, {0, 0, 0}},
        {"celu", [](const Tensor& x) { return celu(x, 0.5); }, {0, 1, NAN}, {1, 1, 1}, {0, 0, 0}},
        {"selu", [](const Tensor& x) { return selu(x); }, {0, 1}, {1.7580993408473766, 1.0507009873554805}, {0, 0}},
        {"hardtanh", [](const Tensor& x) { return hardtanh(x); }, {-1, 0, 1, NAN}, {0, 1, 0, 1}, {0, 0, 0, 0}},
        {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); }, {-3, 3, NAN}, {0, 0, 0}, {0, 0, 0}},
        {"hardswish", [](const Tensor& x) { return hardswish(x); }, {-3, 0, 3}, {0, 0.5, 1}, {0, 1.0 / 3, 0}},
        {"hardshrink", [](const Tensor& x) { return hardshrink(x, 0.5); }, {-0.5, 0.5, NAN}, {0, 0, 1}, {0, 0, 0}},
        {"softshrink", [](const Tensor& x) { return softshrink(x, 0.5); }, {-0.5, 0.5, NAN}, {0, 0, 1}, {0, 0, 0}},
        {"threshold", [](const Tensor& x) { return threshold(x, 1, 5); }, {1, 2, NAN}, {0, 1, 1}, {0, 0, 0}},
        {"abs", [](const Tensor& x) { return abs(x); }, {-1, 0, 1, NAN}, {-1, 0, 1, 0}, {0, 0, 0, 0}},
        {"clamp",
         [](const Tensor& x) { return clamp(x, -1, 1); },
         {-2, -1, 0, 1, NAN},
         {0, 0, 1, 0, 0},
         {0, 0, 0, 0, 0}},
        {"clamp_min",
         [](const Tensor& x) { return clamp_min(x, 1); },
         {1, 2, kInfinity, NAN},
         {0, 1, 1, 0},
         {0, 0, 0, 0}},
        {"clamp_max",
         [](const Tensor& x) { return clamp_max(x, 1); },
         {-kInfinity, 0, 1, NAN},
         {1, 1, 0, 0},
         {0, 0, 0, 0}},
        {"pow, 0", [](const Tensor& x) { return pow(x, 0); }, {0, 1}, {0, 0}, {0, 0}},
        {"pow, 2", [](const Tensor& x) { return pow(x, 2); }, {0, -1}, {0, -2}, {2, 2}},
        {"pow, 3", [](const Tensor& x) { return pow(x, 3); }, {0, -1}, {0, 3}, {0, -6}},
        {"pow, 1.5", [](const Tensor& x) { return pow(x, 1.5); }, {0, 1}, {0, 1.5}, {kInfinity, 0.75}},
        {"pow, -2",
         [](const Tensor& x) { return pow(x, -2); },
         {0, 1, kInfinity},
         {-kInfinity, -2, 0},
         {kInfinity, 6, 0}},
        {"sqrt", [](const Tensor& x) { return sqrt(x); }, {0, 1}, {kInfinity, 0.5}, {-kInfinity, -0.25}},
        {"l1_loss",
         [=](const Tensor& x) { return l1_loss(x, against_zero(x), Reduction::none); },
         {-1, 0, 1},
         {-1, 0, 1},
         {0, 0, 0}},
        {"smooth_l1_loss",
         [=](const Tensor& x) { return smooth_l1_loss(x, against_zero(x), Reduction::none); },
         {-1, -0.5, 0, 1},
         {-1, -0.5, 0, 1},
         {0, 1, 1, 0}},
        {"huber_loss",
         [=](const Tensor& x) { return huber_loss(x, against_zero(x), Reduction::none); },
         {-1, -0.5, 0, 1},
         {-1, -0.5, 0, 1},
         {0, 1, 1, 0}},
        {"hinge_embedding_loss",
         [](const Tensor& x) { return hinge_embedding_loss(x, full({3}, -1), 1, Reduction::none); },
         {0, 1, 2},
         {-1, 0, 0},
         {0, 0, 0}},
        {"norm, 1", [](const Tensor& x) { return norm(x, 1); }, {0, 0}, {0, 0}, {0, 0}},
        {"norm, 2", [](const Tensor& x) { return norm(x, 2); }, {0, 0}, {0, 0}, {0, 0}},
        {"norm, 3", [](const Tensor& x) { return norm(x, 3); }, {0, 0}, {0, 0}, {0, 0}},
        {"norm, inf", [](const Tensor& x) { return norm(x, kInfinity); }, {1, -1, 0}, {0.5, -0.5, 0}, {0, 0, 0}},
        {"stddev", [](const Tensor& x) { return stddev(x); }, {1, 1}, {0, 0}, {0, 0}},
        {"max", [](const Tensor& x) { return max(x); }, {1, 3, 3}, {0, 0.5, 0.5}, {0, 0, 0}},
        {"min", [](const Tensor& x) { return min(x); }, {1, 1, 3}, {0.5, 0.5, 0}, {0, 0, 0}},
        {"median", [](const Tensor& x) { return median(x); }, {2, 1, 2, 3}, {0.5, 0, 0.5, 0}, {0, 0, 0, 0}},
        {"median of NaN", [](const Tensor& x) { return median(x); }, {2, NAN, NAN, 3}, {0, 0.5, 0.5, 0}, {0, 0, 0, 0}},
        {"nanmedian", [](const Tensor& x) { return nanmedian(x); }, {2, NAN, 2, 3}, {0.5, 0, 0.5, 0}, {0, 0, 0, 0}},
        {"prod", [](const Tensor& x) { return prod(x); }, {0, 2, 0}, {0, 0, 0}, {2, 0, 2}},
        {"cumprod", [](const Tensor& x) { return cumprod(x, 0); }, {2, 0, 3}, {1, 8, 0}, {4, 6, 2}},
    };
}

struct PairCase {
    const char* name;
    std::function<Tensor(const Tensor& a, const Tensor& b)> call;
    Values a, b, gradient_of_a, gradient_of_b;
};

std::vector<PairCase> pairs() {
    const auto maximum_of = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
    const auto minimum_of = [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
    return {
        {"maximum", maximum_of, {1, 2, NAN, 1}, {1, 1, 1, NAN}, {0.5, 1, 1, 1}, {0.5, 0, 1, 1}},
        {"minimum", minimum_of, {1, 2, NAN, 1}, {1, 1, 1, NAN}, {0.5, 0, 1, 1}, {0.5, 1, 1, 1}},
        {"fmax",
         [](const Tensor& a, const Tensor& b) { return fmax(a, b); },
         {1, 2, NAN, 1},
         {1, 1, 1, NAN},
         {0.5, 1, 0, 1},
         {0.5, 0, 1, 0}},
        {"fmin",
         [](const Tensor& a, const Tensor& b) { return fmin(a, b); },
         {1, 2, NAN, 1},
         {1, 1, 1, NAN},
         {0.5, 0, 0, 1},
         {0.5, 1, 1, 0}},
        {"clamp_min by a tensor",
         [](const Tensor& a, const Tensor& b) { return clamp_min(a, b); },
         {1, 2, NAN, 0},
         {1, 1, 1, 1},
         {0.5, 1, 1, 0},
         {0.5, 0, 1, 1}},
        {"clamp by equal tensors",
         [](const Tensor& a, const Tensor& b) { return clamp(a, b, b.detach()); },
         {1, 0, 5},
         {1, 1, 1},
         {1, 0, 0},
         {0, 1, 0}},
        {"atan2",
         [](const Tensor& a, const Tensor& b) { return atan2(a, b); },
         {0, 0, 1, 0},
         {0, 1, 0, -1},
         {0, 1, 0, -1},
         {0, 0, -1, 0}},
        {"pow",
         [](const Tensor& a, const Tensor& b) { return pow(a, b); },
         {0, 0, 0, 1},
         {0, 1, -1, 0},
         {0, 1, -kInfinity, 0},
         {0, 0, -kInfinity, 0}},
        {"xlogy",
         [](const Tensor& a, const Tensor& b) { return xlogy(a, b); },
         {0, 0, 1},
         {1, -1, 1},
         {0, 0, 0},
         {0, 0, 1}},
        {"fmod",
         [](const Tensor& a, const Tensor& b) { return fmod(a, b); },
         {2, -2, 1},
         {1, 1, 2},
         {1, 1, 1},
         {-2, 2, 0}},
        {"remainder",
         [](const Tensor& a, const Tensor& b) { return remainder(a, b); },
         {2, -2, 1},
         {1, 1, 2},
         {1, 1, 1},
         {-2, 2, 0}},
        {"copysign",
         [](const Tensor& a, const Tensor& b) { return copysign(a, b); },
         {0, -1, 2},
         {1, 1, -1},
         {0, -1, -1},
         {0, 0, 0}},
    };
}

Values gradient_of(const Tensor& y, const Tensor& x, bool graph) {
    const Tensor g = grad({sum(y)}, {x}, {.create_graph = graph, .allow_unused = true})[0];
    return g.defined() ? values(g) : Values(static_cast<std::size_t>(x.numel()), 0);
}

std::vector<DType> types() {
    std::vector<DType> all = floats();
    all.push_back(DType::f16);
    all.push_back(DType::bf16);
    return all;
}

Tolerance within(DType dtype) { return {.absolute = 1e-30, .relative = is_16bit_float(dtype) ? 0x1p-7 : 1e-6}; }

}  // namespace

TEST_CASE("breakpoints: first and second derivatives are PyTorch's") {
    for (const DType dtype : types())
        for (const BreakpointCase& test_case : piecewise_functions()) {
            if (small_cases() && dtype != DType::f32) continue;
            CAPTURE(test_case.name);
            CAPTURE(name_of(dtype));
            const Shape shape{static_cast<std::int64_t>(test_case.x.size())};
            const Tensor x = tensor(test_case.x, shape, dtype).set_requires_grad();
            CHECK(difference(gradient_of(test_case.call(x), x, false), test_case.first, within(dtype)) == "");
            CHECK(difference(gradient_of(test_case.call(x), x, true), test_case.first, within(dtype)) == "");
            const Tensor first = grad({sum(test_case.call(x))}, {x}, {.create_graph = true})[0];
            const Values second = first.requires_grad() ? gradient_of(first, x, false) : Values(test_case.x.size(), 0);
            CHECK(difference(second, test_case.second, within(dtype)) == "");
        }
}

TEST_CASE("breakpoints: ties and zeros of two operands are PyTorch's") {
    for (const DType dtype : types())
        for (const PairCase& pair : pairs()) {
            if (small_cases() && dtype != DType::f32) continue;
            CAPTURE(pair.name);
            CAPTURE(name_of(dtype));
            const Shape shape{static_cast<std::int64_t>(pair.a.size())};
            const Tensor a = tensor(pair.a, shape, dtype).set_requires_grad(),
                         b = tensor(pair.b, shape, dtype).set_requires_grad();
            for (const bool graph : {false, true}) {
                CHECK(difference(gradient_of(pair.call(a, b), a, graph), pair.gradient_of_a, within(dtype)) == "");
                CHECK(difference(gradient_of(pair.call(a, b), b, graph), pair.gradient_of_b, within(dtype)) == "");
            }
        }
}

TEST_CASE("breakpoints: angle and absolute value of a complex 0 have gradient 0") {
    const Tensor z = zeros({2, 2}).set_requires_grad();
    CHECK(values(angle(z)) == Values{0, 0});
    CHECK(gradient_of(angle(z), z, false) == Values{0, 0, 0, 0});
    CHECK(gradient_of(complex_abs(z), z, false) == Values{0, 0, 0, 0});
}

TEST_CASE("breakpoints: fused relu passes the gradient at NaN, and not at 0") {
    // The gradient of relu as the epilogue of the product in backward.
    const Tensor x = tensor({NAN, 0, 1, -1}, {1, 4}).set_requires_grad();
    const Tensor hidden = relu(x), out = matmul(hidden, transpose(full({3, 4}, 1)));
    CHECK(gradient_of(out, x, false) == Values{3, 0, 3, 0});
}

TEST_CASE("breakpoints: selections at NaN and at ties have PyTorch's gradients") {
    const Tensor x = tensor({1, NAN, NAN, 2}, {4}).set_requires_grad();
    CHECK(gradient_of(max(x), x, false) == Values{0, 0.5, 0.5, 0});
    CHECK(gradient_of(min(x), x, false) == Values{0, 0.5, 0.5, 0});
    CHECK(gradient_of(median(x), x, false) == Values{0, 0.5, 0.5, 0});
    CHECK(gradient_of(median(x, 0).values, x, false) == Values{0, 1, 0, 0});
    CHECK(gradient_of(median(x, 0, true).values, x, false) == Values{0, 1, 0, 0});
    CHECK(gradient_of(quantile(x, 0.3, 0), x, false) == Values{0, 1, 0, 0});
    // More of them than f16 can count.
    const Tensor long_tensor = ones({3001}, {DType::f16}).set_requires_grad();
    max(long_tensor).backward();
    CHECK(values(long_tensor.grad()) == Values(3001, as_type(1.0 / 3001, DType::f16)));
    const Tensor a = tensor({0, 0, 3, 1}, {2, 2}).set_requires_grad(), b = tensor({2, -2}, {1, 2}).set_requires_grad();
    CHECK(values(cdist(a, b, kInfinity)) == Values{2, 3});
    CHECK(gradient_of(cdist(a, b, kInfinity), a, false) == Values{-1, 1, 0, 1});
    CHECK(gradient_of(cdist(a, b, kInfinity), b, false) == Values{1, -2});
}

TEST_CASE("breakpoints: the absolute value of negative zero is positive zero") {
    for (const DType dtype : types()) {
        const Tensor x = tensor({-0.0, 0.0, -1, NAN}, {4}).to(dtype), inverse = 1 / abs(x);
        CHECK(values(slice(inverse, 0, 0, 3)) == Values{kInfinity, kInfinity, 1});
        CHECK(std::isnan(values(abs(x))[3]));
    }
    const Tensor x = tensor({-0.0, 0, 2, 2, 1, 2}, {3, 2}).set_requires_grad(), y = norm(x, -1, {1});
    CHECK(difference(y, {0, 1, 2.0 / 3}, {.relative = 1e-6}) == "");
    const Tensor first = grad({sum(y)}, {x}, {.create_graph = true})[0];
    CHECK(difference(first, {0, 0, 0.25, 0.25, 4.0 / 9, 1.0 / 9}, {.relative = 1e-6}) == "");
    CHECK(difference(slice(grad({sum(first)}, {x})[0], 0, 0, 1), {0, 0}, {}) == "");
}

TEST_CASE("breakpoints: gradients outside of the domain, of divisions by zero and at the limits of f16") {
    const Tensor x = tensor({-2, 2}, {2}).set_requires_grad();
    CHECK(difference(gradient_of(acosh(x), x, true), {1 / std::sqrt(3), 1 / std::sqrt(3)}, {.relative = 1e-6}) == "");
    const Tensor a = tensor({5, -5, 7}, {3}).set_requires_grad(), b = tensor({0, 0, 2}, {3}).set_requires_grad();
    for (const bool graph : {false, true})
        CHECK(gradient_of(fmod(a, b), b, graph) == Values{-kInfinity, kInfinity, -3});
    const Tensor gradient_of_b = grad({sum(fmod(a, b))}, {b}, {.create_graph = true, .allow_unused = true})[0];
    if (gradient_of_b.requires_grad())
        CHECK(values(grad({sum(gradient_of_b)}, {a}, {.allow_unused = true})[0]) == Values{0, 0, 0});
    const Tensor weight = tensor({0.25}, {1}).set_requires_grad(), at = tensor({-1, 0, 1}, {3}).set_requires_grad();
    const auto both = grad({sum(prelu(at, weight))}, {at, weight}, {.create_graph = true});
    CHECK(values(both[0]) == Values{0.25, 0.25, 1});
    CHECK(values(grad({sum(both[1])}, {at})[0]) == Values{1, 0, 0});
    const Tensor extreme = tensor({kInfinity, -kInfinity, 0.5}, {3}).set_requires_grad(), none = zeros({3});
    CHECK(gradient_of(smooth_l1_loss(extreme, none, Reduction::sum), extreme, false) == Values{1, -1, 0.5});
    CHECK(gradient_of(huber_loss(extreme, none, Reduction::sum, 2), extreme, false) == Values{2, -2, 0.5});
    // Minus the sum of 24 / (k - 8.5)^5, whose terms on both sides of 0 cancel.
    CHECK(difference(polygamma(4, tensor({-8.5}, {1})), {-9.0522546e-4}, {.relative = 1e-5}) == "");
    // 1 / 2^-20 is not representable in f16; nor are the squares of 300 and of 2^-20.
    const Tensor small = full({2}, 0x1p-20, {DType::f16}).set_requires_grad();
    const Tensor large = full({2}, 300, {DType::f16}).set_requires_grad();
    const ops::FusionScope unfused(false);
    CHECK(values(0x1p-18 / small) == Values{4, 4});
    CHECK(difference(gradient_of(asinh(large), large, false), Values(2, 1 / std::sqrt(90001)), within(DType::f16)) ==
          "");
    CHECK(difference(gradient_of(0x1p-30 / small, small, false), Values(2, -1024), within(DType::f16)) == "");
}

TEST_CASE("breakpoints: a gradient of f16 and bf16 is summed before rounding") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        // The two terms of each column cancel except for the rounding error of one of them.
        const Tensor a = tensor({1.0078125, 1, -1.0078125, 1}, {2, 2}).to(dtype);
        const Tensor b = tensor({1.0078125, 3}, {1, 2}).to(dtype).set_requires_grad();
        const Tensor out_gradient = tensor({1.0078125, 0, 1, 0}, {2, 2}).to(dtype);
        CHECK(values(grad({sum((a * b) * out_gradient)}, {b})[0])[0] ==
              as_type(1.0078125 * 1.0078125 - 1.0078125, dtype));
    }
}

TEST_CASE("breakpoints: finite elements next to infinity have gradient 0 in logsumexp and logcumsumexp") {
    // exp(100) is infinite in f32, too.
    const std::vector<Values> rows{
        {1, 100, kInfinity}, {100, kInfinity, 1}, {kInfinity, 100, -100}, {kInfinity, kInfinity, 100}};
    for (const DType dtype : floats())
        for (const Values& row : rows)
            for (const bool cumulative : {false, true}) {
                CAPTURE(name_of(dtype));
                CAPTURE(cumulative);
                Tensor x = tensor(row, {1, 3}, dtype).set_requires_grad();
                const Tensor y = cumulative ? slice(logcumsumexp(x, 1), 1, 2, 3) : logsumexp(x, {1});
                CHECK(values(y)[0] == kInfinity);
                sum(y).backward();
                const Values gradient = values(x.grad());
                for (std::size_t i = 0; i < row.size(); ++i)
                    if (std::isfinite(row[i])) CHECK(gradient[i] == 0);
            }
}

TEST_CASE("breakpoints: division by a number whose reciprocal is out of range") {
    for (const DType dtype : floats()) {
        CAPTURE(name_of(dtype));
        const bool is_f64 = dtype == DType::f64;
        const double large = is_f64 ? 1e308 : 2e38, small = is_f64 ? 1e-309 : 1e-40;
        const Values x{large, -large / 2, large / 8, 0, kInfinity};
        const Tensor large_values = tensor(x, {5}, dtype);
        const auto check = [&](const Tensor& y) {
            CHECK(difference(y, {1, -0.5, 0.125, 0, kInfinity}, {.relative = 1e-6}) == "");
        };
        check(large_values / large);
        check(large_values.clone().div_(large));
        check(large_values / tensor({large}, {1}, dtype));
        Tensor target = large_values.clone();
        target /= large;
        check(target);
        Tensor in_graph = large_values.clone().set_requires_grad() * 1.0;
        in_graph.div_(large);
        check(in_graph.detach());
        // 0 stays 0, and a representable quotient is not infinite.
        const Values small_expected{0, is_f64 ? 1e-10 : 1e-20, is_f64 ? -1e-300 : -1e-30};
        const Values expected{0, is_f64 ? 1e299 : 1e20, is_f64 ? -1e9 : -1e10};
        CHECK(difference(tensor(small_expected, {3}, dtype) / small, expected, {.relative = 1e-6}) == "");
        CHECK(difference(tensor(small_expected, {3}, dtype).div_(small), expected, {.relative = 1e-6}) == "");
    }
    const Tensor x_bf16 = tensor({1e38, 0}, {2}, DType::bf16);
    CHECK(difference(x_bf16 / 2e38, {0.5, 0}, {.relative = 0.01}) == "");
    CHECK(difference(tensor({0, 1e-20}, {2}, DType::bf16) / 1e-40, {0, 1e20}, {.relative = 0.01}) == "");
    CHECK(std::isnan(values(zeros({1}) / 0)[0]));
    CHECK(values(ones({1}) / 0)[0] == kInfinity);
    CHECK(values(ones({1}) / kInfinity)[0] == 0);
}

TEST_CASE("breakpoints: silu, mish and gelu have the limits 0 and 1 as gradients at infinities") {
    const std::vector<std::function<Tensor(const Tensor&)>> functions{[](const Tensor& x) { return silu(x); },
                                                                      [](const Tensor& x) { return mish(x); },
                                                                      [](const Tensor& x) { return gelu(x); }};
    for (const DType dtype : types())
        for (std::size_t i = 0; i < functions.size(); ++i)
            for (const bool two_steps : {false, true}) {
                CAPTURE(name_of(dtype));
                CAPTURE(i);
                CAPTURE(two_steps);
                const Tensor x = tensor({-kInfinity, -1000, 1000, kInfinity}, {4}).to(dtype).set_requires_grad();
                CHECK(values(grad({sum(functions[i](x))}, {x}, {.create_graph = two_steps})[0]) == Values{0, 0, 1, 1});
            }
}

TEST_CASE("breakpoints: a NaN error has gradient NaN in smooth_l1_loss and huber_loss") {
    for (const bool create_graph : {false, true}) {
        Tensor x = tensor({NAN, 1, 3, INFINITY}, {4}).set_requires_grad();
        const Tensor zero = zeros({4});
        const auto gradient_values = [&](const Tensor& y) {
            return values(grad(y, x, {.create_graph = create_graph}));
        };
        for (const std::vector<double>& found : {gradient_values(smooth_l1_loss(x, zero, Reduction::sum, 2)),
                                                 gradient_values(huber_loss(x, zero, Reduction::sum, 2))}) {
            CHECK(std::isnan(found[0]));
            CHECK((found[1] == 0.5 || found[1] == 1));
            CHECK((found[2] == 1 || found[2] == 2));
            CHECK(found[2] == found[3]);
        }
    }
}
