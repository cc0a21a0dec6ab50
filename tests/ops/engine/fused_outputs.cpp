// Additional outputs of fused kernels, and donated inputs: the numbers are the same as without.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/launches.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"
#include "ops/engine/fusion.hpp"
#include "ops/engine/lazy_array.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::FusionScope;

namespace {

constexpr std::int64_t kRows = 64, kColumns = 96;  // enough elements that their memory is worth reusing
constexpr std::uint64_t kBytes = kRows * kColumns * 4;

Tensor large(std::uint64_t seed, DType dtype = DType::f32) { return random_tensor({kRows, kColumns}, seed, dtype); }

/// Peak memory of a call beyond the memory in use before it.
std::uint64_t peak_of(const std::function<void()>& call) {
    const Device device = default_device();
    const auto before = device.memory().in_use;
    device.reset_peak_memory();
    call();
    return device.memory().peak - before;
}

}  // namespace

TEST_CASE("fusion: an intermediate value that is used again is stored by the fused kernel") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({3, 5, 7}, 1), b = random_tensor({7}, 2);
    SUBCASE("expensive functions, at the first use") {
        const Tensor e = exp(a * b), t = tanh(e), s = sigmoid(a);
        Tensor y, z;
        CHECK(launches([&] { materialize(y = e + t * 2); }) == 1);
        CHECK(launches([&] { materialize(e), materialize(t); }) == 0);
        CHECK(launches([&] { materialize(z = (s * e + log(s)) * b); }) == 1);
        CHECK(launches([&] { materialize(s); }) == 0);
        const auto in = values(a), columns = values(b);
        std::vector<double> expected_e, expected_t, expected_y, expected_z;
        for (std::size_t i = 0; i < in.size(); ++i) {
            expected_e.push_back(std::exp(in[i] * columns[i % 7]));
            expected_t.push_back(std::tanh(expected_e.back()));
            expected_y.push_back(expected_e.back() + 2 * expected_t.back());
            const double sigmoid_of = 1 / (1 + std::exp(-in[i]));
            expected_z.push_back((sigmoid_of * expected_e.back() + std::log(sigmoid_of)) * columns[i % 7]);
        }
        CHECK(difference(e, expected_e, tolerance(DType::f32, 20)) == "");
        CHECK(difference(t, expected_t, tolerance(DType::f32, 20)) == "");
        CHECK(difference(y, expected_y, tolerance(DType::f32, 40)) == "");
        CHECK(difference(z, expected_z, tolerance(DType::f32, 40)) == "");
    }
    SUBCASE("no more than the kernel supports") {
        const Tensor e = exp(a), t = tanh(a), s = sigmoid(a), g = gelu(a);
        Tensor y;
        CHECK(launches([&] { materialize(y = e + t + s + g); }) == 3);
        CHECK(launches([&] { materialize(e), materialize(t), materialize(s), materialize(g); }) == 0);
        Tensor chain = exp(a);
        const Tensor head = chain;
        for (std::uint64_t i = 0; i < 7; ++i) chain = chain + random_tensor({7}, 20 + i);
        CHECK(launches([&] { materialize(chain); }) == 2);
    }
    SUBCASE("another shape is computed before") {
        const Tensor e = exp(b);
        Tensor y;
        CHECK(launches([&] { materialize(y = a * e); }) == 2);
        CHECK(launches([&] { materialize(e); }) == 0);
    }
    SUBCASE("values saved for backward") {
        Tensor x = random_tensor({3, 5, 7}, 1).set_requires_grad();
        Tensor y;
        CHECK(launches([&] { materialize(y = exp(x) * b + x); }) == 1);
        y.backward(ones_like(y));
        const auto in = values(x), columns = values(b);
        std::vector<double> expected;
        for (std::size_t i = 0; i < in.size(); ++i) expected.push_back(std::exp(in[i]) * columns[i % 7] + 1);
        CHECK(difference(x.grad(), expected, tolerance(DType::f32, 20)) == "");
    }
}

TEST_CASE("fusion: an intermediate output has any type, and is rounded before it is used") {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8, DType::boolean}) {
        CAPTURE(name_of(dtype));
        const Tensor a = random_tensor({5, 33}, 1, DType::f32, 0, 100), b = random_tensor({33}, 2, DType::f32, 0, 100);
        std::vector<std::vector<double>> both;
        for (const bool fused : {true, false}) {
            const FusionScope scope(fused);
            const Tensor h = dtype == DType::boolean ? less(a, b) : maximum(a, b).to(dtype);
            const Tensor y = h.to(DType::f32) * 2, z = h.to(DType::f32) + a;
            materialize(y);
            materialize(z);
            const int count = launches([&] { materialize(h); });
            if (fused) CHECK(count == 0);  // stored by z's kernel
            for (const Tensor& tensor : {h, y, z}) both.push_back(values(tensor));
        }
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(difference(both[i], both[i + 3], i == 2 ? tolerance(DType::f32, 2, 100) : Tolerance{}) == "");
    }
}

TEST_CASE("fusion: consumers of an f16 or bf16 intermediate output use the stored value") {
    const FusionScope fusion_on(true);
    for (const DType dtype : {DType::f16, DType::bf16}) {
        const Tensor a = random_tensor({333}, 1, dtype), b = random_tensor({333}, 2, dtype);
        const Tensor h = a * b;
        materialize(h + a);
        const Tensor z = h.to(DType::f32);
        CHECK(launches([&] { materialize(z), materialize(h); }) == 1);
        CHECK(values(z) == values(h));
    }
}

TEST_CASE("fusion: a result reuses the memory of an unshared input") {
    const FusionScope fusion_on(true);
    const Tensor b = large(2);
    const auto other = values(b);
    SUBCASE("one after the other") {
        Tensor x = large(1);
        std::vector<double> expected = values(x);
        CHECK(peak_of([&] {
                  for (int i = 0; i < 3; ++i) materialize(x = relu(x) - b);
              }) == 0);
        for (std::size_t i = 0; i < expected.size(); ++i)
            for (int k = 0; k < 3; ++k) expected[i] = std::max(0.0, expected[i]) - other[i];
        CHECK(difference(x, expected, tolerance(DType::f32, 8)) == "");
    }
    SUBCASE("through pending values") {
        Tensor x = large(1);
        std::vector<double> expected = values(x);
        x = x * 2;
        x = x + b;
        Tensor y = abs(x);
        x = Tensor();
        CHECK(peak_of([&] { materialize(y); }) == 0);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = std::abs(2 * expected[i] + other[i]);
        CHECK(difference(y, expected, tolerance(DType::f32, 8)) == "");
    }
    SUBCASE("twice an input of the same kernel") {
        Tensor x = large(1);
        std::vector<double> expected = values(x);
        x = x * x + x;
        CHECK(peak_of([&] { materialize(x); }) == 0);
        for (double& v : expected) v = v * v + v;
        CHECK(difference(x, expected, tolerance(DType::f32, 8)) == "");
    }
    SUBCASE("not of another type") {
        Tensor x = large(1);
        x = x.to(DType::i32);
        CHECK(peak_of([&] { materialize(x); }) == kBytes);
    }
}

TEST_CASE("fusion: no result reuses memory that is still referenced") {
    const FusionScope fusion_on(true);
    Tensor x = large(1);
    const auto in = values(x);
    const auto times_two = [&](const Tensor& y) {
        std::vector<double> expected = in;
        for (double& v : expected) v *= 2;
        CHECK(values(y) == expected);
    };
    SUBCASE("a handle") {
        const Tensor y = x * 2;
        materialize(y);
        times_two(y);
        CHECK(values(x) == in);
    }
    SUBCASE("a view of the same memory") {
        const Tensor same = reshape(x, {kRows * kColumns});
        Tensor y = x * 2;
        x = Tensor();
        materialize(y);
        times_two(y);
        CHECK(values(same) == in);
    }
    SUBCASE("another pending value") {
        Tensor y = x * 2, z = x + 1.0;
        x = Tensor();
        CHECK(peak_of([&] { materialize(y); }) == kBytes);
        CHECK(peak_of([&] { materialize(z); }) == 0);  // the last reader
        times_two(y);
        const auto incremented = values(z);
        for (std::size_t i = 0; i < in.size(); ++i)
            CHECK_UNARY(incremented[i] == static_cast<double>(static_cast<float>(in[i]) + 1.0F));
    }
    SUBCASE("a user's expression") {
        const ops::Expression elements = x.view();
        x = Tensor();
        const Scalar two[] = {2};
        const auto doubled_input = [&] {
            return Tensor(ops::make_lazy(ops::Expression::apply(ops::Function::mul_scalar, std::array{elements}, two),
                                         default_device()));
        };
        times_two(doubled_input());
        times_two(doubled_input());
    }
    SUBCASE("other elements of itself") {
        Tensor y = x + slice(x, 0, 3, 4), z = x - slice(x, 1, 5, 6);
        materialize(y);
        x = Tensor();
        CHECK(launches([&] { materialize(z); }) == 1);  // no copy either
        const auto expected_y = values(y), expected_z = values(z);
        int wrong = 0;
        for (std::size_t i = 0; i < in.size(); ++i) {
            wrong += expected_y[i] != static_cast<double>(static_cast<float>(in[i]) +
                                                          static_cast<float>(in[3 * kColumns + i % kColumns]));
            wrong += expected_z[i] != static_cast<double>(static_cast<float>(in[i]) -
                                                          static_cast<float>(in[i / kColumns * kColumns + 5]));
        }
        CHECK(wrong == 0);
    }
    SUBCASE("values saved for backward") {
        x.set_requires_grad();
        Tensor y = exp(x);
        materialize(y);
        Tensor z = y * 3;
        y = Tensor();
        materialize(z);
        z.backward(ones_like(z));
        const auto gradient = values(x.grad());
        for (std::size_t i = 0; i < in.size(); ++i)
            CHECK_UNARY(std::abs(gradient[i] - 3 * std::exp(in[i])) < 1e-5 * std::exp(in[i]) * 3);
    }
}

TEST_CASE("fusion: donated memory counts as written, and belongs to its last owner") {
    const FusionScope fusion_on(true);
    const Device device = default_device();
    Tensor x = large(1);
    const auto before = x.view().buffer.version();
    {
        const Scope scope("reuser");
        x = x * 2;
    }
    materialize(x);
    CHECK(x.view().buffer.version() == before + 1);
    const auto rows = device.memory_by_scope();
    CHECK(
        std::ranges::any_of(rows, [](const ScopeMemory& row) { return row.scope == "reuser" && row.bytes == kBytes; }));
    // Saved tensors of the result are intact.
    x.set_requires_grad();
    Tensor y = square(x);
    CHECK_NOTHROW(y.backward(ones_like(y)));
}

namespace {

/// A random program over large tensors: functions with all kinds of handles, aliases, released values, in-place writes.
std::vector<std::vector<double>> program(unsigned seed, int steps) {
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    std::vector<Tensor> all;
    for (std::uint64_t i = 0; i < 4; ++i) all.push_back(large(seed * 10 + i));
    for (int step = 0; step < steps; ++step) {
        Tensor& slot = all[pick(all.size())];
        const std::size_t a = pick(all.size()), b = pick(all.size());
        switch (pick(11)) {
            case 0:
                slot = slot * 0.5;
                break;
            case 1:
                slot = relu(std::move(slot)) + all[b == a ? 0 : b].detach();
                break;
            case 2:
                slot = tanh(all[a]) - all[b];
                break;
            case 3:
                all.push_back(reshape(reshape(all[a], {kRows * kColumns}), {kRows, kColumns}));
                break;  // an alias
            case 4:
                slot = all[a] + slice(all[b], 0, 3, 4) * 0.5;
                break;
            case 5:
                materialize(slot);
                break;
            case 6:
                (void)slot.clone().fill_(1);
                break;
            case 7:
                slot = slot.clone().mul_(0.75);
                break;
            case 8: {
                const Tensor e = exp(clamp(all[a], -2, 2));
                slot = e * 0.25 + all[b];
                if (pick(2) == 0) all.push_back(e);
                break;
            }
            case 9:
                slot.detach().fill_(0.125 * static_cast<double>(pick(9)));
                break;
            default:
                slot = Tensor(all[a]);
                materialize(slot = slot - 0.25);
                break;
        }
        for (Tensor& item : all)
            if (!item.defined()) item = zeros({kRows, kColumns});
        if (all.size() > 7) all.erase(all.begin(), all.begin() + 3);
    }
    std::vector<std::vector<double>> out;
    for (const Tensor& item : all) out.push_back(values(item));
    return out;
}

}  // namespace

TEST_CASE("fusion: random programs give the same numbers with and without donation") {
    for (unsigned seed = 1; seed <= (small_cases() ? 1 : 20); ++seed) {
        CAPTURE(seed);
        std::vector<std::vector<double>> fused, apart;
        {
            const FusionScope fusion_on(true);
            fused = program(seed, small_cases() ? 6 : 40);
        }
        {
            const FusionScope fusion_off(false);
            apart = program(seed, small_cases() ? 6 : 40);
        }
        REQUIRE(fused.size() == apart.size());
        for (std::size_t i = 0; i < fused.size(); ++i)
            CHECK(difference(fused[i], apart[i], tolerance(DType::f32, 1000)) == "");
    }
}
