// The functions of statistics.hpp as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/host_matrix.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

double mean_of(const Values& x) {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum / static_cast<double>(x.size());
}
double variance_of(const Values& x, double correction) {
    double sum = 0;
    for (const double value : x) sum += (value - mean_of(x)) * (value - mean_of(x));
    return sum / (static_cast<double>(x.size()) - correction);
}

void add_moments(std::vector<Case>& all) {
    const auto scalar = [](double x) { return Values{x}; };
    // Replaces values above 1 by NaN.
    const auto holed = [](const Tensor& x) { return x.defined() && is_floating(x.dtype()) ? where(x > 1, NAN, x) : x; };
    const auto left = [](const Values& x) {
        Values out;
        for (const double value : x)
            if (!(value > 1)) out.push_back(value);
        return out;
    };
    all.push_back(axis_case(
        "nansum", [=](const Tensor& x) { return nansum(holed(x), {1}, true); },
        [=](const Values& x) {
            return scalar(left(x).empty() ? 0 : mean_of(left(x)) * static_cast<double>(left(x).size()));
        }));
    all.push_back(axis_case(
        "nanmean", [=](const Tensor& x) { return nanmean(holed(x), {1}, true); },
        [=](const Values& x) { return scalar(mean_of(left(x))); }));
    all.push_back(axis_case(
        "nanmedian", [=](const Tensor& x) { return nanmedian(holed(x), 1, true).values; },
        [=](const Values& x) {
            const Values s = sorted_values(left(x));
            return scalar(s.empty() ? NAN : s[(s.size() - 1) / 2]);
        }));
    all.push_back(axis_case(
        "var_mean",
        [](const Tensor& x) {
            const VarMean both = var_mean(x, {1}, 1, true);
            return both.var - both.mean;
        },
        [=](const Values& x) { return scalar(variance_of(x, 1) - mean_of(x)); }, {.terms = 10}));
    all.push_back(axis_case(
        "std_mean",
        [](const Tensor& x) {
            const StdMean both = std_mean(x, {1}, 0, true);
            return both.std + both.mean;
        },
        [=](const Values& x) { return scalar(std::sqrt(variance_of(x, 0)) + mean_of(x)); }, {.terms = 10}));
    for (Case& test_case : all) test_case.sampled = true;
}

/// Covariances of rows, with observation i repeated weights[i] times, over a number of observations.
HostMatrix covariances(const HostMatrix& x, const Values& weights, double divisor) {
    double total = 0;
    for (const double weight : weights) total += weight;
    Values means;
    for (std::int64_t i = 0; i < x.m; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < x.n; ++k) sum += weights[static_cast<std::size_t>(k)] * x(i, k);
        means.push_back(sum / total);
    }
    return host_matrix(x.m, x.m, [&](auto i, auto j) {
        double sum = 0;
        for (std::int64_t k = 0; k < x.n; ++k)
            sum += weights[static_cast<std::size_t>(k)] * (x(i, k) - means[static_cast<std::size_t>(i)]) *
                   (x(j, k) - means[static_cast<std::size_t>(j)]);
        return sum / divisor;
    });
}

void add_covariances(std::vector<Case>& all) {
    all.push_back(matrix_case(
        "cov", {3, 7}, [](const Tensor& x) { return cov(x); },
        [](const HostMatrix& x) { return covariances(x, Values(7, 1), 6).elements; }));
    all.push_back({.name = "cov",
                   .inputs = {{{3, 7}}, {{7}, 0, 4, Kind::label}, {{7}, 0.5, 2}},
                   .call =
                       [](const Tensors& in) {
                           const bool counts = in[1].defined() && in[1].dtype() == DType::i64;
                           return cov(in[0], 1, counts ? in[1] + 1 : in[1], in[2]);
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           Values weights;
                           double total = 0, removed = 0;
                           for (std::size_t i = 0; i < 7; ++i) {
                               weights.push_back((in[1][i] + 1) * in[2][i]);
                               total += weights[i];
                               removed += weights[i] * in[2][i];
                           }
                           return covariances(HostMatrix(3, 7, in[0]), weights, total - removed / total).elements;
                       },
                   .terms = 30,
                   .first_optional = 1,
                   .sampled = true});
    all.push_back(matrix_case(
        "corrcoef", {3, 7}, [](const Tensor& x) { return corrcoef(x); },
        [](const HostMatrix& x) {
            const HostMatrix c = covariances(x, Values(7, 1), 6);
            return host_matrix(3, 3, [&](auto i, auto j) { return c(i, j) / std::sqrt(c(i, i) * c(j, j)); }).elements;
        }));
    all.push_back(matrix_case(
        "renorm", {5, 7}, [](const Tensor& x) { return renorm(x, 3, 0, 2.5); },
        [](const HostMatrix& x) {
            return host_matrix(5, 7,
                               [&](auto i, auto j) {
                                   double sum = 0;
                                   for (std::int64_t k = 0; k < 7; ++k) sum += std::pow(std::abs(x(i, k)), 3);
                                   return std::cbrt(sum) > 2.5 ? x(i, j) * 2.5 / (std::cbrt(sum) + 1e-7) : x(i, j);
                               })
                .elements;
        }));
}

void add_differences(std::vector<Case>& all) {
    all.push_back(axis_case(
        "diff", [](const Tensor& x) { return diff(x, 2, 1); },
        [](const Values& x) {
            Values out;
            for (std::size_t i = 0; i + 2 < x.size(); ++i) out.push_back(x[i + 2] - 2 * x[i + 1] + x[i]);
            return out;
        }));
    all.push_back({.name = "diff",
                   .inputs = {{{3, 5}}, {{3, 1}}, {{3, 2}}},
                   .call = [](const Tensors& in) { return diff(in[0], 1, -1, in[1], in[2]); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (std::size_t i = 0; i < 3; ++i) {
                               Values row{in[1][i]};
                               row.insert(row.end(), in[0].begin() + static_cast<std::ptrdiff_t>(i * 5),
                                          in[0].begin() + static_cast<std::ptrdiff_t>(i * 5 + 5));
                               row.push_back(in[2][i * 2]);
                               row.push_back(in[2][i * 2 + 1]);
                               for (std::size_t k = 0; k < 7; ++k) out.push_back(row[k + 1] - row[k]);
                           }
                           return out;
                       },
                   .first_optional = 1,
                   .sampled = true});
    const auto integral = [](const Values& y, double dx) {
        Values out{0};
        for (std::size_t i = 1; i < y.size(); ++i) out.push_back(out.back() + (y[i - 1] + y[i]) / 2 * dx);
        return Values(out.begin() + 1, out.end());
    };
    all.push_back(axis_case(
        "trapezoid", [](const Tensor& y) { return unsqueeze(trapezoid(y, 0.5, 1), 1); },
        [=](const Values& y) { return Values{integral(y, 0.5).back()}; }));
    all.push_back(axis_case(
        "cumulative_trapezoid", [](const Tensor& y) { return cumulative_trapezoid(y, 2, 1); },
        [=](const Values& y) { return integral(y, 2); }));
    for (const bool by_row : {false, true})
        all.push_back({.name = by_row ? "cumulative_trapezoid" : "trapezoid",
                       .inputs = {{{3, 5}}, {{5}}},
                       .call =
                           [by_row](const Tensors& in) {
                               return by_row ? cumulative_trapezoid(in[0], in[1]) : trapezoid(in[0], in[1]);
                           },
                       .reference =
                           [by_row](const Columns& in, DType) {
                               Values out;
                               for (std::size_t i = 0; i < 3; ++i) {
                                   double sum = 0;
                                   for (std::size_t k = 1; k < 5; ++k) {
                                       sum += (in[0][i * 5 + k - 1] + in[0][i * 5 + k]) / 2 * (in[1][k] - in[1][k - 1]);
                                       if (by_row || k == 4) out.push_back(sum);
                                   }
                               }
                               return out;
                           },
                       .terms = 10,
                       .sampled = true});
    for (const double p : {2.0, 3.0})
        all.push_back({.name = "dist",
                       .inputs = {{{5, 7}}, {{7}}},
                       .call = [p](const Tensors& in) { return dist(in[0], in[1], p); },
                       .reference =
                           [p](const Columns& in, DType) {
                               double sum = 0;
                               for (std::size_t i = 0; i < 35; ++i)
                                   sum += std::pow(std::abs(in[0][i] - in[1][i % 7]), p);
                               return Values{std::pow(sum, 1 / p)};
                           },
                       .terms = 35,
                       .sampled = true});
    const auto is_close = [](double a, double b) { return std::abs(a - b) <= 0.75 + 0.25 * std::abs(b); };
    all.push_back({.name = "isclose",
                   .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}, {{5, 1}, -2, 2, Kind::constant}},
                   .call = [](const Tensors& in) { return isclose(in[0], in[1], 0.25, 0.75); },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table({3, 5, 7}, [&](const Dims& at) {
                               return is_close(element(in[0], {3, 5, 7}, {at[0], at[1], at[2]}),
                                               in[1][static_cast<std::size_t>(at[1])])
                                          ? 1.0
                                          : 0.0;
                           });
                       },
                   .differentiable = false});
    all.push_back({.name = "allclose",
                   .inputs = {{{3, 5}, 0, 1, Kind::constant}, {{5}, 0, 1, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           const bool close = allclose(in[0], in[1], 0, 1);
                           return full({}, close, {DType::boolean});
                       },
                   .reference = [](const Columns&, DType) { return Values{1}; },
                   .differentiable = false,
                   .reads_elements = true});
    all.push_back({.name = "isin",
                   .inputs = {{{5, 7}, 0, 12, Kind::label}, {{2, 3}, 0, 12, Kind::label}},
                   .call = [](const Tensors& in) { return isin(in[0], in[1]); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (const double x : in[0]) out.push_back(std::ranges::count(in[1], x) > 0 ? 1 : 0);
                           return out;
                       },
                   .differentiable = false});
}

}  // namespace

std::vector<Case> statistics_catalogue() {
    std::vector<Case> all;
    add_moments(all);
    add_covariances(all);
    add_differences(all);
    return all;
}

}  // namespace declivity::test::catalogue
