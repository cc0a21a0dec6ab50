// Row operators fused with pending inputs and following functions into one kernel: compared with plain C++, in both
// kernel styles.
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/contract.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/trace.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;
using Function = std::function<Tensor(const Tensor&)>;

/// Row by row, with n elements each.
Values map_rows(const Values& x, std::size_t n, const std::function<Values(const Values&)>& row) {
    Values out;
    for (std::size_t first = 0; first < x.size(); first += n) {
        const auto from = x.begin() + static_cast<std::ptrdiff_t>(first);
        const Values result = row(Values(from, from + static_cast<std::ptrdiff_t>(n)));
        out.insert(out.end(), result.begin(), result.end());
    }
    return out;
}

Values softmax_of(const Values& row, bool logarithm) {
    double largest = -INFINITY, sum = 0;
    for (const double element : row) largest = std::max(largest, element);
    for (const double element : row) sum += std::exp(element - largest);
    Values out;
    for (const double element : row)
        out.push_back(logarithm ? element - largest - std::log(sum) : std::exp(element - largest) / sum);
    return out;
}

Values norm_of(const Values& row, bool rms) {
    double mean = 0, squares = 0;
    const auto n = static_cast<double>(row.size());
    for (const double element : row) mean += rms ? 0 : element / n;
    for (const double element : row) squares += (element - mean) * (element - mean) / n;
    Values out;
    for (const double element : row) out.push_back((element - mean) / std::sqrt(squares + 1e-5));
    return out;
}

Values map_elements(const Values& x, const std::function<double(double, std::size_t)>& function) {
    Values out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(function(x[i], i));
    return out;
}

struct Operator {
    std::string name;
    std::function<Tensor(Tensor)> call;
    std::function<Values(const Values&)> row;
};

std::vector<Operator> operators(std::int64_t n) {
    return {{"softmax", [](Tensor x) { return softmax(std::move(x)); },
             [](const Values& row) { return softmax_of(row, false); }},
            {"log_softmax", [](Tensor x) { return log_softmax(std::move(x)); },
             [](const Values& row) { return softmax_of(row, true); }},
            {"layer_norm", [n](Tensor x) { return layer_norm(std::move(x), {n}, {}, {}, 1e-5); },
             [](const Values& row) { return norm_of(row, false); }},
            {"rms_norm", [n](Tensor x) { return rms_norm(std::move(x), {n}, {}, 1e-5); },
             [](const Values& row) { return norm_of(row, true); }}};
}

/// Number of kernels that a call launches.
std::size_t kernels_of(const std::function<void()>& call) {
    Profiler profiler(device());
    call();
    return events(trace_of(profiler), "X", "kernel").size();
}

std::vector<std::pair<std::int64_t, std::int64_t>> sizes() {
    if (small_cases()) return {{2, 49}};
    // Too short to fuse, every remainder after whole vectors, and more than a group of simt devices keeps in local
    // memory.
    return {{1, 7}, {70, 3}, {7, 48}, {300, 49}, {5, 143}, {3, 9001}};
}

}  // namespace

TEST_CASE("row fusion: scale, mask and residual before, functions after, in one kernel") {
    const ops::FusionScope fusion_on(true);
    for (const KernelStyle style : kernel_styles())
        for (const DType dtype : floats())
            for (const auto& [rows, n] : sizes()) {
                const ops::KernelStyleScope scope(style);
                const Tensor x = random_tensor({rows, n}, 1, dtype, -2, 2), r = random_tensor({rows, n}, 2, dtype),
                             mask = random_tensor({n}, 3, dtype), row_shift = random_tensor({rows, 1}, 4, dtype);
                const auto width = static_cast<std::size_t>(n);
                const Values in = values(x), residual = values(r), mask_values = values(mask),
                             shifts = values(row_shift);
                const auto allowed = tolerance(dtype, 30 + static_cast<double>(n) / 10, 8);
                for (const Operator& op : operators(n)) {
                    CAPTURE(op.name);
                    CAPTURE(rows);
                    CAPTURE(n);
                    CAPTURE(name_of(dtype));
                    CAPTURE(static_cast<int>(style));
                    const auto reference = [&](const std::function<double(double, std::size_t)>& before) {
                        return map_rows(map_elements(in, before), width, op.row);
                    };
                    CHECK(difference(op.call(x * 0.5 + mask), reference([&](double v, std::size_t i) {
                                         return 0.5 * v + mask_values[i % width];
                                     }),
                                     allowed) == "");
                    const Values sums = reference([&](double v, std::size_t i) { return v + residual[i]; });
                    CHECK(difference(op.call(x + r), sums, allowed) == "");
                    CHECK(difference(op.call(tanh(x - row_shift)), reference([&](double v, std::size_t i) {
                                         return std::tanh(v - shifts[i / width]);
                                     }),
                                     allowed) == "");
                    // After it, and on both sides.
                    const Values plain = reference([](double v, std::size_t) { return v; });
                    CHECK(difference(op.call(x) * mask + r,
                                     map_elements(plain,
                                                  [&](double v, std::size_t i) {
                                                      return v * mask_values[i % width] + residual[i];
                                                  }),
                                     allowed) == "");
                    CHECK(
                        difference(sigmoid(op.call(x + r) * 2.0),
                                   map_elements(sums, [](double v, std::size_t) { return 1 / (1 + std::exp(-2 * v)); }),
                                   allowed) == "");
                }
            }
}

TEST_CASE("row fusion: rows of several axes, and masks broadcast over some of them") {
    const ops::FusionScope fusion_on(true);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(static_cast<int>(style));
        const Tensor x = random_tensor({2, 3, 5, 61}, 1, DType::f32, -3, 3);
        const Tensor causal = random_tensor({5, 61}, 2), batch_mask = random_tensor({2, 1, 1, 61}, 3);
        const Values in = values(x), causal_mask = values(causal), batches = values(batch_mask);
        const auto masked = map_elements(in, [&](double v, std::size_t i) {
            return 0.125 * v + causal_mask[i % (5 * 61)] + batches[i / (3 * 5 * 61) * 61 + i % 61];
        });
        const auto allowed = tolerance(DType::f32, 30, 4);
        CHECK(difference(softmax(x * 0.125 + causal + batch_mask),
                         map_rows(masked, 61, [](const Values& row) { return softmax_of(row, false); }),
                         allowed) == "");
        // Two axes as a row.
        CHECK(difference(relu(layer_norm(x * 2.0, {5, 61})),
                         map_elements(map_rows(map_elements(in, [](double v, std::size_t) { return 2 * v; }), 5 * 61,
                                               [](const Values& row) { return norm_of(row, false); }),
                                      [](double v, std::size_t) { return v > 0 ? v : 0; }),
                         allowed) == "");
        // The axis is not the last: the pending input is evaluated first.
        const Tensor permuted = transpose(softmax(transpose(x * 0.5, 1, 3), 1), 1, 3);
        CHECK(difference(softmax(x * 0.5, 3), values(permuted), allowed) == "");
        // Strided operands.
        const Tensor matrix = random_tensor({61, 30}, 4);
        const Tensor other = reshape(x, {30, 61});
        CHECK(difference(softmax(other + transpose(matrix)), values(softmax((other + transpose(matrix)).clone())),
                         allowed) == "");
    }
}

TEST_CASE("row fusion: referenced inputs are stored by the same kernel") {
    const ops::FusionScope fusion_on(true);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(static_cast<int>(style));
        for (const auto& [rows, n] : sizes()) {
            const Tensor x = random_tensor({rows, n}, 1), r = random_tensor({rows, n}, 2);
            const Values in = values(x), residual = values(r);
            const auto width = static_cast<std::size_t>(n);
            const Values sums = map_elements(in, [&](double v, std::size_t i) { return v + residual[i]; });
            const auto allowed = tolerance(DType::f32, 30 + static_cast<double>(n) / 10, 8);
            for (const Operator& op : operators(n)) {
                CAPTURE(op.name);
                CAPTURE(n);
                const Tensor h = x + r, y = op.call(h), z = h * 2.0;
                CHECK(difference(y, map_rows(sums, width, op.row), allowed) == "");
                CHECK(h.value().computed());
                CHECK(difference(h, sums, {.absolute = 1e-6, .relative = 1e-6}) == "");
                CHECK(difference(z, map_elements(sums, [](double v, std::size_t) { return 2 * v; }),
                                 {.absolute = 1e-6, .relative = 1e-6}) == "");
            }
        }
        // Written after the call: the result has the elements at the time of the call.
        Tensor x = random_tensor({6, 40}, 1), r = random_tensor({6, 40}, 2);
        const Values before = values(softmax((x + r).clone()));
        const Tensor y = softmax(x + r);
        x.fill_(3);
        CHECK(difference(y, before, {.absolute = 1e-6, .relative = 1e-6}) == "");
        const Tensor h = x * r, z = softmax(h);
        const Values unfused = values(softmax((x * r).clone()));
        Tensor(h).fill_(1);
        CHECK(difference(z, unfused, {.absolute = 1e-6, .relative = 1e-6}) == "");
    }
}

TEST_CASE("row fusion: number of launched kernels") {
    const ops::FusionScope fusion_on(true);
    const ops::KernelStyleScope cpu(KernelStyle::simd);
    const Tensor x = random_tensor({64, 160}, 1), r = random_tensor({64, 160}, 2), mask = random_tensor({160}, 3),
                 w = random_tensor({160, 160}, 4), column = random_tensor({64, 1}, 5);
    (void)dropout(x, 0.5).view();  // creates the generator's state
    CHECK(kernels_of([&] { (void)softmax(x * 0.5 + mask).view(); }) == 1);
    CHECK(kernels_of([&] { (void)layer_norm(x + r, {160}, mask, mask).view(); }) == 1);
    CHECK(kernels_of([&] { (void)gelu(layer_norm(x + r, {160}, mask, mask)).view(); }) == 1);
    CHECK(kernels_of([&] {
              const Tensor y = dropout(softmax(x * 0.5), 0.3);
              (void)y.view();
          }) == 1);
    const Tensor x_f16 = x.to(DType::f16);
    (void)x_f16.view();
    CHECK(kernels_of([&] { (void)softmax(x_f16).view(); }) == 1);
    // A residual that is read again is stored by the same kernel.
    CHECK(kernels_of([&] {
              const Tensor h = x + r, y = layer_norm(h, {160});
              (void)y.view(), (void)h.view();
          }) == 1);
    // A referenced result is computed alone: what follows is a separate kernel.
    CHECK(kernels_of([&] {
              const Tensor y = layer_norm(x, {160}), z = gelu(y);
              (void)z.view(), (void)y.view();
          }) == 2);
    // Rows that are too short: one kernel for the elements, and one for the rows.
    const Tensor short_rows = random_tensor({64, 20}, 6);
    CHECK(kernels_of([&] { (void)softmax(short_rows * 0.5).view(); }) == 2);
    // A product fuses its scale and bias; a mask that it does not support is fused into the rows.
    const std::size_t product = kernels_of([&] { (void)matmul(x, w).view(); });
    CHECK(kernels_of([&] { (void)softmax(matmul(x, w) * 0.5 + mask).view(); }) == product + 1);
    CHECK(kernels_of([&] { (void)softmax(tanh(matmul(x, w) * column)).view(); }) == product + 1);
}

TEST_CASE("row fusion: random numbers, selection and other types") {
    const ops::FusionScope fusion_on(true);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(static_cast<int>(style));
        for (const auto& [rows, n] : sizes()) {
            CAPTURE(n);
            const Tensor x = random_tensor({rows, n}, 1, DType::f32, -2, 2), ones_of = ones({rows, n});
            const auto allowed = tolerance(DType::f32, 30 + static_cast<double>(n) / 10, 8);
            // After it and before it, the same numbers as from a separate kernel.
            const auto seeded = [&](const std::function<Tensor()>& call) {
                manual_seed(5);
                return values(call());
            };
            CHECK(difference(seeded([&] { return dropout(softmax(x), 0.4); }),
                             seeded([&] { return dropout(softmax(x).clone(), 0.4); }), allowed) == "");
            CHECK(difference(seeded([&] { return softmax(dropout(x, 0.4)); }),
                             seeded([&] { return softmax(dropout(x, 0.4).clone()); }), allowed) == "");
            const Tensor where_positive = greater(x, zeros({}));
            CHECK(difference(softmax(where(where_positive, x, full({}, -1e9))),
                             values(softmax(where(where_positive, x, full({}, -1e9)).clone())), allowed) == "");
            const Tensor positive = greater(layer_norm(x, {n}), zeros({}));
            CHECK(positive.dtype() == DType::boolean);
            CHECK(values(positive) == values(greater(layer_norm(x, {n}).clone(), zeros({}))));
            for (const DType reduced : {DType::f16, DType::bf16}) {
                const Tensor h = x.to(reduced);
                (void)h.view();
                const Tensor y = gelu(layer_norm(h + h, {n}));
                CHECK(y.dtype() == reduced);
                const double unit = reduced == DType::f16 ? 2e-3 : 2e-2;
                CHECK(difference(y, values(gelu(layer_norm((h + h).to(DType::f32), {n}))),
                                 {.absolute = 4 * unit, .relative = 2 * unit}) == "");
            }
            if (!device().info().fp64) continue;
            const Tensor upcast = softmax(x).to(DType::f64) * 3.0;
            CHECK(difference(upcast, map_elements(values(softmax(x)), [](double v, std::size_t) { return 3 * v; }),
                             allowed) == "");
        }
    }
}

TEST_CASE("row fusion: gradients through pending rows") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(static_cast<int>(style));
        for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{3, 130}, {40, 49}})
            for (const Operator& op : operators(n)) {
                if (small_cases() && rows > 3) continue;
                CAPTURE(op.name);
                Tensor x = random_tensor({rows, n}, 1).set_requires_grad(),
                       r = random_tensor({rows, n}, 2).set_requires_grad(),
                       mask = random_tensor({n}, 3).set_requires_grad();
                const Tensor g = random_tensor({rows, n}, 4);
                const auto gradients = [&](bool fuses) {
                    const ops::FusionScope fusion(fuses);
                    for (Tensor leaf : {x, r, mask}) leaf.zero_grad();
                    const Tensor h = x * 0.5 + mask + r;
                    (gelu(op.call(h) * mask) + h).backward(g);
                    return std::vector{values(x.grad()), values(r.grad()), values(mask.grad())};
                };
                const auto at_once = gradients(false), fused = gradients(true);
                const auto allowed = tolerance(DType::f32, 40 + static_cast<double>(rows), 8);
                for (std::size_t i = 0; i < 3; ++i) CHECK(difference(fused[i], at_once[i], allowed) == "");
            }
    }
}

TEST_CASE("row fusion: the function contract") {
    const auto check = [](const char* name, const std::function<Tensor(const std::vector<Tensor>&)>& call) {
        const std::vector<Tensor> inputs{random_tensor({3, 160}, 1), random_tensor({3, 160}, 2),
                                         random_tensor({160}, 3)};
        const Contract contract{.name = name,
                                .inputs = inputs,
                                .arbitrary = {true, true, true},
                                .call = [call](const std::vector<Tensor>& in) { return std::vector{call(in)}; },
                                .differentiable = true};
        for (const std::string& sentence : violations(contract)) FAIL_CHECK(sentence);
    };
    check("softmax(x * s + mask)", [](const auto& in) { return softmax(in[0] * 0.5 + in[2]) * in[1]; });
    if (small_cases()) return;
    check("log_softmax(x - y)", [](const auto& in) { return log_softmax(in[0] - in[1]); });
    check("layer_norm(x + y)", [](const auto& in) { return layer_norm(in[0] + in[1], {160}, in[2]); });
    check("h + gelu(rms_norm(h))", [](const auto& in) {
        const Tensor h = in[0] * in[1];
        return h + gelu(rms_norm(h, {160}, in[2]));
    });
}
