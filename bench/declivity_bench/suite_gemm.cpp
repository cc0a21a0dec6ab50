// Matrix products: squares, dense layers, all transpositions; and the batched products of attention, as a separate
// suite.
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <declivity/ops/matmul.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <ops/matmul/matmul_strategies.hpp>
#include <reference/matmul_cases.hpp>

#include "peers.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

using reference::MatmulCase;
using reference::OperandStrides;

struct Named {
    MatmulCase problem;
    std::string name, group;
};

std::string layout_letters(const MatmulCase& test_case) {
    return fmt::format("{}{}", test_case.a == OperandStrides::transposed ? 'T' : 'N',
                       test_case.b == OperandStrides::transposed ? 'T' : 'N');
}

Named named(const std::string& prefix, const MatmulCase& test_case, const std::string& group = {}) {
    const std::string batch = test_case.batch > 1 ? fmt::format("{} x ", test_case.batch) : "";
    return {test_case,
            fmt::format("{} {}{}x{}x{} {}", prefix, batch, test_case.m, test_case.n, test_case.k,
                        layout_letters(test_case)),
            group};
}

std::vector<Named> gemm_cases() {
    std::vector<Named> cases;
    for (const std::int64_t size : {64, 128, 256, 512, 768, 1024, 1536, 2304})
        for (const std::int64_t s : {size - 1, size, size + 1})
            cases.push_back(named("square", {.m = s, .n = s, .k = s}, size <= 128 ? "launch-bound" : ""));
    for (const std::int64_t s : {500, 1024})
        for (const OperandStrides a : {OperandStrides::dense, OperandStrides::transposed})
            for (const OperandStrides b : {OperandStrides::dense, OperandStrides::transposed})
                if (a != OperandStrides::dense || b != OperandStrides::dense)
                    cases.push_back(named("transposed", {.m = s, .n = s, .k = s, .a = a, .b = b}));
    // Dense layers: forward x W^T, and the gradients of x (g W) and of W (g^T x).
    struct Layer {
        std::int64_t in, out;
    };
    for (const auto& [in, out] :
         {Layer{784, 512}, Layer{1600, 10}, Layer{4096, 128}, Layer{2048, 1000}, Layer{1280, 1000}, Layer{4096, 4096}})
        for (const std::int64_t batch : {1, 8, 32, 64, 128, 256}) {
            const bool tiny = 2.0 * static_cast<double>(batch * in * out) < 4e6;
            const std::string group = tiny ? "launch-bound" : "";
            cases.push_back(
                named("dense forward", {.m = batch, .n = out, .k = in, .b = OperandStrides::transposed}, group));
            if (batch == 1) continue;
            cases.push_back(named("dense to input", {.m = batch, .n = in, .k = out}, group));
            cases.push_back(
                named("dense to weights", {.m = out, .n = in, .k = batch, .a = OperandStrides::transposed}, group));
        }
    return cases;
}

/// 12 heads of 64 elements, for one and for 8 sequences.
std::vector<Named> attention_cases() {
    std::vector<Named> cases;
    for (const std::int64_t length : {128, 512})
        for (const std::int64_t heads : {12, 96}) {
            cases.push_back(
                named("scores", {.batch = heads, .m = length, .n = length, .k = 64, .b = OperandStrides::transposed}));
            cases.push_back(named("values", {.batch = heads, .m = length, .n = 64, .k = length}));
        }
    return cases;
}

/// Compares some elements of a product, corners and random ones, with sums in double.
std::string wrong_element(const MatmulCase& test_case, const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& out) {
    std::mt19937_64 engine(7);
    const auto pick = [&](std::int64_t count) {
        return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(count));
    };
    const reference::Tolerance allowed = test_case.allowed(DType::f32);
    for (int i = 0; i < 300; ++i) {
        const std::int64_t z = i < 2 ? 0 : pick(test_case.batch), row = i == 0   ? 0
                                                                        : i == 1 ? test_case.m - 1
                                                                                 : pick(test_case.m);
        const std::int64_t column = i == 0 ? 0 : i == 1 ? test_case.n - 1 : pick(test_case.n);
        double sum = 0;
        for (std::int64_t k = 0; k < test_case.k; ++k) {
            const std::int64_t at_a =
                z * test_case.m * test_case.k +
                (test_case.a == OperandStrides::transposed ? k * test_case.m + row : row * test_case.k + k);
            const std::int64_t at_b =
                z * test_case.k * test_case.n +
                (test_case.b == OperandStrides::transposed ? column * test_case.k + k : k * test_case.n + column);
            sum += double{a[static_cast<std::size_t>(at_a)]} * double{b[static_cast<std::size_t>(at_b)]};
        }
        const double got = double{out[static_cast<std::size_t>((z * test_case.m + row) * test_case.n + column)]};
        if (!(std::abs(got - sum) <= allowed.absolute + allowed.relative * std::abs(sum)))
            return fmt::format("element [{}, {}, {}] is {}, expected {}", z, row, column, got, sum);
    }
    return {};
}

void time_case(Report& report, const Named& test_case) {
    const MatmulCase& p = test_case.problem;
    const Device device = report.device();
    const bool a_transposed = p.a == OperandStrides::transposed, b_transposed = p.b == OperandStrides::transposed;
    const auto operand = [&](bool transposed, std::int64_t rows, std::int64_t columns) {
        return uniform(transposed ? Shape{p.batch, columns, rows} : Shape{p.batch, rows, columns}, -1, 1);
    };
    const Tensor a = operand(a_transposed, p.m, p.k), b = operand(b_transposed, p.k, p.n),
                 out = full({p.batch, p.m, p.n}, NAN);
    const ops::View a_view = a_transposed ? ops::permuted(a.view(), {0, 2, 1}) : a.view();
    const ops::View b_view = b_transposed ? ops::permuted(b.view(), {0, 2, 1}) : b.view();
    const ops::View out_view = out.view();
    ops::matmul(a_view, b_view, out_view);
    const auto host_a = a.to_vector<float>(), host_b = b.to_vector<float>();
    if (const std::string wrong = wrong_element(p, host_a, host_b, out.to_vector<float>()); !wrong.empty())
        return report.fail(test_case.name, wrong);

    const auto wait = [device] { device.synchronize(); };
    const ops::MatmulProblem problem = ops::matmul_problem(a_view, b_view);
    std::vector<float> host_out(static_cast<std::size_t>(p.batch * p.m * p.n));
    std::vector<Contender> peers;
    if (report.with_peers()) {
        const HostGemm host{p.batch,        p.m, p.n, p.k, a_transposed, b_transposed, host_a.data(), host_b.data(),
                            host_out.data()};
        if (auto peer = openblas_gemm(host)) peers.push_back(*std::move(peer));
        // With its built-in parameters CLBlast takes seconds on a CPU for the largest products.
        if (p.flops() < 3e9 && ops::matmul_clblast().is_applicable(problem, device))
            peers.push_back({"CLBlast",
                             [&](int) {
                                 ops::matmul_clblast().run(problem, {a_view, b_view, out_view});
                             },
                             wait});
    }
    report.measure({.name = test_case.name,
                    .flops = p.flops(),
                    .strategy = std::string(ops::choose_matmul(problem, device).strategy->name()),
                    .group = test_case.group},
                   {"ours", [&](int) { ops::matmul(a_view, b_view, out.view()); }, wait}, peers);
}

void run(Report& report, const char* name, const std::vector<Named>& cases) {
    report.begin(name);
    for (const Named& test_case : cases)
        if (report.is_selected(test_case.name)) time_case(report, test_case);
    report.end();
}

const Suite gemm("gemm", "matrix products, compared with OpenBLAS and CLBlast with its built-in parameters",
                 [](Report& report) { run(report, "gemm", gemm_cases()); });
const Suite attention("attention_products",
                      "batched products of attention with 12 heads, compared with OpenBLAS and CLBlast",
                      [](Report& report) { run(report, "attention_products", attention_cases()); });

}  // namespace
}  // namespace declivity::bench
