// Work reported by operators: the FLOPs and bytes of their formulas, independent of the algorithm.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/conv2d.hpp>
#include <declivity/ops/matmul.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/pool2d.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/ops/softmax.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/trace.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/engine/formula.hpp"
#include "ops/matmul/matmul_strategies.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct RecordedWork {
    double flops = 0, bytes = 0;
    int kernels_with_work = 0;  // kernels with work
};

RecordedWork work_of(const std::function<void()>& run) {
    test::device().synchronize();
    Profiler profiler(test::device());
    run();
    RecordedWork work;
    for (const auto& row : profiler.rows()) {
        work.flops += row.flops;
        work.bytes += row.bytes;
        work.kernels_with_work += row.flops > 0 ? 1 : 0;
    }
    return work;
}

}  // namespace

TEST_CASE("work: a product has 2 * batch * M * N * K FLOPs with every strategy") {
    constexpr std::int64_t batch = 2, m = 12, n = 20, k = 36;
    const Tensor a = random_tensor({batch, m, k}, 1), b = random_tensor({batch, k, n}, 2), out = zeros({batch, m, n});
    const ops::View a_view = a.view(), b_view = b.view(), out_view = out.view();
    int strategies_checked = 0;
    for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
        CAPTURE(strategy->name());
        const Environment named("DECLIVITY_MATMUL", std::string(strategy->name()));
        if (ops::choose_matmul(ops::matmul_problem(a_view, b_view), test::device()).strategy != strategy) continue;
        ++strategies_checked;
        const RecordedWork work = work_of([&] { ops::matmul(a_view, b_view, out_view); });
        CHECK(work.flops == 2.0 * batch * m * n * k);
        CHECK(work.bytes == 4.0 * batch * (m * k + k * n + m * n));
        CHECK(work.kernels_with_work == 1);
    }
    CHECK(strategies_checked >= 3);
}

TEST_CASE("work: a convolution has 2 * N * K * P * Q * C/g * R * S FLOPs, in all directions, with every strategy") {
    struct Case {
        Shape x, weight;
        ops::Conv2dParameters options;
    };
    const std::vector<Case> cases{
        {{2, 4, 9, 8}, {6, 4, 3, 3}, {.padding = {1, 1}}},
        {{2, 4, 9, 8}, {6, 2, 3, 2}, {.stride = {2, 2}, .padding = {1, 0}, .groups = 2}},
        {{1, 8, 9, 9}, {8, 1, 3, 3}, {.padding = {1, 1}, .groups = 8}},
        {{1, 8, 6, 6}, {5, 8, 1, 1}, {}},
    };
    const std::vector<std::string> names{"conv2d", "conv2d_backward_input", "conv2d_backward_weights"};
    int strategies_checked = 0;
    for (const Case& c : cases)
        for (const auto direction : {ops::Conv2dDirection::forward, ops::Conv2dDirection::backward_input,
                                     ops::Conv2dDirection::backward_weights}) {
            const Shape shape = ops::conv2d_shape("test", c.x, c.weight, c.options);
            const Tensor x = random_tensor(c.x, 1), weight = random_tensor(c.weight, 2), out = random_tensor(shape, 3);
            const double formula = 2.0 * static_cast<double>(shape.numel() * c.weight[1] * c.weight[2] * c.weight[3]);
            for (const ops::Conv2dStrategy* strategy : ops::conv2d_strategies()) {
                const ops::Conv2dProblem problem = ops::conv2d_problem(
                    "test", direction, DType::f32, test::device().kernel_style(), c.x, c.weight, c.options);
                if (!strategy->is_applicable(problem, test::device()) ||
                    (small_cases() && strategy->name() != "direct" && strategy->name() != "gemm"))
                    continue;
                CAPTURE(strategy->name());
                const Environment named("DECLIVITY_CONV2D", std::string(strategy->name()));
                const ops::View xv = x.view(), wv = weight.view(), ov = out.view();
                const RecordedWork work = work_of([&] {
                    if (direction == ops::Conv2dDirection::forward)
                        ops::conv2d_forward(xv, wv, std::nullopt, ov, c.options);
                    else if (direction == ops::Conv2dDirection::backward_input)
                        ops::conv2d_backward_input(ov, wv, xv, c.options);
                    else ops::conv2d_backward_weights(xv, ov, wv, c.options);
                });
                CHECK(work.flops == doctest::Approx(formula));
                CHECK(work.bytes ==
                      doctest::Approx(4.0 * static_cast<double>(c.x.numel() + c.weight.numel() + shape.numel())));
                CHECK(work.kernels_with_work == 1);
                ++strategies_checked;
            }
        }
    CHECK(strategies_checked >= 12);
}

TEST_CASE("work: f64 is marked; batch norm, pooling, reductions, softmax and optimizers count by elements") {
    const Device device = test::device();
    const Tensor x = random_tensor({2, 3, 8, 8}, 1);
    constexpr double n = 2 * 3 * 8 * 8;
    const ops::View view = x.view();
    {
        const ops::View out = ops::View::make(device, DType::f32, {});
        const RecordedWork work = work_of([&] { ops::reduce(ops::Reduce::sum, view, {}, out); });
        CHECK(work.flops == n);
        CHECK(work.bytes == 4 * n + 4);
    }
    {
        const RecordedWork work = work_of([&] { (void)ops::softmax(ops::SoftmaxKind::softmax, view, 1).view(); });
        CHECK(work.flops == 4 * n);
        CHECK(work.bytes == 8 * n);
    }
    {
        const RecordedWork work = work_of([&] {
            (void)ops::avg_pool2d(view, {.kernel_size = {2, 2}, .stride = {2, 2}, .padding = {0, 0}}).view();
        });
        CHECK(work.flops == n);
        CHECK(work.bytes == 4 * (n + n / 4));
    }
    {
        // One kernel of three functions; the broadcast row counts once.
        const Tensor row = random_tensor({8}, 2);
        Profiler profiler(device);
        const Tensor y = relu(x * row + x);
        (void)y.view();
        const Json trace = trace_of(profiler);
        const auto kernels = events(trace, "X", "kernel");
        double flops = 0, bytes = 0;
        for (const Json& kernel : kernels) {
            flops += kernel.at("args").at("flops").get<double>();
            bytes += kernel.at("args").at("bytes").get<double>();
        }
        CHECK(flops == 3 * n);
        if (kernels.size() == 1) {  // with DECLIVITY_FUSION=0 there are three
            CHECK(kernels[0].at("args").at("operator") == "mul+add+relu");
            CHECK(bytes == 4 * (2 * n + 8));
        }
    }
    {
        ops::MultiTensor tensors(4);
        std::vector<std::vector<ops::View>> lists(4);
        for (auto& list : lists)
            for (const std::int64_t size : {5, 70}) list.push_back(zeros({size}).view());
        tensors.set(lists);
        const ops::View progress = zeros({2}).view(), guard = zeros({2}, {DType::i32}).view();
        const auto formula = [&] {
            const ops::FormulaTrace trace("formula", tensors.device());
            const auto role = [&](std::size_t number) { return Tensor(trace.role(number, DType::f32)); };
            const Tensor mean = role(2) * 0.9 + role(1), squares = role(3) + square(role(1));
            return ops::Formula(
                trace, {{0, (role(0) - mean / sqrt(squares)).value()}, {2, mean.value()}, {3, squares.value()}});
        }();
        const RecordedWork work = work_of([&] { formula.launch(tensors, progress, guard); });
        CHECK(work.bytes == 7 * 4 * 75);
        CHECK(work.flops == 7 * 75);
        CHECK(work.kernels_with_work == 1);
    }
    if (device.info().fp64) {
        const Tensor a = random_tensor({4, 4}, 1, DType::f64);
        Profiler profiler(device);
        const Tensor y = matmul(a, a);
        (void)y.view();
        int kernels_marked = 0;
        for (const Json& kernel : events(trace_of(profiler), "X", "kernel"))
            kernels_marked += kernel.at("args").contains("f64") ? 1 : 0;
        CHECK(kernels_marked == 1);
    }
}
