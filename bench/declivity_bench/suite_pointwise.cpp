// Elementwise functions on arrays larger than the caches, beside a copy of as many bytes.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/expression.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <tests/ops/elementwise_cases.hpp>

#include "copies.hpp"
#include "report.hpp"
#include "sampled.hpp"

namespace declivity::bench {
namespace {

using ops::Domain;
using ops::Function;
using test::ElementwiseCase;

/// Those that cost more than their memory traffic.
bool transcendental(Function function) {
    constexpr std::array kNames{std::string_view("pow"), std::string_view("pow_scalar"), std::string_view("exp"), std::string_view("log"), std::string_view("tanh"),
                                std::string_view("sigmoid"), std::string_view("gelu"), std::string_view("gelu_tanh"), std::string_view("silu"), std::string_view("softplus"),
                                std::string_view("binary_cross_entropy"), std::string_view("erf"), std::string_view("sin"), std::string_view("cos")};
    return std::ranges::find(kNames, ops::info(function).name) != kNames.end();
}

void time_case(Report& report, const ElementwiseCase& one, std::int64_t count) {
    const ops::FunctionInfo& row = ops::info(one.function);
    if (row.domain != Domain::real && row.domain != Domain::number) return;
    const std::string name = fmt::format("{} of {} M", row.name, count >> 20);
    if (!report.wants(name)) return;
    const double bytes = 4.0 * static_cast<double>(count) * (row.inputs + 1);
    struct Set {
        std::vector<Tensor> in;
        Tensor out;
    };
    std::vector<Set> sets(static_cast<std::size_t>(sets_for(bytes)));
    for (Set& set : sets) {
        for (int i = 0; i < row.inputs; ++i) set.in.push_back(uniform({count}, std::max(one.low, -20.0), std::min(one.high, 20.0)));
        set.out = full({count}, NAN);
    }
    const auto call = [&](int number) {
        const Set& set = sets[static_cast<std::size_t>(number) % sets.size()];
        std::vector<ops::Expression> in;
        for (const Tensor& tensor : set.in) in.emplace_back(tensor.view());
        ops::evaluate(ops::Expression::apply(one.function, in, one.parameters), set.out.view());
    };
    call(0);
    std::vector<std::vector<float>> host;
    for (const Tensor& tensor : sets[0].in) host.push_back(tensor.to_vector<float>());
    const double unit = 0x1p-23;
    const std::string wrong = wrong_element(sets[0].out.to_vector<float>(), 1000, one.ulps * unit, one.absolute + 1e-37, [&](std::size_t at) {
        test::Arguments v{.a = double{host[0][at]}};
        if (host.size() > 1) v.b = double{host[1][at]};
        if (host.size() > 2) v.c = double{host[2][at]};
        if (!one.parameters.empty()) v.p = one.parameters[0];
        if (one.parameters.size() > 1) v.q = one.parameters[1];
        return one.value(v);
    });
    if (!wrong.empty()) return report.fail(name, wrong);
    host.clear();
    const Device device = report.device();
    std::vector<Contender> peers;
    if (report.with_peers()) peers.push_back(copy_of(device, bytes));
    report.measure({.name = name, .bytes = bytes, .strategy = "elementwise", .group = transcendental(one.function) ? "transcendental" : ""},
                   {"ours", call, [device] { device.synchronize(); }}, peers);
}

void run(Report& report) {
    report.begin("pointwise");
    for (const ElementwiseCase& one : test::elementwise_cases()) time_case(report, one, std::int64_t{1} << 24);
    report.end();
}

const Suite suite("pointwise", "elementwise functions on large arrays, beside a copy", run);

}  // namespace
}  // namespace declivity::bench
