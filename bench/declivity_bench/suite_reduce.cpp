// Reductions of arrays larger than the caches, compared with a copy of as many bytes.
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/ops/reduce.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "copies.hpp"
#include "report.hpp"
#include "sampled.hpp"

namespace declivity::bench {
namespace {

using ops::Reduce;

struct Case {
    const char* name;
    Shape shape;
    Dims axes;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"all of 16 M", {1 << 24}, {0}},           {"rows of 4096", {4096, 4096}, {1}},
        {"rows of 64", {1 << 18, 64}, {1}},        {"rows of 10", {1'600'000, 10}, {1}},
        {"columns of 4096", {4096, 4096}, {0}},    {"columns, 64 wide", {1 << 18, 64}, {0}},
        {"channels", {64, 64, 56, 56}, {0, 2, 3}}, {"images", {64, 64, 56, 56}, {1, 2, 3}},
        {"positions", {64, 64, 56, 56}, {2, 3}},   {"middle axis", {64, 512, 512}, {1}},
    };
    return all;
}

/// One element of the result at index `at`, in double.
double element(const Case& test_case, Reduce kind, const std::vector<float>& x, std::size_t at) {
    const int rank = test_case.shape.rank();
    std::vector<std::int64_t> first(static_cast<std::size_t>(rank), 0), counts(static_cast<std::size_t>(rank), 1);
    auto rest = static_cast<std::int64_t>(at);
    for (int axis = rank - 1; axis >= 0; --axis) {
        const auto i = static_cast<std::size_t>(axis);
        if (std::find(test_case.axes.begin(), test_case.axes.end(), axis) != test_case.axes.end()) {
            counts[i] = test_case.shape[axis];
            continue;
        }
        first[i] = rest % test_case.shape[axis];
        rest /= test_case.shape[axis];
    }
    double sum = 0, smallest = std::numeric_limits<double>::infinity(), largest = -smallest, terms = 0;
    const std::function<void(int, std::int64_t)> visit = [&](int axis, std::int64_t offset) {
        if (axis == rank) {
            const double value = double{x[static_cast<std::size_t>(offset)]};
            sum += value, smallest = std::min(smallest, value), largest = std::max(largest, value), terms += 1;
            return;
        }
        const auto i = static_cast<std::size_t>(axis);
        for (std::int64_t step = 0; step < counts[i]; ++step)
            visit(axis + 1, offset * test_case.shape[axis] + first[i] + step);
    };
    visit(0, 0);
    return kind == Reduce::max ? largest : kind == Reduce::min ? smallest : kind == Reduce::mean ? sum / terms : sum;
}

void time_case(Report& report, const Case& test_case, Reduce kind) {
    const std::string name = fmt::format("{} {}", ops::name_of(kind), test_case.name);
    if (!report.is_selected(name)) return;
    const Shape out_shape = ops::reduced_shape(test_case.shape, test_case.axes, false);
    const double bytes = 4.0 * static_cast<double>(test_case.shape.numel() + out_shape.numel());
    std::vector<std::pair<Tensor, Tensor>> sets;
    for (int i = 0; i < sets_for(bytes); ++i) sets.emplace_back(uniform(test_case.shape, -1, 1), full(out_shape, NAN));
    const auto call = [&](int number) {
        const auto& [x, out] = sets[static_cast<std::size_t>(number) % sets.size()];
        ops::reduce(kind, x.view(), test_case.axes, out.view());
    };
    call(0);
    const double terms = static_cast<double>(test_case.shape.numel()) / static_cast<double>(out_shape.numel());
    const double absolute = kind == Reduce::sum    ? 4e-7 * std::sqrt(terms) * 4
                            : kind == Reduce::mean ? 2e-6 / std::sqrt(terms)
                                                   : 0;
    const auto host = sets[0].first.to_vector<float>();
    const std::string wrong = wrong_element(sets[0].second.to_vector<float>(), terms > 1e6 ? 0 : 30, 1e-6, absolute,
                                            [&](std::size_t at) { return element(test_case, kind, host, at); });
    if (!wrong.empty()) return report.fail(name, wrong);
    const Device device = report.device();
    std::vector<Contender> peers;
    if (report.with_peers()) peers.push_back(copy_of(device, bytes));
    report.measure({.name = name, .bytes = bytes, .strategy = "reduce"},
                   {"ours", call, [device] { device.synchronize(); }}, peers);
}

void run(Report& report) {
    report.begin("reduce");
    for (const Reduce kind : {Reduce::sum, Reduce::max})
        for (const Case& test_case : cases()) time_case(report, test_case, kind);
    report.end();
}

const Suite suite("reduce", "reductions of large arrays, compared with a copy", run);

}  // namespace
}  // namespace declivity::bench
