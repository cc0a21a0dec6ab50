#include "function_suites.hpp"

#include <algorithm>
#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "peer_pytorch.hpp"

namespace declivity::bench {
namespace {

std::vector<double> elements(const Tensor& x) { return x.detach().to(DType::f64).to_vector<double>(); }

std::string difference(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
    if (got.size() != expected.size()) return fmt::format("{} elements, expected {}", got.size(), expected.size());
    double largest = 1e-30;
    for (const double value : expected)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == expected[i] || std::abs(got[i] - expected[i]) <= tolerance * largest))
            return fmt::format("element {} is {}, expected {}", i, got[i], expected[i]);
    return {};
}

}  // namespace

void time_functions(Report& report, const std::string& suite, const std::function<std::vector<FunctionCase>()>& cases) {
    report.begin(suite);
    const Device device = report.device();
    for (const FunctionCase& test_case : cases()) {
        if (!report.is_selected(test_case.name)) continue;
        Tensor first_result;
        const auto call = [&] {
            if (!test_case.backward) {
                const NoGrad none;
                first_result = test_case.call(test_case.inputs);
                (void)first_result.view();
                return;
            }
            std::vector<Tensor> inputs = test_case.inputs;
            std::vector<Tensor> leaves;
            for (std::size_t i = 0; i < test_case.leaves; ++i)
                leaves.push_back(inputs[i] = inputs[i].detach().set_requires_grad());
            const std::vector<Tensor> results =
                grad({test_case.call(inputs)}, leaves, {.output_gradients = {test_case.inputs.back()}});
            for (const Tensor& gradient : results) (void)gradient.view();
            first_result = results[0];
        };
        std::vector<Contender> peers;
        if (report.with_peers() && has_pytorch()) {
            const Pytorch peer =
                pytorch({test_case.python, test_case.inputs, test_case.backward ? test_case.leaves : 0});
            call();
            if (test_case.tolerance >= 0)
                if (const std::string wrong = difference(elements(first_result), peer.result, test_case.tolerance);
                    !wrong.empty()) {
                    report.fail(test_case.name, wrong);
                    continue;
                }
            peers.push_back(peer.contender);
        }
        if (report.with_peers() && test_case.more_peers)
            for (Contender& peer : test_case.more_peers()) peers.push_back(std::move(peer));
        report.measure({.name = test_case.name, .flops = test_case.flops, .bytes = test_case.bytes},
                       {"ours", [&](int) { call(); }, [device] { device.synchronize(); }}, peers);
    }
    report.end();
}

}  // namespace declivity::bench
