// Random numbers of all distributions: each tested against its distribution with three seeds, and common properties.
#include <declivity/functions/random.hpp>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/functions/catalogue/cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/statistics.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using catalogue::Values;

namespace {

using Draw = std::function<Tensor(std::int64_t count, DType dtype, const Generator& generator)>;

constexpr std::array<std::uint64_t, 3> kSeeds{1, 77, 20250101};
constexpr double kMax = 2.2;  // of the Kolmogorov-Smirnov statistic

std::int64_t sample_count() { return small_cases() ? 600 : 20000; }

struct Continuous {
    std::string name;
    Draw draw;
    std::function<double(double)> cdf;
};

double normal_cdf(double z) { return 0.5 * std::erfc(-z * std::sqrt(0.5)); }

TensorOptions options_of(DType dtype) { return {dtype, device()}; }

std::vector<Continuous> continuous() {
    std::vector<Continuous> all{
        {"uniform", [](auto n, DType t, auto& g) { return uniform({n}, -1, 3, options_of(t), g); },
         [](double x) { return (x + 1) / 4; }},
        {"rand", [](auto n, DType t, auto& g) { return rand({n}, options_of(t), g); }, [](double x) { return x; }},
        {"normal", [](auto n, DType t, auto& g) { return normal({n}, 2, 0.5, options_of(t), g); },
         [](double x) { return normal_cdf((x - 2) / 0.5); }},
        {"randn", [](auto n, DType t, auto& g) { return randn({n}, options_of(t), g); }, normal_cdf},
        {"normal of tensors",
         [](auto n, DType t, auto& g) { return normal(full({n}, -1, options_of(t)), full({1}, 3, options_of(t)), g); },
         [](double x) { return normal_cdf((x + 1) / 3); }},
        {"exponential", [](auto n, DType t, auto& g) { return exponential({n}, 2.5, options_of(t), g); },
         [](double x) { return -std::expm1(-2.5 * x); }},
        {"truncated_normal",
         [](auto n, DType t, auto& g) { return truncated_normal({n}, 0.5, 2, -1, 4, options_of(t), g); },
         [](double x) {
             const double low = normal_cdf(-0.75), high = normal_cdf(1.75);
             return (normal_cdf((x - 0.5) / 2) - low) / (high - low);
         }},
        {"log_normal", [](auto n, DType t, auto& g) { return log_normal({n}, 0.25, 0.75, options_of(t), g); },
         [](double x) { return normal_cdf((std::log(x) - 0.25) / 0.75); }},
        {"cauchy", [](auto n, DType t, auto& g) { return cauchy({n}, 1, 2, options_of(t), g); },
         [](double x) { return 0.5 + std::atan((x - 1) / 2) / 3.14159265358979323846; }},
        {"laplace", [](auto n, DType t, auto& g) { return laplace({n}, -1, 2, options_of(t), g); },
         [](double x) { return x < -1 ? 0.5 * std::exp((x + 1) / 2) : 1 - 0.5 * std::exp(-(x + 1) / 2); }},
        {"gumbel", [](auto n, DType t, auto& g) { return gumbel({n}, 1, 0.5, options_of(t), g); },
         [](double x) { return std::exp(-std::exp(-(x - 1) / 0.5)); }},
    };
    for (const double a : {0.1, 0.7, 1.0, 3.5, 150.0})
        all.push_back({fmt::format("gamma {}", a),
                       [a](auto n, DType t, auto& g) { return gamma(full({n}, a, options_of(t)), 2, g); },
                       [a](double x) { return incomplete_gamma(a, 2 * x); }});
    for (const auto& [a, b] : {std::pair{0.7, 0.6}, std::pair{2.0, 5.0}, std::pair{40.0, 1.0}})
        all.push_back({fmt::format("beta {} {}", a, b),
                       [a, b](auto n, DType t, auto& g) {
                           return beta(full({n}, a, options_of(t)), full({1}, b, options_of(t)), g);
                       },
                       [a, b](double x) { return incomplete_beta(a, b, x); }});
    // A component of a Dirichlet distribution is beta distributed.
    all.push_back({"dirichlet",
                   [](auto n, DType t, auto& g) {
                       const Tensor shares = dirichlet(expand(tensor(Values{0.5, 2, 1.5}, {3}, t), {n, 3}), g);
                       return select(shares, 1, 1);
                   },
                   [](double x) { return incomplete_beta(2, 2, x); }});
    return all;
}

struct Discrete {
    std::string name;
    Draw draw;
    std::int64_t first;  // value of the first cell; values beyond the last are counted there
    std::vector<double> probabilities;
};

std::vector<double> poisson_cells(double rate) {
    std::vector<double> out;
    double remaining = 1;
    for (int k = 0; k < rate + 8 * std::sqrt(rate) + 8; ++k) {
        out.push_back(std::exp(k * std::log(rate) - rate - std::lgamma(k + 1.0)));
        remaining -= out.back();
    }
    out.push_back(std::max(0.0, remaining));
    return out;
}

std::vector<Discrete> discrete() {
    const auto logits = [](DType t) { return tensor(Values{0.5, -1, 2, 0}, {4}, t); };
    std::vector<double> softmaxed;
    double total = 0;
    for (const double x : {0.5, -1.0, 2.0, 0.0}) softmaxed.push_back(std::exp(x)), total += std::exp(x);
    for (double& p : softmaxed) p /= total;
    std::vector<double> trials;
    double remaining = 1;
    for (int k = 1; k < 40; ++k) trials.push_back(remaining * 0.3), remaining *= 0.7;
    trials.push_back(remaining);
    const auto weights = [](auto n, DType t) { return expand(tensor(Values{1, 0, 3, 4}, {4}, t), {n, 4}); };
    std::vector<Discrete> all{
        {"bernoulli", [](auto n, DType t, auto& g) { return bernoulli({n}, 0.3, options_of(t), g); }, 0, {0.7, 0.3}},
        {"bernoulli of tensors",
         [](auto n, DType t, auto& g) { return bernoulli(full({n}, 0.15, options_of(t)), g); },
         0,
         {0.85, 0.15}},
        {"randint", [](auto n, DType, auto& g) { return randint(-3, 8, {n}, options_of(DType::i64), g); }, -3,
         std::vector<double>(11, 1.0 / 11)},
        {"geometric", [](auto n, DType t, auto& g) { return geometric({n}, 0.3, options_of(t), g); }, 1, trials},
        {"categorical",
         [=](auto n, DType t, auto& g) {
             return categorical(expand(logits(t), {n, 4}), -1, g);
         },
         0, softmaxed},
        {"categorical along axis 0",
         [=](auto n, DType t, auto& g) {
             return categorical(expand(unsqueeze(logits(t), 1), {4, n}), 0, g);
         },
         0, softmaxed},
        {"gumbel_softmax",
         [=](auto n, DType t, auto& g) {
             return argmax(gumbel_softmax(expand(logits(t), {n, 4}), 0.5, false, -1, g));
         },
         0, softmaxed},
        {"multinomial with replacement",
         [=](auto n, DType t, auto& g) { return select(multinomial(weights(n, t), 3, true, g), 1, 2); },
         0,
         {0.125, 0, 0.375, 0.5}},
        {"multinomial of one row",
         [](auto n, DType t, auto& g) {
             return multinomial(tensor(Values{2, 1, 0, 5, 0}, {5}, t), n, true, g);
         },
         0,
         {0.25, 0.125, 0, 0.625, 0}},
        {"the first without replacement",
         [=](auto n, DType t, auto& g) { return select(multinomial(weights(n, t), 2, false, g), 1, 0); },
         0,
         {0.125, 0, 0.375, 0.5}},
        // First i with w_i / 8, then j from the rest with w_j / (8 - w_i).
        {"the second without replacement",
         [=](auto n, DType t, auto& g) { return select(multinomial(weights(n, t), 2, false, g), 1, 1); },
         0,
         {3.0 / 8 / 5 + 4.0 / 8 / 4, 0, 1.0 / 8 * 3 / 7 + 4.0 / 8 * 3 / 4, 1.0 / 8 * 4 / 7 + 3.0 / 8 * 4 / 5}},
        {"dropout",
         [](auto n, DType t, auto& g) { return dropout(full({n}, 0.8, options_of(t)), 0.2, g); },
         0,
         {0.2, 0.8}},
        {"dropout2d",
         [](auto n, DType t, auto& g) {
             return select(dropout2d(full({n, 1, 2, 2}, 0.8, options_of(t)), 0.2, g), 3, 1);
         },
         0,
         {0.2, 0.8}},
    };
    for (const double rate : {0.3, 4.0, 9.5, 10.0, 37.0, 1000.0})
        all.push_back({fmt::format("poisson {}", rate),
                       [rate](auto n, DType t, auto& g) { return poisson(full({n}, rate, options_of(t)), g); }, 0,
                       poisson_cells(rate)});
    return all;
}

}  // namespace

TEST_CASE("random: continuous distributions (Kolmogorov-Smirnov)") {
    for (const Continuous& item : continuous())
        for (const std::uint64_t seed : kSeeds)
            for (const DType dtype : floats()) {
                CAPTURE(item.name);
                CAPTURE(seed);
                CAPTURE(name_of(dtype));
                const Tensor samples = item.draw(sample_count(), dtype, Generator(seed, device()));
                CHECK(samples.dtype() == dtype);
                CHECK(kolmogorov_smirnov(values(samples), item.cdf) < kMax);
            }
}

TEST_CASE("random: integers and choices (Pearson)") {
    for (const Discrete& item : discrete())
        for (const std::uint64_t seed : kSeeds)
            for (const DType dtype : floats()) {
                CAPTURE(item.name);
                CAPTURE(seed);
                CAPTURE(name_of(dtype));
                std::vector<std::int64_t> counts(item.probabilities.size());
                for (const double number : values(item.draw(sample_count(), dtype, Generator(seed, device())))) {
                    const double cell = std::round(number * 1e5) * 1e-5 - static_cast<double>(item.first);
                    CHECK_MESSAGE(cell == doctest::Approx(std::round(cell)), "not an integer");
                    if (!(cell >= -0.5)) FAIL("below the first number, or NaN");
                    ++counts[std::min(counts.size() - 1, static_cast<std::size_t>(std::lround(cell)))];
                }
                CHECK(chi_squared_excess(counts, item.probabilities) <= 0);
            }
}

TEST_CASE("random: all orders of randperm are equally frequent") {
    for (const std::uint64_t seed : kSeeds) {
        const Generator from(seed, device());
        std::map<std::vector<double>, std::int64_t> found;
        const int draws = small_cases() ? 240 : 2400;
        for (int i = 0; i < draws; ++i) ++found[values(randperm(4, options_of(DType::i64), from))];
        CHECK(found.size() == 24);
        std::vector<std::int64_t> counts;
        for (const auto& [order, count] : found) {
            CHECK(std::set<double>(order.begin(), order.end()) == std::set<double>{0, 1, 2, 3});
            counts.push_back(count);
        }
        CHECK(chi_squared_excess(counts, std::vector<double>(counts.size(), 1.0 / 24)) <= 0);
    }
}

TEST_CASE("random: alpha_dropout keeps mean 0 and variance 1") {
    for (const std::uint64_t seed : kSeeds)
        for (const auto call : {alpha_dropout, feature_alpha_dropout}) {
            const Generator from(seed, device());
            const std::int64_t n = sample_count();
            const auto y = values(call(randn({n / 4, 4}, options_of(DType::f32), from), 0.3, from));
            double sum = 0, squares = 0;
            for (const double value : y) sum += value, squares += value * value;
            const auto count = static_cast<double>(y.size());
            // The fourth moment is below 5: 4 standard errors.
            CHECK(std::abs(sum / count) < 4 / std::sqrt(count));
            CHECK(std::abs(squares / count - 1) < 4 * 2 / std::sqrt(count));
        }
}

TEST_CASE("random: adjacent numbers are independent") {
    for (const Continuous& item : continuous())
        for (const std::uint64_t seed : kSeeds) {
            CAPTURE(item.name);
            // The quantiles of the values, uniform: the correlation of neighbours.
            std::vector<double> u;
            for (const double x : values(item.draw(sample_count(), DType::f32, Generator(seed, device()))))
                u.push_back((item.cdf(x) - 0.5) * std::sqrt(12.0));
            double sum = 0;
            for (std::size_t i = 0; i + 1 < u.size(); ++i) sum += u[i] * u[i + 1];
            CHECK(std::abs(sum) < 4.5 * std::sqrt(static_cast<double>(u.size())));
        }
}

TEST_CASE("random: equal seeds give equal numbers, other seeds and positions others, in both kernel styles") {
    for (const Continuous& item : continuous()) {
        CAPTURE(item.name);
        const Generator first(5, device()), second(5, device()), other(6, device());
        const auto first_numbers = values(item.draw(101, DType::f32, first));
        CHECK(values(item.draw(101, DType::f32, second)) == first_numbers);
        CHECK(first.position() == second.position());
        CHECK(values(item.draw(101, DType::f32, first)) != first_numbers);
        CHECK(values(item.draw(101, DType::f32, other)) != first_numbers);
        for (const KernelStyle style : kernel_styles()) {
            const ops::KernelStyleScope scope(style);
            const Tensor repeated = item.draw(101, DType::f32, Generator(5, device()));
            // The kernel styles sum a row in different orders.
            if (item.name == "dirichlet") CHECK(difference(repeated, first_numbers, tolerance(DType::f32, 10)) == "");
            else CHECK(values(repeated) == first_numbers);
        }
    }
}

TEST_CASE("random: parameters of any layout, type and size") {
    const Tensor a = exp(random_tensor({7, 5, 3}, 4));
    const auto calls = std::vector<std::pair<const char*, std::function<Tensor(const Tensor&, const Generator&)>>>{
        {"bernoulli", [](const Tensor& x, const Generator& g) { return bernoulli(sigmoid(x), g); }},
        {"poisson", [](const Tensor& x, const Generator& g) { return poisson(x * 5.0, g); }},
        {"gamma", [](const Tensor& x, const Generator& g) { return gamma(x, 1.5, g); }},
        {"beta", [](const Tensor& x, const Generator& g) { return beta(x, x + 1.0, g); }},
        {"dirichlet", [](const Tensor& x, const Generator& g) { return dirichlet(x, g); }},
        {"normal", [](const Tensor& x, const Generator& g) { return normal(x, x, g); }},
        {"categorical", [](const Tensor& x, const Generator& g) { return categorical(x, 1, g).to(DType::f32); }},
        {"gumbel_softmax", [](const Tensor& x, const Generator& g) { return gumbel_softmax(x, 1, true, -1, g); }},
    };
    for (const auto& [name, call] : calls) {
        CAPTURE(std::string(name));
        const auto expected = values(call(a, Generator(3, device())));
        CHECK(values(call(catalogue::strided(a), Generator(3, device()))) == expected);
        CHECK(values(call(permute(permute(a, {2, 0, 1}).clone(), {1, 2, 0}), Generator(3, device()))) == expected);
        for (const DType half : {DType::f16, DType::bf16}) {
            const Tensor rounded = a.to(half);
            const Tensor sample = call(rounded, Generator(3, device()));
            CHECK(sample.dtype() == (std::string(name) == "categorical" ? DType::f32 : half));
            if (std::string(name) == "gumbel_softmax") continue;  // has rounded intermediate results
            const auto exact = values(call(rounded.to(DType::f32), Generator(3, device())).to(half).to(DType::f32));
            if (std::string(name) == "bernoulli" || std::string(name) == "poisson" || std::string(name) == "beta")
                continue;  // their parameters are rounded here
            CHECK(values(sample.to(DType::f32)) == exact);
        }
        CHECK(call(zeros({0, 5, 3}), Generator(3, device())).numel() == 0);
        CHECK(call(a, Generator(3, device())).requires_grad() == false);
        // A part of a batch has the same numbers as in the whole.
        const Generator rows = Generator(3, device()).rows(2, 5, 7);
        const Tensor part = call(slice(a, 0, 2, 5), rows), all_rows = slice(call(a, Generator(3, device())), 0, 2, 5);
        if (std::string(name) == "dirichlet")
            CHECK(difference(part, values(all_rows), tolerance(DType::f32, 10)) == "");
        else CHECK(values(part) == values(all_rows));
    }
    CHECK(multinomial(zeros({0, 4}), 2).shape() == Shape{0, 2});
    CHECK(poisson(tensor(Values{2.5}, {}, DType::f32)).shape() == Shape{});
}

TEST_CASE("random: invalid parameters give NaN, limits their limiting distribution") {
    const Tensor odd = tensor(Values{-1, NAN, INFINITY, 0}, {4}, DType::f32);
    const auto p = values(poisson(odd)), g = values(gamma(odd));
    CHECK(std::isnan(p[0]));
    CHECK(std::isnan(p[1]));
    CHECK(std::isinf(p[2]));
    CHECK(p[3] == 0);
    CHECK(std::isnan(g[0]));
    CHECK(std::isnan(g[1]));
    CHECK(std::isinf(g[2]));
    CHECK(g[3] == 0);
    // Small concentrations: the values underflow f32, but their logarithms do not.
    for (const double x : values(beta(full({200}, 1e-3), full({200}, 1e-3)))) CHECK((x >= 0 && x <= 1));
    for (const double x : values(truncated_normal({500}, 0, 1, 0, INFINITY))) CHECK(x >= 0);
    const Tensor masked = tensor(Values{-INFINITY, 0, -INFINITY, -INFINITY}, {4}, DType::f32);
    for (const double x : values(categorical(expand(masked, {300, 4})))) CHECK(x == 1);
    CHECK(values(geometric({5}, 1)) == Values(5, 1));
    CHECK(values(bernoulli(tensor(Values{0, 1}, {2}, DType::f32))) == Values{0, 1});
    for (const double share : values(sum(dirichlet(full({50, 6}, 0.01)), {-1}))) CHECK(share == doctest::Approx(1));
}

TEST_CASE("random: gumbel_softmax has the gradient of softmax, hard or not") {
    const Tensor x = random_tensor({4, 5}, 1), w = random_tensor({4, 5}, 2);
    std::vector<Values> gradients;
    for (const bool one_hot : {false, true}) {
        Tensor leaf = x.clone().set_requires_grad();
        const Tensor y = gumbel_softmax(leaf, 0.7, one_hot, -1, Generator(9, device()));
        sum(y * w).backward();
        gradients.push_back(values(leaf.grad()));
        const auto row = values(sum(y.detach(), {-1}));
        for (const double element : row) CHECK(element == doctest::Approx(1));
        if (one_hot)
            for (const double value : values(y)) CHECK((std::abs(value) < 1e-6 || std::abs(value - 1) < 1e-6));
    }
    CHECK(gradients[0] == gradients[1]);
    // softmax of logits and noise, composed.
    const Tensor noise = gumbel({4, 5}, 0, 1, options_of(DType::f32), Generator(9, device()));
    Tensor leaf = x.clone().set_requires_grad();
    sum(softmax((leaf + noise) * (1 / 0.7), 1) * w).backward();
    CHECK(difference(leaf.grad(), gradients[0], tolerance(DType::f32, 10)) == "");
}

TEST_CASE("random: a captured step matches eager calls, with new numbers in each replay") {
    const Tensor a = exp(random_tensor({6, 5}, 4));
    const auto step = [&](const Generator& from) {
        return std::vector<Tensor>{poisson(a * 4.0, from),
                                   gamma(a, 1, from),
                                   beta(a, a, from),
                                   bernoulli(sigmoid(a), from),
                                   categorical(a, -1, from).to(DType::f32),
                                   multinomial(a, 3, true, from).to(DType::f32),
                                   multinomial(a, 3, false, from).to(DType::f32),
                                   exponential({7}, 1, options_of(DType::f32), from),
                                   truncated_normal({7}, 0, 1, -2, 2, options_of(DType::f32), from),
                                   dropout2d(reshape(a, {6, 5, 1, 1}), 0.5, from),
                                   alpha_dropout(a, 0.5, from)};
    };
    const Generator plain(12, device()), captured(12, device());
    auto replayed = capture([&](const std::vector<Tensor>&) { return step(captured); });
    for (int round = 0; round < 4; ++round) {
        const auto expected = step(plain), replayed_results = replayed({a});
        for (std::size_t i = 0; i < expected.size(); ++i) {
            CAPTURE(round);
            CAPTURE(i);
            CHECK(values(replayed_results[i]) == values(expected[i]));
        }
    }
}

TEST_CASE("random: errors of the distributions") {
    const Tensor x = ones({2, 3}), integers = ones({2, 3}, {DType::i64}), none;
    CHECK_THROWS_WITH_AS(exponential({2}, 0), "exponential: expected a finite rate above 0, got 0", ValueError);
    CHECK_THROWS_WITH_AS(exponential({2}, 1, {DType::i32}), "exponential: expected f32, f64, f16 or bf16, got i32",
                         TypeError);
    CHECK_THROWS_WITH_AS(truncated_normal({2}, 0, 1, 2, 2), "truncated_normal: expected low < high, got 2 and 2",
                         ValueError);
    CHECK_THROWS_WITH_AS(truncated_normal({2}, 0, -1), "truncated_normal: expected a finite std above 0, got -1",
                         ValueError);
    CHECK_THROWS_WITH_AS(log_normal({2}, NAN), "log_normal: expected a finite mean, got nan", ValueError);
    CHECK_THROWS_WITH_AS(cauchy({2}, 0, 0), "cauchy: expected a finite scale above 0, got 0", ValueError);
    CHECK_THROWS_WITH_AS(laplace({2}, 0, -2), "laplace: expected a finite scale above 0, got -2", ValueError);
    CHECK_THROWS_WITH_AS(gumbel({2}, INFINITY), "gumbel: expected a finite mode, got inf", ValueError);
    CHECK_THROWS_WITH_AS(geometric({2}, 0), "geometric: expected a probability in (0, 1], got 0", ValueError);
    CHECK_THROWS_WITH_AS(bernoulli(integers), "bernoulli: expected f32, f64, f16 or bf16, got i64", TypeError);
    CHECK_THROWS_WITH_AS(poisson(integers), "poisson: expected f32, f64, f16 or bf16, got i64", TypeError);
    CHECK_THROWS_WITH_AS(gamma(integers), "gamma: expected f32, f64, f16 or bf16, got i64", TypeError);
    CHECK_THROWS_WITH_AS(gamma(x, 0), "gamma: expected a finite rate above 0, got 0", ValueError);
    CHECK_THROWS_AS(beta(x, zeros({4})), ShapeError);
    CHECK_THROWS_AS(normal(x, zeros({4})), ShapeError);
    CHECK_THROWS_AS(dirichlet(full({}, 1)), ShapeError);
    CHECK_THROWS_AS(categorical(zeros({3, 0})), ShapeError);
    CHECK_THROWS_AS(categorical(x, 2), ShapeError);
    CHECK_THROWS_WITH_AS(multinomial(x, 4),
                         "multinomial: expected a count of at least 1, and without replacement at most the 3 "
                         "categories, got 4",
                         ValueError);
    CHECK_THROWS_AS(multinomial(x, 0, true), ValueError);
    CHECK_THROWS_AS(multinomial(zeros({1, 2, 3}), 1), ShapeError);
    CHECK_THROWS_AS(gumbel_softmax(x, 0), ValueError);
    CHECK_THROWS_WITH_AS(dropout1d(full({3}, 1)), "dropout1d: expected x of 2 or 3 axes, got shape [3]", ShapeError);
    CHECK_THROWS_WITH_AS(dropout2d(x), "dropout2d: expected x of 3 or 4 axes, got shape [2, 3]", ShapeError);
    CHECK_THROWS_WITH_AS(dropout3d(x), "dropout3d: expected x of 4 or 5 axes, got shape [2, 3]", ShapeError);
    CHECK_THROWS_WITH_AS(alpha_dropout(x, 1.5), "alpha_dropout: expected p in [0, 1], got 1.5", ValueError);
    CHECK_THROWS_AS(feature_alpha_dropout(full({3}, 1)), ShapeError);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { (void)poisson(none); }, [&] { (void)gamma(none); }, [&] { (void)bernoulli(none); },
             [&] { (void)beta(x, none); }, [&] { (void)categorical(none); }, [&] { (void)multinomial(none, 1); }})
        CHECK_THROWS_AS(call(), ValueError);
}
