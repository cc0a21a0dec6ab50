// Statistics beyond the catalogue: integers, NaN, infinities, no elements, errors.
#include <declivity/functions/statistics.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Tensor float_vector(std::initializer_list<float> x) {
    return Tensor::from<float>(x, {static_cast<std::int64_t>(x.size())});
}
Tensor int64_vector(std::initializer_list<std::int64_t> x) {
    return Tensor::from<std::int64_t>(x, {static_cast<std::int64_t>(x.size())});
}

/// Equal; NaN equals NaN.
bool same(const Tensor& got, const Values& expected) {
    const Values have = values(got);
    if (have.size() != expected.size()) return false;
    for (std::size_t i = 0; i < have.size(); ++i)
        if (have[i] != expected[i] && !(std::isnan(have[i]) && std::isnan(expected[i]))) return false;
    return true;
}

}  // namespace

TEST_CASE("nansum, nanmean, nanmedian: only NaN, empty inputs, integers") {
    CHECK(same(nansum(float_vector({kNan, kNan})), {0}));
    CHECK(same(nansum(float_vector({})), {0}));
    CHECK(same(nanmean(float_vector({kNan, kNan})), {NAN}));
    CHECK(same(nanmean(float_vector({kNan, 3, 5})), {4}));
    CHECK(same(nansum(int64_vector({1, 2, 4})), {7}));
    CHECK(nansum(int64_vector({1, 2})).dtype() == DType::i64);
    CHECK(same(nanmean(full({70000}, 0.5, {DType::f16})), {0.5}));  // counts beyond the largest f16
    CHECK_THROWS_AS((void)nanmean(int64_vector({1})), TypeError);
    const NanMedian both = nanmedian(Tensor::from<float>({kNan, 5, 1, 4, kNan, kNan, kNan, 2}, {2, 4}), 1);
    CHECK(same(both.values, {4, 2}));
    CHECK(same(both.indices, {3, 3}));
    CHECK(same(nanmedian(float_vector({kNan})), {NAN}));
    CHECK(same(nanmedian(zeros({0, 3})), {NAN}));
    CHECK(same(median(zeros({0, 3})), {NAN}));
    CHECK(median(zeros({0, 3})).shape() == Shape{});
    CHECK_THROWS_AS((void)median(zeros({0, 3}, {DType::i32})), ShapeError);
    CHECK(same(nanmedian(int64_vector({4, 1, 3, 2})), {2}));
    CHECK(same(nanmedian(full({}, 3), 0).values, {3}));
    CHECK_THROWS_WITH_AS((void)nanmedian(zeros({2, 0}), 1),
                         "nanmedian: expected at least one element along axis 1, got [2, 0]", ShapeError);
    Tensor x = float_vector({1, kNan, 3}).set_requires_grad();
    nansum(x).backward();
    CHECK(same(x.grad(), {1, 0, 1}));
}

TEST_CASE("cov, corrcoef: one variable, integers, constant rows, few observations, weights") {
    CHECK(cov(float_vector({1, 2, 4})).shape() == Shape{});
    CHECK(difference(cov(float_vector({1, 2, 4})), {7.0 / 3}, tolerance(DType::f32, 4)) == "");
    CHECK(same(cov(Tensor::from<std::int64_t>({0, 1, 2, 2, 1, 0}, {2, 3})), {1, -1, -1, 1}));
    CHECK(same(cov(float_vector({1, 3}), 0), {1}));
    CHECK(same(cov(float_vector({1})), {NAN}));
    CHECK(same(cov(float_vector({})), {NAN}));
    CHECK(same(corrcoef(float_vector({1, 2, 4})), {1}));
    CHECK(same(corrcoef(Tensor::from<float>({0, 1, 2, 2, 1, 0}, {2, 3})), {1, -1, -1, 1}));
    CHECK(same(corrcoef(Tensor::from<float>({0, 1, 2, 5, 5, 5}, {2, 3})), {1, NAN, NAN, NAN}));
    // A weight of 2 equals a repeated observation.
    CHECK(difference(cov(float_vector({1, 2, 4}), 1, int64_vector({1, 2, 3})),
                     values(cov(float_vector({1, 2, 2, 4, 4, 4}))), tolerance(DType::f32, 8)) == "");
    CHECK_THROWS_WITH_AS((void)cov(zeros({2, 3, 4})),
                         "cov: expected x of shape (variables, observations) or (observations), got [2, 3, 4]",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)cov(float_vector({1, 2}), 1, float_vector({1, 2})),
                         "cov: expected integers as fweights, got f32", TypeError);
    CHECK_THROWS_WITH_AS((void)cov(float_vector({1, 2}), 1, {}, int64_vector({1, 2})),
                         "cov: expected a floating type as aweights, got i64", TypeError);
    CHECK_THROWS_AS((void)cov(float_vector({1, 2}), 1, int64_vector({1, 2, 3})), ShapeError);
    CHECK_THROWS_WITH_AS((void)corrcoef(float_vector({1}) > 0), "corrcoef: expected a numeric type, got bool",
                         TypeError);
}

TEST_CASE("renorm: rows of 0, all powers, errors") {
    const Tensor x = Tensor::from<float>({0, 0, 3, 4, 0.5F, 0}, {3, 2});
    CHECK(difference(renorm(x, 2, 0, 1), {0, 0, 0.6, 0.8, 0.5, 0}, tolerance(DType::f32, 4)) == "");
    CHECK(difference(renorm(x, std::numeric_limits<double>::infinity(), 0, 1), {0, 0, 0.75, 1, 0.5, 0},
                     tolerance(DType::f32, 4)) == "");
    CHECK(difference(renorm(x, 1, -1, 7), values(x), tolerance(DType::f32, 4)) == "");
    Tensor leaf = x.clone().set_requires_grad();
    sum(renorm(leaf, 2, 0, 1)).backward();
    CHECK(difference(leaf.grad(), {1, 1, 4.0 / 125, -3.0 / 125, 1, 1}, tolerance(DType::f32, 10)) == "");
    CHECK_THROWS_WITH_AS((void)renorm(float_vector({1}), 2, 0, 1), "renorm: expected at least two axes, got [1]",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)renorm(x, 0, 0, 1), "renorm: expected p > 0 and maxnorm >= 0, got 0 and 1", ValueError);
}

TEST_CASE("diff: integers, bool, more steps than elements, errors") {
    CHECK(same(diff(int64_vector({1, 4, 2})), {3, -2}));
    CHECK(same(diff(Tensor::from<std::uint8_t>({1, 4, 2}, {3})), {3, 254}));  // modulo 256
    CHECK(same(diff(float_vector({1, 1, 0}) > 0), {0, 1}));
    CHECK(diff(float_vector({1, 1, 0}) > 0).dtype() == DType::boolean);
    CHECK(diff(float_vector({1, 2}), 5).shape() == Shape{0});
    CHECK(same(diff(float_vector({1, 2}), 0, -1, float_vector({7})), {1, 2}));
    CHECK(same(diff(float_vector({1, 2}), 1, 0, {}, float_vector({7, 8})), {1, 5, 1}));
    CHECK_THROWS_WITH_AS((void)diff(full({}, 1)), "diff: expected at least one axis, got a tensor without axes",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)diff(float_vector({1}), -1), "diff: expected n of at least 0, got -1", ValueError);
    CHECK_THROWS_AS((void)diff(float_vector({1}), 1, -1, zeros({1, 1})), ShapeError);
}

TEST_CASE("trapezoid, cumulative_trapezoid: integers, few samples, errors") {
    CHECK(same(trapezoid(int64_vector({1, 2, 4})), {4.5}));
    CHECK(trapezoid(int64_vector({1, 2, 4})).dtype() == DType::f32);
    CHECK(same(trapezoid(float_vector({1, 2, 4}), int64_vector({0, 2, 3})), {6}));
    CHECK(same(trapezoid(float_vector({3})), {0}));
    CHECK(same(trapezoid(zeros({2, 0})), {0, 0}));
    CHECK(same(cumulative_trapezoid(int64_vector({1, 2, 4}), 2), {3, 9}));
    CHECK(cumulative_trapezoid(float_vector({3})).shape() == Shape{0});
    // x with fewer axes than y corresponds to its last ones, x (n) to the axis of samples.
    const Tensor y = ones({2, 3, 2}), x = Tensor::from<float>({0, 0, 1, 2, 3, 6}, {3, 2});
    CHECK(same(trapezoid(y, x, 1), {3, 6, 3, 6}));
    CHECK(same(trapezoid(y, float_vector({0, 1, 5}), 1), {5, 5, 5, 5}));
    CHECK_THROWS_WITH_AS((void)trapezoid(y, float_vector({0, 1}), 1),
                         "trapezoid: expected x of 3 samples along axis 1 of [2, 3, 2], got [2]", ShapeError);
    CHECK_THROWS_WITH_AS((void)trapezoid(y > 0), "trapezoid: expected y of a numeric type, got bool", TypeError);
}

TEST_CASE("dist: powers, equal points") {
    const Tensor a = float_vector({1, 2, 3}), b = float_vector({1, 4, 0});
    CHECK(same(dist(a, b, 1), {5}));
    CHECK(same(dist(a, b, 0), {2}));
    CHECK(same(dist(a, b, std::numeric_limits<double>::infinity()), {3}));
    Tensor leaf = float_vector({1, 2}).set_requires_grad();
    dist(leaf, float_vector({1, 2})).backward();
    CHECK(same(leaf.grad(), {0, 0}));
    CHECK_THROWS_AS((void)dist(a, float_vector({1, 2})), ShapeError);
    CHECK_THROWS_AS((void)dist(a, int64_vector({1, 2, 3})), TypeError);
}

TEST_CASE("isclose, allclose: NaN, infinities, integers, tolerances of 0, errors") {
    const Tensor a = float_vector({1, kNan, kInf, kInf, 0}), b = float_vector({1.000001F, kNan, kInf, -kInf, 1e-9F});
    CHECK(same(isclose(a, b), {1, 0, 1, 0, 1}));
    CHECK(same(isclose(a, b, 1e-5, 1e-8, true), {1, 1, 1, 0, 1}));
    CHECK(same(isclose(a, b, 0, 0), {0, 0, 1, 0, 0}));
    CHECK(same(isclose(float_vector({0}), float_vector({kInf}), 1), {0}));
    CHECK(same(isclose(int64_vector({100, 100}), int64_vector({101, 103}), 0.02), {1, 0}));
    CHECK(same(isclose(Tensor::from<std::uint8_t>({1}, {1}), Tensor::from<std::uint8_t>({3}, {1}), 0, 2), {1}));
    CHECK(same(isclose(float_vector({1, 0}) > 0, float_vector({1, 1}) > 0), {1, 0}));
    CHECK(allclose(float_vector({1, 2}), float_vector({1.000001F, 2})));
    CHECK_FALSE(allclose(float_vector({1, 2}), float_vector({1.1F, 2})));
    CHECK(allclose(float_vector({1.5F}), zeros({2, 3}), 0, 2));
    CHECK(allclose(float_vector({}), float_vector({})));
    CHECK_FALSE(allclose(float_vector({kNan}), float_vector({kNan})));
    CHECK(allclose(float_vector({kNan}), float_vector({kNan}), 0, 0, true));
    CHECK_THROWS_AS((void)allclose(float_vector({1}), int64_vector({1})), TypeError);
    CHECK_THROWS_WITH_AS((void)isclose(a, b, -1), "isclose: expected rtol and atol of at least 0, got -1 and 1e-08",
                         ValueError);
    CHECK_THROWS_WITH_AS((void)allclose(a, b, 1, -1), "allclose: expected rtol and atol of at least 0, got 1 and -1",
                         ValueError);
}

TEST_CASE("isin: any shapes and types, NaN, empty test elements") {
    CHECK(same(isin(int64_vector({1, 5, 2, 9}), Tensor::from<std::int64_t>({9, 2, 2, 7}, {2, 2})), {0, 0, 1, 1}));
    CHECK(same(isin(int64_vector({1, 5, 2, 9}), int64_vector({9, 2}), true), {1, 1, 0, 0}));
    CHECK(same(isin(float_vector({1, kNan, 2.5F}), float_vector({kNan, 2.5F, 0})), {0, 0, 1}));
    CHECK(same(isin(int64_vector({1, 2}), float_vector({1, 2.5F})), {1, 0}));
    CHECK(same(isin(int64_vector({1, 2}), full({}, 2, {DType::i64})), {0, 1}));
    CHECK(same(isin(float_vector({1, 0}) > 0, float_vector({1}) > 0), {1, 0}));
    CHECK(same(isin(int64_vector({1, 2}), int64_vector({})), {0, 0}));
    CHECK(same(isin(int64_vector({1, 2}), int64_vector({}), true), {1, 1}));
    CHECK(isin(int64_vector({}), int64_vector({1})).shape() == Shape{0});
}

TEST_CASE("fmin, fmax, signbit: NaN, equal numbers, minus zero, integers") {
    CHECK(same(fmin(float_vector({1, kNan, 3, kNan}), float_vector({2, 2, kNan, kNan})), {1, 2, 3, NAN}));
    CHECK(same(fmax(float_vector({1, kNan, 3, kNan}), float_vector({2, 2, kNan, kNan})), {2, 2, 3, NAN}));
    CHECK(same(fmax(float_vector({1, kNan}), 2), {2, 2}));
    CHECK(same(fmin(2, int64_vector({1, 3})), {1, 2}));
    CHECK(fmin(2, int64_vector({1, 3})).dtype() == DType::i64);
    Tensor a = float_vector({1, kNan, 3}).set_requires_grad(), b = float_vector({1, 2, kNan}).set_requires_grad();
    sum(fmax(a, b)).backward();
    CHECK(same(a.grad(), {0.5, 0, 1}));  // equal numbers share the gradient
    CHECK(same(b.grad(), {0.5, 1, 0}));
    CHECK(same(signbit(float_vector({-0.0F, 0, -kInf, 2})), {1, 0, 1, 0}));
    CHECK(same(signbit(int64_vector({-1, 0, 1})), {1, 0, 0}));
    CHECK(same(signbit(Tensor::from<std::uint8_t>({200}, {1})), {0}));
    CHECK(same(signbit(float_vector({1}) > 0), {0}));
    CHECK_THROWS_WITH_AS((void)fmin(TensorOrScalar(1), 2), "fmin: expected a tensor among its inputs, got numbers",
                         ValueError);
    CHECK_THROWS_AS((void)fmax(zeros({1}, {DType::u64}), int64_vector({1})), TypeError);
}

TEST_CASE("xlogy, logit, logaddexp2, ldexp, deg2rad: corner cases, numbers, integers") {
    CHECK(same(xlogy(float_vector({0, 0, 0, 0, 1}), float_vector({0, -1, kInf, kNan, 0})), {0, 0, 0, NAN, -INFINITY}));
    CHECK(same(xlogy(0, float_vector({0, 2})), {0, 0}));
    CHECK(same(xlogy(int64_vector({0, 2}), 1), {0, 0}));
    CHECK(xlogy(int64_vector({0, 2}), 1).dtype() == DType::f32);
    Tensor x = float_vector({0, 0}).set_requires_grad();
    sum(xlogy(x, float_vector({0, 1}))).backward();
    CHECK(same(x.grad(), {0, 0}));
    CHECK(same(logit(float_vector({0, 0.5F, 1, 2, -1})), {-INFINITY, 0, INFINITY, NAN, NAN}));
    Tensor p = float_vector({0.1F, 0.5F, 0.9F}).set_requires_grad();
    sum(logit(p, 0.25)).backward();
    CHECK(same(p.grad(), {0, 4, 0}));
    CHECK(same(logaddexp2(float_vector({-kInf, kInf}), float_vector({-kInf, -kInf})), {-INFINITY, INFINITY}));
    CHECK(difference(logaddexp2(float_vector({1000}), 1000), {1001}, tolerance(DType::f32, 4)) == "");
    CHECK(same(ldexp(float_vector({1.5F, -2}), int64_vector({3, -1})), {12, -1}));
    CHECK(same(ldexp(float_vector({1.5F}), 3), {12}));
    CHECK(same(ldexp(3, int64_vector({2})), {12}));
    CHECK(difference(deg2rad(int64_vector({180})), {3.14159265358979}, tolerance(DType::f32, 2)) == "");
    CHECK_THROWS_WITH_AS((void)ldexp(TensorOrScalar(1), 2), "ldexp: expected a tensor among its inputs, got numbers",
                         ValueError);
}

TEST_CASE("sinc: all derivatives at 0") {
    for (const DType dtype : floats()) {
        Tensor x = zeros({1}, {dtype}).set_requires_grad();
        Tensor y = sinc(x);
        CHECK(same(y, {1}));
        // The derivatives of 1 - t^2/6 + t^4/120 - ..., t = pi x.
        const double pi = 3.14159265358979323846;
        const Values expected{0, -pi * pi / 3, 0, std::pow(pi, 4) / 5};
        for (const double value : expected) {
            y = grad({y}, {x}, {.output_gradients = {ones({1}, {dtype})}, .create_graph = true})[0];
            CHECK(difference(y, {value}, tolerance(dtype, 20)) == "");
        }
    }
}
