// Elementwise functions on arrays larger than the caches, compared with a copy of as many bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <reference/elementwise_cases.hpp>

#include "copies.hpp"
#include "ops/engine/expression.hpp"
#include "report.hpp"
#include "sampled.hpp"

namespace declivity::bench {
namespace {

using ops::Domain;
using ops::Function;
using reference::ElementwiseCase;

/// Functions that are compute-bound.
bool transcendental(Function function) {
    constexpr std::array kNames{std::string_view("pow"),
                                std::string_view("pow_scalar"),
                                std::string_view("exp"),
                                std::string_view("log"),
                                std::string_view("tanh"),
                                std::string_view("sigmoid"),
                                std::string_view("gelu"),
                                std::string_view("gelu_tanh"),
                                std::string_view("silu"),
                                std::string_view("softplus"),
                                std::string_view("binary_cross_entropy"),
                                std::string_view("erf"),
                                std::string_view("sin"),
                                std::string_view("cos")};
    return std::ranges::find(kNames, ops::info(function).name) != kNames.end();
}

void time_case(Report& report, const ElementwiseCase& test_case, std::int64_t count) {
    const ops::FunctionInfo& row = ops::info(test_case.function);
    if (row.domain != Domain::real && row.domain != Domain::number) return;
    const std::string name = fmt::format("{} of {} M", row.name, count >> 20);
    if (!report.is_selected(name)) return;
    const double bytes = 4.0 * static_cast<double>(count) * (row.inputs + 1);
    struct Set {
        std::vector<Tensor> in;
        Tensor out;
    };
    std::vector<Set> sets(static_cast<std::size_t>(sets_for(bytes)));
    for (Set& set : sets) {
        for (int i = 0; i < row.inputs; ++i)
            set.in.push_back(uniform({count}, std::max(test_case.low, -20.0), std::min(test_case.high, 20.0)));
        set.out = full({count}, NAN);
    }
    const std::vector<Scalar> parameters(test_case.parameters.begin(), test_case.parameters.end());
    const auto call = [&](int number) {
        const Set& set = sets[static_cast<std::size_t>(number) % sets.size()];
        std::vector<ops::Expression> in;
        for (const Tensor& tensor : set.in) in.emplace_back(tensor.view());
        ops::evaluate(ops::Expression::apply(test_case.function, in, parameters), set.out.view());
    };
    call(0);
    std::vector<std::vector<float>> host;
    for (const Tensor& tensor : sets[0].in) host.push_back(tensor.to_vector<float>());
    const double unit = 0x1p-23;
    const std::string wrong = wrong_element(sets[0].out.to_vector<float>(), 1000, test_case.ulps * unit,
                                            test_case.absolute + 1e-37, [&](std::size_t at) {
                                                reference::Arguments v{.a = double{host[0][at]}};
                                                if (host.size() > 1) v.b = double{host[1][at]};
                                                if (host.size() > 2) v.c = double{host[2][at]};
                                                if (!test_case.parameters.empty()) v.p = test_case.parameters[0];
                                                if (test_case.parameters.size() > 1) v.q = test_case.parameters[1];
                                                return test_case.value(v);
                                            });
    if (!wrong.empty()) return report.fail(name, wrong);
    host.clear();
    const Device device = report.device();
    std::vector<Contender> peers;
    if (report.with_peers()) peers.push_back(copy_of(device, bytes));
    report.measure({.name = name,
                    .bytes = bytes,
                    .strategy = "elementwise",
                    .group = transcendental(test_case.function) ? "transcendental" : ""},
                   {"ours", call, [device] { device.synchronize(); }}, peers);
}

/// An optimizer step over parameters of the sizes of ResNet-50's layers, 16 M in total.
void time_optimizer(Report& report, bool adam) {
    const std::string name = adam ? "adam, 16 M in 64 tensors" : "sgd with momentum, 16 M in 64 tensors";
    if (!report.is_selected(name)) return;
    constexpr std::int64_t kTensors = 64, kCount = std::int64_t{1} << 18;
    std::vector<Tensor> parameters;
    for (std::int64_t i = 0; i < kTensors; ++i) {
        parameters.push_back(uniform({kCount}, -1, 1).set_requires_grad());
        parameters.back().set_grad(uniform({kCount}, -1, 1));
    }
    std::unique_ptr<optim::Optimizer> optimizer;
    if (adam) optimizer = std::make_unique<optim::Adam>(parameters);
    else optimizer = std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.momentum = 0.9});
    const auto before = parameters[3].to_vector<float>(), gradient = parameters[3].grad().to_vector<float>();
    const auto call = [&](int) { optimizer->step(); };
    call(0);
    call(0);
    // The gradient is constant, so that Adam's bias-corrected moments are the gradient and its square.
    const std::string wrong = wrong_element(parameters[3].to_vector<float>(), 200, 1e-5, 1e-6, [&](std::size_t at) {
        const double p = double{before[at]}, g = double{gradient[at]};
        return adam ? p - 0.002 * g / (std::abs(g) + 1e-8) : p - 0.001 * (1 + 1.9) * g;
    });
    if (!wrong.empty()) return report.fail(name, wrong);
    // Parameters and moments are read and written, gradients read.
    const double bytes = 4.0 * static_cast<double>(kTensors * kCount) * (adam ? 7 : 5);
    const Device device = report.device();
    std::vector<Contender> peers;
    if (report.with_peers()) peers.push_back(copy_of(device, bytes));
    report.measure({.name = name, .bytes = bytes, .strategy = "formula", .group = "optimizers"},
                   {"ours", call, [device] { device.synchronize(); }}, peers);
}

/// A permuted copy.
void time_permute(Report& report, const std::string& name, const Shape& shape, const Dims& order) {
    if (!report.is_selected(name)) return;
    const double bytes = 8.0 * static_cast<double>(shape.numel());
    std::vector<std::pair<Tensor, ops::View>> sets;
    for (int i = 0; i < sets_for(bytes); ++i) {
        const Tensor x = uniform(shape, -1, 1);
        sets.emplace_back(x, ops::View::make(report.device(), DType::f32, ops::permuted(x.view(), order).shape));
    }
    const auto call = [&](int number) {
        const auto& [from, to] = sets[static_cast<std::size_t>(number) % sets.size()];
        ops::copy(ops::permuted(from.view(), order), to);
    };
    call(0);
    const auto x = sets[0].first.to_vector<float>();
    const Shape to = sets[0].second.shape;
    const std::string wrong = wrong_element(Tensor(sets[0].second).to_vector<float>(), 1000, 0, 0, [&](std::size_t at) {
        const Strides strides = dense_strides(shape);
        auto rest = static_cast<std::int64_t>(at);
        std::int64_t from = 0;
        for (int axis = to.rank() - 1; axis >= 0; --axis) {
            from += rest % to[axis] * strides[static_cast<int>(order[axis])];
            rest /= to[axis];
        }
        return double{x[static_cast<std::size_t>(from)]};
    });
    if (!wrong.empty()) return report.fail(name, wrong);
    const Device device = report.device();
    std::vector<Contender> peers;
    if (report.with_peers()) peers.push_back(copy_of(device, bytes));
    report.measure({.name = name, .bytes = bytes, .strategy = "elementwise", .group = "permuted"},
                   {"ours", call, [device] { device.synchronize(); }}, peers);
}

void run(Report& report) {
    report.begin("pointwise");
    for (const ElementwiseCase& elementwise_case : reference::elementwise_cases())
        time_case(report, elementwise_case, std::int64_t{1} << 24);
    for (const bool adam : {true, false}) time_optimizer(report, adam);
    time_permute(report, "transpose 4096 x 4096", {4096, 4096}, {1, 0});
    time_permute(report, "transpose 64 x 500 x 501, inner axes", {64, 500, 501}, {0, 2, 1});
    time_permute(report, "NCHW to NHWC 64x64x56x56", {64, 64, 56, 56}, {0, 2, 3, 1});
    time_permute(report, "NHWC to NCHW 64x56x56x64", {64, 56, 56, 64}, {0, 3, 1, 2});
    time_permute(report, "NCHW to NHWC 256x3x112x112", {256, 3, 112, 112}, {0, 2, 3, 1});
    time_permute(report, "axes 1 and 2 swapped, 64x128x32x64", {64, 128, 32, 64}, {0, 2, 1, 3});
    report.end();
}

const Suite suite("pointwise",
                  "elementwise functions, optimizers and permuted copies of large arrays, compared with a copy", run);

}  // namespace
}  // namespace declivity::bench
