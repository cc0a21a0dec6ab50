// Softmax and log-softmax of rows, forward and backward.
#include <algorithm>
#include <cmath>
#include <vector>

#include <declivity/ops/cross_entropy.hpp>
#include <declivity/ops/softmax.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "copies.hpp"
#include "peers.hpp"
#include "report.hpp"
#include "sampled.hpp"

namespace declivity::bench {
namespace {

struct Case {
    const char* name;
    std::int64_t rows, columns;
};

constexpr Case kCases[] = {
    {"10 classes", 65536, 10},
    {"100 classes", 16384, 100},
    {"1000 classes", 4096, 1000},
    {"attention rows of 128", 12 * 8 * 128, 128},
    {"attention rows of 512", 12 * 8 * 512, 512},
    {"a vocabulary of 32000", 512, 32000},
};

void time_case(Report& report, const Case& test_case, bool logarithm, bool forward) {
    const std::string name = fmt::format("{} {} {}", logarithm ? "log_softmax" : "softmax",
                                         forward ? "forward" : "backward", test_case.name);
    if (!report.is_selected(name)) return;
    const Shape shape{test_case.rows, test_case.columns};
    const auto kind = logarithm ? ops::SoftmaxKind::log_softmax : ops::SoftmaxKind::softmax;
    const double bytes = 4.0 * static_cast<double>(shape.numel()) * (forward ? 2 : 3);
    struct Set {
        Tensor x, y, gradient, x_gradient;
    };
    std::vector<Set> sets;
    for (int i = 0; i < sets_for(bytes); ++i) {
        sets.push_back({uniform(shape, -3, 3), full(shape, NAN), uniform(shape, -1, 1), full(shape, NAN)});
        ops::evaluate_into("bench", ops::softmax(kind, sets.back().x.view(), 1), sets.back().y.view());
    }
    const auto call = [&](int number) {
        const Set& set = sets[static_cast<std::size_t>(number) % sets.size()];
        const ops::View x = set.x.view(), y = set.y.view();
        if (forward) ops::evaluate_into("bench", ops::softmax(kind, x, 1), y);
        else ops::evaluate_into("bench", ops::softmax_backward(kind, y, set.gradient.view(), 1), set.x_gradient.view());
    };
    call(0);
    auto x = sets[0].x.to_vector<float>(), y = sets[0].y.to_vector<float>(),
         gradient = sets[0].gradient.to_vector<float>();
    const auto columns = static_cast<std::size_t>(test_case.columns);
    const auto written = (forward ? sets[0].y : sets[0].x_gradient).to_vector<float>();
    const std::string wrong = wrong_element(written, 200, 2e-5, 1e-6, [&](std::size_t at) {
        const std::size_t first = at / columns * columns;
        double sum = 0, with_gradient = 0, gradients = 0;
        for (std::size_t i = first; i < first + columns; ++i) {
            sum += std::exp(double{x[i]});
            with_gradient += std::exp(double{x[i]}) * double{gradient[i]};
            gradients += double{gradient[i]};
        }
        const double part = std::exp(double{x[at]}) / sum;
        if (forward) return logarithm ? std::log(part) : part;
        return logarithm ? double{gradient[at]} - part * gradients
                         : part * (double{gradient[at]} - with_gradient / sum);
    });
    if (!wrong.empty()) return report.fail(name, wrong);
    const Device device = report.device();
    std::vector<std::vector<float>> host_x(report.with_peers() ? sets.size() : 0, x), host_y(host_x.size(), y),
        host_gradient(forward ? 0 : host_x.size(), gradient);
    std::vector<std::vector<Contender>> peers;
    for (std::size_t i = 0; i < host_x.size(); ++i)
        peers.push_back(onednn_softmax({forward, logarithm, test_case.rows, test_case.columns, host_x[i].data(),
                                        host_y[i].data(), forward ? nullptr : host_gradient[i].data()}));
    report.measure({.name = name, .bytes = bytes, .strategy = "softmax", .group = forward ? "forward" : "backward"},
                   {"ours", call, [device] { device.synchronize(); }}, interleaved(peers));
}

/// The mean loss over all rows, and elements of its gradient, in double.
struct CrossEntropyReference {
    std::size_t columns;
    std::vector<float> x;
    const std::vector<std::int32_t>& labels;

    [[nodiscard]] double mean() const {
        double sum = 0;
        for (std::size_t row = 0; row < labels.size(); ++row)
            sum += std::log(sum_of_row(row)) - double{x[row * columns + label_of(row)]};
        return sum / static_cast<double>(labels.size());
    }
    [[nodiscard]] double gradient(std::size_t at) const {
        const std::size_t row = at / columns;
        return (std::exp(double{x[at]}) / sum_of_row(row) - (at % columns == label_of(row) ? 1 : 0)) /
               static_cast<double>(labels.size());
    }

  private:
    [[nodiscard]] double sum_of_row(std::size_t row) const {
        double sum = 0;
        for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) sum += std::exp(double{x[i]});
        return sum;
    }
    [[nodiscard]] std::size_t label_of(std::size_t row) const { return static_cast<std::size_t>(labels[row]); }
};

/// The losses of all rows and their mean, or the gradient of the mean.
void time_cross_entropy(Report& report, const Case& test_case, bool forward) {
    const std::string name = fmt::format("cross entropy {} {}", forward ? "forward" : "backward", test_case.name);
    if (!report.is_selected(name)) return;
    const Shape shape{test_case.rows, test_case.columns};
    const double bytes = 4.0 * static_cast<double>(shape.numel()) * (forward ? 1 : 2) +
                         4.0 * static_cast<double>(test_case.rows) * (forward ? 4 : 3);
    struct Set {
        Tensor x, labels, loss, statistics, divisor, x_gradient;
    };
    std::vector<std::int32_t> labels(static_cast<std::size_t>(test_case.rows));
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(test_case.columns));
    const Tensor gradient = full({}, 1.0);
    std::vector<Set> sets;
    const ops::CrossEntropy mean{.reduction = ops::LossReduction::mean};
    const auto run_forward = [&](Set& set) {
        const auto results = ops::cross_entropy(set.x.view(), set.labels.view(), mean);
        set.loss = Tensor(results.loss), set.statistics = Tensor(results.statistics),
        set.divisor = Tensor(results.divisor);
        (void)set.loss.view();
    };
    for (int i = 0; i < sets_for(bytes); ++i) {
        sets.push_back({uniform(shape, -3, 3),
                        Tensor::from<std::int32_t>(labels, {test_case.rows}),
                        {},
                        {},
                        {},
                        full(shape, NAN)});
        run_forward(sets.back());
    }
    const auto call = [&](int number) {
        Set& set = sets[static_cast<std::size_t>(number) % sets.size()];
        if (forward) return run_forward(set);
        ops::evaluate_into("bench",
                           ops::cross_entropy_backward(set.x.view(), set.labels.view(), mean, set.statistics.view(),
                                                       set.divisor.view(), gradient.view()),
                           set.x_gradient.view());
    };
    call(0);
    const CrossEntropyReference reference{static_cast<std::size_t>(test_case.columns), sets[0].x.to_vector<float>(),
                                          labels};
    const std::string wrong = forward ? wrong_element(sets[0].loss.to_vector<float>(), 1, 2e-5, 1e-6,
                                                      [&](std::size_t) { return reference.mean(); })
                                      : wrong_element(sets[0].x_gradient.to_vector<float>(), 200, 1e-4, 1e-9,
                                                      [&](std::size_t i) { return reference.gradient(i); });
    if (!wrong.empty()) return report.fail(name, wrong);
    const Device device = report.device();
    std::vector<Contender> peers;
    if (report.with_peers()) peers.push_back(copy_of(device, bytes));
    report.measure({.name = name, .bytes = bytes, .strategy = "cross_entropy", .group = "cross entropy"},
                   {"ours", call, [device] { device.synchronize(); }}, peers);
}

void run(Report& report) {
    report.begin("softmax");
    for (const bool logarithm : {false, true})
        for (const bool forward : {true, false})
            for (const Case& test_case : kCases) time_case(report, test_case, logarithm, forward);
    for (const bool forward : {true, false})
        for (const Case& item : kCases) time_cross_entropy(report, item, forward);
    report.end();
}

const Suite suite("softmax",
                  "softmax and log_softmax of rows, compared with oneDNN; cross entropy, compared with a copy", run);

}  // namespace
}  // namespace declivity::bench
