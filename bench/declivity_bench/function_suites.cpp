#include "function_suites.hpp"

#include <algorithm>
#include <cmath>

#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "peer_pytorch.hpp"

namespace declivity::bench {
namespace {

std::vector<double> elements(const Tensor& x) { return x.detach().to(DType::f64).to_vector<double>(); }

std::string difference(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
    if (got.size() != wanted.size()) return fmt::format("{} elements, expected {}", got.size(), wanted.size());
    double largest = 1e-30;
    for (const double one : wanted)
        if (std::isfinite(one)) largest = std::max(largest, std::abs(one));
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == wanted[i] || std::abs(got[i] - wanted[i]) <= tolerance * largest))
            return fmt::format("element {} is {}, expected {}", i, got[i], wanted[i]);
    return {};
}

}  // namespace

void time_functions(Report& report, const std::string& suite, const std::function<std::vector<FunctionCase>()>& cases) {
    report.begin(suite);
    const Device device = report.device();
    for (const FunctionCase& one : cases()) {
        if (!report.wants(one.name)) continue;
        Tensor kept;
        const auto call = [&] {
            if (!one.backward) {
                const NoGrad none;
                kept = one.call(one.inputs);
                (void)kept.view();
                return;
            }
            std::vector<Tensor> inputs = one.inputs;
            std::vector<Tensor> leaves;
            for (std::size_t i = 0; i < one.leaves; ++i)
                leaves.push_back(inputs[i] = inputs[i].detach().set_requires_grad());
            const std::vector<Tensor> made =
                grad({one.call(inputs)}, leaves, {.output_gradients = {one.inputs.back()}});
            for (const Tensor& gradient : made) (void)gradient.view();
            kept = made[0];
        };
        std::vector<Contender> peers;
        if (report.with_peers() && has_pytorch()) {
            const Pytorch peer = pytorch({one.python, one.inputs, one.backward ? one.leaves : 0});
            call();
            if (one.tolerance >= 0)
                if (const std::string wrong = difference(elements(kept), peer.result, one.tolerance); !wrong.empty()) {
                    report.fail(one.name, wrong);
                    continue;
                }
            peers.push_back(peer.contender);
        }
        if (report.with_peers() && one.more_peers)
            for (Contender& peer : one.more_peers()) peers.push_back(std::move(peer));
        report.measure({.name = one.name, .flops = one.flops, .bytes = one.bytes},
                       {"ours", [&](int) { call(); }, [device] { device.synchronize(); }}, peers);
    }
    report.end();
}

}  // namespace declivity::bench
