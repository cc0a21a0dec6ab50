// Reductions fused with a preceding chain of elementwise functions: one kernel, and the same numbers as unfused.
#include <atomic>
#include <cmath>
#include <thread>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "ops/engine/fusion.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/support/work_split.hpp"
#include "tests/support/devices.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Case {
    Shape shape, other;  // the second broadcasts to the first
    Dims axes;
};

/// The cases include several rows per work-item, several splits of a row, columns that do not merge into one row, and
/// rows too short to fuse.
std::vector<Case> cases() {
    std::vector<Case> all{{{1000}, {1000}, {}},
                          {{1000}, {}, {}},
                          {{7, 130}, {7, 130}, {1}},
                          {{7, 130}, {7, 1}, {1}},
                          {{7, 130}, {130}, {1}},
                          {{3, 5, 9, 11}, {3, 5, 9, 11}, {0, 2, 3}},
                          {{3, 5, 9, 11}, {5, 1, 1}, {0, 2, 3}},
                          {{3, 5, 9, 11}, {5, 1, 1}, {}},
                          {{2, 70, 1}, {2, 1, 1}, {1, 2}},
                          {{4, 1, 33, 2}, {2}, {1, 2, 3}},
                          {{2, 3000}, {2, 3000}, {1}},
                          {{130, 7}, {130, 7}, {0}},
                          {{90, 11}, {11}, {1}},
                          {{1, 1}, {1}, {}},
                          {{5, 64, 3}, {3}, {0, 1, 2}},
                          {{40, 70}, {40, 1}, {1}},
                          {{5000}, {5000}, {}}};
    if (!small_cases())
        for (const Case& large : {Case{{40'000}, {40'000}, {}}, Case{{2, 50'000}, {2, 1}, {1}},
                                  Case{{20, 20'000}, {20'000}, {1}}, Case{{4, 3, 150, 150}, {3, 1, 1}, {0, 2, 3}}})
            all.push_back(large);
    return all;
}

std::vector<double> at_each(const Tensor& tensor, const Shape& shape) { return values(expand(tensor, shape).clone()); }

/// In double, over axes of a row-major array.
std::vector<double> reduced(const std::vector<double>& elements, const Shape& shape, const Dims& axes,
                            ops::Reduce kind) {
    const Dims reduced_axes = ops::normalize_axes("test", axes, shape.rank());
    const Shape out_shape = ops::reduced_shape(shape, reduced_axes, true);
    std::vector<double> out(static_cast<std::size_t>(out_shape.numel()), kind == ops::Reduce::max   ? -INFINITY
                                                                         : kind == ops::Reduce::min ? INFINITY
                                                                                                    : 0);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        std::int64_t rest = static_cast<std::int64_t>(i), at = 0, step = 1;
        for (int axis = shape.rank() - 1; axis >= 0; --axis) {
            const std::int64_t index = rest % shape[axis];
            rest /= shape[axis];
            if (out_shape[axis] != 1) at += index * step;
            step *= out_shape[axis];
        }
        double& to = out[static_cast<std::size_t>(at)];
        if (kind == ops::Reduce::max) to = std::max(to, elements[i]);
        else if (kind == ops::Reduce::min) to = std::min(to, elements[i]);
        else to += elements[i];
    }
    if (kind == ops::Reduce::mean)
        for (double& output : out) output *= static_cast<double>(out.size()) / static_cast<double>(elements.size());
    return out;
}

Tensor apply(ops::Reduce kind, const Tensor& x, const Dims& axes) {
    switch (kind) {
        case ops::Reduce::sum:
            return sum(x, axes);
        case ops::Reduce::mean:
            return mean(x, axes);
        case ops::Reduce::max:
            return max(x, axes);
        case ops::Reduce::min:
            return min(x, axes);
    }
    return {};
}

/// Number of launches of each kernel.
std::vector<Profiler::Row> kernels_of(const Device& device, const std::function<void()>& call) {
    device.synchronize();
    Profiler profiler(device);
    call();
    profiler.stop();
    return profiler.rows();
}

}  // namespace

TEST_CASE("reduced chains: match the reference") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : {DType::f32, DType::f64, DType::f16}) {
            for (const Case& test_case : cases()) {
                CAPTURE(test_case.shape.str());
                CAPTURE(test_case.other.str());
                CAPTURE(test_case.axes.str());
                CAPTURE(name_of(dtype));
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                if (small_cases() && dtype == DType::f64) continue;
                const Tensor x = random_tensor(test_case.shape, 1, dtype), t = random_tensor(test_case.other, 2, dtype);
                auto elements = values(x);
                const auto targets = at_each(t, test_case.shape);
                for (std::size_t i = 0; i < elements.size(); ++i)
                    elements[i] = (elements[i] - targets[i]) * (elements[i] - targets[i]) * 0.5 - 0.1;
                for (const ops::Reduce kind :
                     {ops::Reduce::sum, ops::Reduce::mean, ops::Reduce::max, ops::Reduce::min}) {
                    if (small_cases() && kind != (dtype == DType::f32 ? ops::Reduce::mean : ops::Reduce::max)) continue;
                    CAPTURE(ops::name_of(kind));
                    const Tensor y = apply(kind, square(x - t) * 0.5 - 0.1, test_case.axes);
                    const double eps = dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 1e-6 : 2e-3;
                    const double terms = kind == ops::Reduce::sum ? static_cast<double>(test_case.shape.numel()) : 1;
                    CHECK(difference(y, reduced(elements, test_case.shape, test_case.axes, kind),
                                     {8 * eps, 2 * eps * std::sqrt(terms)}) == "");
                }
            }
        }
    }
}

TEST_CASE("reduced chains: a sum of squared differences is one kernel, a long one has a short second one") {
    if (!ops::fuses()) return;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Tensor x = random_tensor({40, 200}, 1), t = random_tensor({40, 200}, 2);
        const Device device = x.device();
        for (int round = 0; round < 2; ++round) {  // the first round compiles
            const auto rows = kernels_of(device, [&] { (void)sum(square(x - t), {1}); });
            REQUIRE(rows.size() == 1);
            CHECK(rows[0].name == "elementwise_reduce");
            CHECK(rows[0].calls == 1);
        }
    }
    const Tensor x = random_tensor({small_cases() ? 1 << 15 : 1 << 20}, 1);
    for (int round = 0; round < 2; ++round) {
        std::int64_t calls = 0;
        for (const auto& row : kernels_of(x.device(), [&] { (void)mean(square(x - 0.5)); })) calls += row.calls;
        CHECK(calls == 2);
    }
}

TEST_CASE("reduced chains: values fused into a reduction are available to others") {
    const Tensor x = random_tensor({50, 70}, 1);
    const Tensor y = square(x) + 1.0;  // referenced
    const auto total = values(sum(y)), again = values(sum(y));
    CHECK(std::abs(total[0] - again[0]) <= 1e-6 * std::abs(total[0]));
    auto expected = values(x);
    for (double& value : expected) value = value * value + 1;
    CHECK(difference(y, expected, {1e-6, 1e-6}) == "");
}

TEST_CASE("reduced chains: later writes do not affect the result") {
    Tensor x = random_tensor({200}, 1);
    const double before = values(sum(square(x)))[0];
    const Tensor total = sum(square(x));
    x.fill_(0);
    CHECK(values(total)[0] == before);
}

TEST_CASE("reduced chains: counts and sums of integers, bools and empty tensors") {
    const Tensor x = random_tensor({3, 500}, 1);
    double positive = 0;
    for (const double value : values(x)) positive += value > 0;
    const Tensor count = sum(greater(x, zeros({})));
    CHECK(count.dtype() == DType::i64);
    CHECK(count.item<std::int64_t>() == static_cast<std::int64_t>(positive));
    std::vector<std::int32_t> integers;
    for (int i = 0; i < 300; ++i) integers.push_back(i * 33'333 - 5'000'000);
    const Tensor integer_tensor = Tensor::from(integers, {300});
    std::int64_t total = 0;
    for (const std::int32_t number : integers) total += number;
    CHECK(sum(-integer_tensor).item<std::int64_t>() == -total);
    CHECK(max(-integer_tensor).item<std::int32_t>() == 5'000'000);
    CHECK(sum(square(zeros({0, 5}))).item<float>() == 0);
    CHECK(values(sum(square(zeros({4, 0})), {1})) == std::vector<double>(4, 0));
    CHECK(std::isnan(values(mean(square(zeros({0}))))[0]));
    const Tensor nan = Tensor::from(std::vector<float>{1, NAN, 2}, {3});
    CHECK(std::isnan(max(expand(reshape(nan, {3, 1}), {3, 100}) * 2.0).item<float>()));
}

TEST_CASE("reduced chains: gradients") {
    const Tensor x = random_tensor({6, 80}, 1).set_requires_grad(), t = random_tensor({80}, 2).set_requires_grad();
    const auto loss = [&] { return mean(square(x - t)) + max(tanh(x * t)) * 0.1; };
    std::vector<std::vector<float>> got[2];
    for (const bool fused : {false, true}) {
        const ops::FusionScope scope(fused);
        for (const Tensor& tensor : grad({loss()}, {x, t})) got[fused ? 1 : 0].push_back(tensor.to_vector<float>());
    }
    for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t k = 0; k < got[0][i].size(); ++k)
            CHECK(got[1][i][k] == doctest::Approx(got[0][i][k]).epsilon(1e-5));
}

TEST_CASE(
    "reduced chains: the gradient of an extremum finds its element, although stored f16 and bf16 chains are rounded") {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        if (small_cases() && dtype != DType::f16) continue;
        const auto some = [&](std::uint64_t seed) { return random_tensor({40, 200}, seed, dtype); };
        const Tensor a = some(1).set_requires_grad(), b = some(2), c = some(3), d = some(4);
        sum(max((a - b) * (a + c) - d * a, {1})).backward();
        const auto gradient = values(a.grad());
        for (std::size_t row = 0; row < 40; ++row) {
            int ties = 0;
            for (std::size_t i = 0; i < 200; ++i) ties += gradient[row * 200 + i] != 0;
            CHECK(ties >= 1);
            CHECK(ties <= 8);  // ties share it
        }
    }
}

TEST_CASE("reduced chains: a pending reduction has the elements at the time of its call") {
    if (test::on_oclgrind()) return;  // Oclgrind crashes if two threads enqueue kernels
    for (int round = 0; round < (small_cases() ? 3 : 300); ++round) {
        Tensor x = ones({4096});
        const Tensor y = square(x) + 1.0;
        std::atomic<int> ready{0};
        const auto meet = [&] {
            ++ready;
            while (ready < 2) std::this_thread::yield();
        };
        std::thread other([&] {
            meet();
            x.fill_(0);
        });
        meet();
        const Tensor total = sum(y * 1.0);  // its input is unreferenced
        other.join();
        CHECK(total.item<float>() == 8192);
    }
}
