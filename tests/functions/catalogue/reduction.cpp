// Functions along an axis as cases of the catalogue: scans, sorts, reductions, histograms.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

void add_scans(std::vector<Case>& all) {
    const auto fold = [](const std::function<double(double, double)>& join) {
        return [join](const Values& x) {
            Values out{x[0]};
            for (std::size_t i = 1; i < x.size(); ++i) out.push_back(join(out.back(), x[i]));
            return out;
        };
    };
    const auto largest = [](double a, double b) { return std::max(a, b); };
    const auto smallest = [](double a, double b) { return std::min(a, b); };
    all.push_back(axis_case(
        "cumsum", [](const Tensor& x) { return cumsum(x, 1); }, fold([](double a, double b) { return a + b; })));
    all.push_back(axis_case(
        "cumprod", [](const Tensor& x) { return cumprod(x, 1); }, fold([](double a, double b) { return a * b; })));
    all.push_back(axis_case(
        "logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, 1); },
        fold([](double a, double b) { return std::log(std::exp(a) + std::exp(b)); })));
    all.push_back(axis_case(
        "cummax", [](const Tensor& x) { return cummax(x, 1).values; }, fold(largest)));
    all.push_back(axis_case(
        "cummin", [](const Tensor& x) { return cummin(x, 1).values; }, fold(smallest)));
}

void add_order_statistics(std::vector<Case>& all) {
    all.push_back(axis_case(
        "sort", [](const Tensor& x) { return sort(x, 1).values; }, sorted_values));
    all.push_back(axis_case(
        "argsort", [](const Tensor& x) { return argsort(x, 1); },
        [](const Values& x) {
            std::vector<std::size_t> order(x.size());
            std::iota(order.begin(), order.end(), 0);
            std::ranges::stable_sort(order, {}, [&](std::size_t i) { return x[i]; });
            return Values(order.begin(), order.end());
        },
        {.differentiable = false}));
    all.push_back(axis_case(
        "kthvalue", [](const Tensor& x) { return kthvalue(x, 2, 1, true).values; },
        [](const Values& x) { return Values{sorted_values(x)[1]}; }));
    all.push_back(axis_case(
        "median", [](const Tensor& x) { return median(x, 1, true).values; },
        [](const Values& x) { return Values{sorted_values(x)[2]}; }));
    all.push_back(axis_case(
        "quantile", [](const Tensor& x) { return quantile(x, 0.4, 1, true); },
        [](const Values& x) {
            const Values s = sorted_values(x);
            return Values{s[1] + 0.6 * (s[2] - s[1])};
        }));
    all.push_back(axis_case(
        "mode", [](const Tensor& x) { return mode(x, 1, true).values; },
        [](const Values& x) { return Values{sorted_values(x)[0]}; }));
}

void add_reductions(std::vector<Case>& all) {
    const auto scalar = [](double x) { return Values{x}; };
    const auto sum_of = [](const Values& x, const std::function<double(double)>& f) {
        double out = 0;
        for (const double value : x) out += f(value);
        return out;
    };
    const auto variance = [sum_of](const Values& x) {
        const double mean = sum_of(x, [](double v) { return v; }) / 5;
        return sum_of(x, [mean](double v) { return (v - mean) * (v - mean); }) / 4;
    };
    all.push_back(axis_case(
        "amax", [](const Tensor& x) { return amax(x, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::max(x)); }));
    all.push_back(axis_case(
        "amin", [](const Tensor& x) { return amin(x, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::min(x)); }));
    all.push_back(axis_case(
        "aminmax", [](const Tensor& x) { return aminmax(x, {1}, true).max - aminmax(x, {1}, true).min; },
        [scalar](const Values& x) { return scalar(std::ranges::max(x) - std::ranges::min(x)); }));
    all.back().error_name = "aminmax";
    all.push_back(axis_case(
        "argmin", [](const Tensor& x) { return argmin(x, 1, true); },
        [scalar](const Values& x) { return scalar(static_cast<double>(std::ranges::min_element(x) - x.begin())); },
        {.differentiable = false}));
    all.push_back(axis_case(
        "prod", [](const Tensor& x) { return prod(x, {1}, true); },
        [scalar](const Values& x) { return scalar(std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>())); }));
    all.push_back(axis_case(
        "var", [](const Tensor& x) { return var(x, {1}, 1, true); },
        [=](const Values& x) { return scalar(variance(x)); }, {.terms = 10}));
    all.push_back(axis_case(
        "stddev", [](const Tensor& x) { return stddev(x, {1}, 1, true); },
        [=](const Values& x) { return scalar(std::sqrt(variance(x))); }, {.terms = 10}));
    all.push_back(axis_case(
        "norm", [](const Tensor& x) { return norm(x, 2, {1}, true); },
        [=](const Values& x) { return scalar(std::sqrt(sum_of(x, [](double v) { return v * v; }))); }));
    all.push_back(axis_case(
        "norm", [](const Tensor& x) { return norm(x, 3, {1}, true); },
        [=](const Values& x) { return scalar(std::cbrt(sum_of(x, [](double v) { return std::abs(v * v * v); }))); },
        {.terms = 20}));
    all.push_back(axis_case(
        "logsumexp", [](const Tensor& x) { return logsumexp(x, {1}, true); },
        [=](const Values& x) { return scalar(std::log(sum_of(x, [](double v) { return std::exp(v); }))); }));
    const auto counted = [=](const Values& x) { return sum_of(x, [](double v) { return v > 0 ? 1 : 0; }); };
    all.push_back(axis_case(
        "all", [](const Tensor& x) { return declivity::all(x > -1.5, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::min(x) > -1.5 ? 1 : 0); }, {.differentiable = false}));
    all.back().error_name = "operator>";
    all.push_back(axis_case(
        "any", [](const Tensor& x) { return any(x > 1.5, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::max(x) > 1.5 ? 1 : 0); }, {.differentiable = false}));
    all.back().error_name = "operator>";
    all.push_back(axis_case(
        "count_nonzero", [](const Tensor& x) { return count_nonzero(x > 0, {1}, true); },
        [=](const Values& x) { return scalar(counted(x)); }, {.differentiable = false}));
    all.back().error_name = "operator>";
}

void add_searches_and_histograms(std::vector<Case>& all) {
    const auto searched = [](const Columns& in) {
        Values out;
        for (const double value : in[0])
            out.push_back(static_cast<double>(std::ranges::lower_bound(in[1], value) - in[1].begin()));
        return out;
    };
    // Boundaries are sorted by the call.
    for (const bool buckets : {false, true})
        all.push_back({.name = buckets ? "bucketize" : "searchsorted",
                       .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}, {{9}, -2, 2, Kind::constant}},
                       .call =
                           [buckets](const Tensors& in) {
                               if (!in[1].defined() || !in[0].defined())
                                   return buckets ? bucketize(in[0], in[1]) : searchsorted(in[1], in[0]);
                               const Tensor sorted = sort(in[1]).values;
                               return buckets ? bucketize(in[0], sorted) : searchsorted(sorted, in[0]);
                           },
                       .reference =
                           [searched](const Columns& in, DType) {
                               return searched({in[0], sorted_values(in[1])});
                           },
                       .differentiable = false});
    all.push_back({.name = "histc",
                   .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}},
                   .call = [](const Tensors& in) { return histc(in[0], 8, -1, 1); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(8, 0);
                           for (const double x : in[0])
                               if (x >= -1 && x <= 1)
                                   out[std::min<std::size_t>(7, static_cast<std::size_t>((x + 1) * 4))] += 1;
                           return out;
                       },
                   .differentiable = false});
    all.push_back({.name = "histogram",
                   .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}, {{3, 5, 7}, -1, 3, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           return histogram(in[0], 8, {.low = -1, .high = 1, .weight = in[1], .density = true}).counts;
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(8, 0);
                           double total = 0;
                           for (std::size_t i = 0; i < in[0].size(); ++i) {
                               if (in[0][i] < -1 || in[0][i] > 1) continue;
                               out[std::min<std::size_t>(7, static_cast<std::size_t>((in[0][i] + 1) * 4))] += in[1][i];
                               total += in[1][i];
                           }
                           for (double& count : out) count /= total * 0.25;
                           return out;
                       },
                   .differentiable = false,
                   .terms = 105,
                   .first_optional = 1,
                   .reduced_precision = false});
    all.push_back({.name = "histogram",
                   .inputs = {{{4, 9}, -2, 2, Kind::constant}, {{4}, 0.125, 0.625, Kind::constant}},
                   .call = [](const Tensors& in) { return histogram(in[0], cumsum(in[1], 0) - 1.25).counts; },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(3, 0), edges(4, -1.25);
                           for (std::size_t i = 0; i < 4; ++i)
                               for (std::size_t j = 0; j <= i; ++j) edges[i] += in[1][j];
                           for (const double x : in[0])
                               if (x >= edges[0] && x <= edges[3]) out[x < edges[1] ? 0 : x < edges[2] ? 1 : 2] += 1;
                           return out;
                       },
                   .differentiable = false,
                   .first_optional = 1,  // cumsum has its own errors
                   .reduced_precision = false});
}

void add_bounds(std::vector<Case>& all) {
    for (const bool low : {true, false})
        all.push_back({.name = low ? "clamp_min" : "clamp_max",
                       .inputs = {{{3, 5, 7}}},
                       .call = [low](const Tensors& in) { return low ? clamp_min(in[0], 0.5) : clamp_max(in[0], 0.5); },
                       .reference =
                           [low](const Columns& in, DType) {
                               Values out;
                               for (const double x : in[0]) out.push_back(low ? std::max(x, 0.5) : std::min(x, 0.5));
                               return out;
                           },
                       .sampled = true});
}

}  // namespace

std::vector<Case> reduction_catalogue() {
    std::vector<Case> all;
    add_scans(all);
    add_order_statistics(all);
    add_reductions(all);
    add_searches_and_histograms(all);
    add_bounds(all);
    return all;
}

}  // namespace declivity::test::catalogue
