// Lazy evaluation and fusion: which functions become one kernel, with the same numbers as unfused ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/launches.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::FusionScope;
using ops::LazyArray;

namespace {}  // namespace

TEST_CASE("fusion: a chain of functions is one kernel") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({3, 5, 7}, 1), b = random_tensor({7}, 2), c = random_tensor({3, 1, 1}, 3);
    Tensor y;
    CHECK(launches([&] {
              y = clamp(relu(a * b + c) - 0.25, -0.1, 0.4);
              materialize(y);
          }) == 1);
    const auto in_a = values(a), in_b = values(b), in_c = values(c);
    std::vector<double> expected(in_a.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = std::clamp(std::max(0.0, in_a[i] * in_b[i % 7] + in_c[i / 35]) - 0.25, -0.1, 0.4);
    CHECK(difference(y, expected, tolerance(DType::f32, 4)) == "");
    const FusionScope fusion_off(false);
    CHECK(launches([&] { y = clamp(relu(a * b + c) - 0.25, -0.1, 0.4); }) == 5);
    CHECK(difference(y, expected, tolerance(DType::f32, 4)) == "");
}

TEST_CASE("fusion: expressions of the same functions over other operands are other kernels") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({11}, 1), b = random_tensor({11}, 2);
    const auto in_a = values(a), in_b = values(b);
    const auto check = [&](const Tensor& got, const std::function<double(double, double)>& expected) {
        std::vector<double> all;
        for (std::size_t i = 0; i < in_a.size(); ++i) all.push_back(expected(in_a[i], in_b[i]));
        CHECK(difference(got, all, tolerance(DType::f32, 4)) == "");
    };
    check(a * b - a, [](double x, double y) { return x * y - x; });
    check(a * b - b, [](double x, double y) { return x * y - y; });
    check(b - a * b, [](double x, double y) { return y - x * y; });
    check((a - b) * (a - b), [](double x, double y) { return (x - y) * (x - y); });
    check((a - b) * (b - a), [](double x, double y) { return (x - y) * (y - x); });
    const auto diamond = [&](bool first) {
        const Tensor h = a * b, k = a + b;
        return (h - k) * (first ? h : k);
    };
    check(diamond(true), [](double x, double y) { return (x * y - x - y) * x * y; });
    check(diamond(false), [](double x, double y) { return (x * y - x - y) * (x + y); });
    check(a * 2 - b * 3, [](double x, double y) { return x * 2 - y * 3; });
    check(a * 5 - b * 7, [](double x, double y) { return x * 5 - y * 7; });
}

TEST_CASE("fusion: launches are deferred until a value is needed, and unneeded values are never computed") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({9}, 1);
    CHECK(launches([&] { (void)(relu(a) + 1.0); }) == 0);
    Tensor y;
    CHECK(launches([&] { y = relu(a) + 1.0; }) == 0);
    CHECK(launches([&] { materialize(y); }) == 1);
    CHECK(launches([&] { materialize(y); }) == 0);
}

TEST_CASE("fusion: a value with two uses is computed once, or fused into both") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({40}, 1), b = random_tensor({40}, 2);
    const Tensor h = a + b;
    Tensor y, z, again;
    CHECK(launches([&] { materialize(y = h * h); }) == 1);  // fuses h
    CHECK(launches([&] { materialize(z = h - a); }) == 1);  // stores h as well, since it is the second use
    CHECK(launches([&] { materialize(again = relu(h)); }) == 1);
    const auto in_a = values(a), in_b = values(b);
    std::vector<double> square, rest, positive;
    for (std::size_t i = 0; i < in_a.size(); ++i) {
        const double sum = in_a[i] + in_b[i];
        square.push_back(sum * sum);
        rest.push_back(sum - in_a[i]);
        positive.push_back(std::max(0.0, sum));
    }
    CHECK(difference(y, square, tolerance(DType::f32, 4)) == "");
    CHECK(difference(z, rest, tolerance(DType::f32, 4)) == "");
    CHECK(difference(again, positive, tolerance(DType::f32, 4)) == "");
    // Expensive functions are not computed twice.
    const Tensor e = exp(a);
    CHECK(launches([&] { materialize(e + 1.0); }) == 1);
    CHECK(launches([&] { materialize(e); }) == 0);
    CHECK(launches([&] { materialize(exp(a) + 1.0); }) == 1);
}

TEST_CASE("fusion: small broadcast values are computed once") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({50, 30}, 1), b = random_tensor({30}, 2), c = random_tensor({30}, 3);
    Tensor y;
    CHECK(launches([&] { materialize(y = a * (b + c)); }) == 2);
    const auto in_a = values(a), in_b = values(b), in_c = values(c);
    std::vector<double> expected(in_a.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = in_a[i] * (in_b[i % 30] + in_c[i % 30]);
    CHECK(difference(y, expected, tolerance(DType::f32, 4)) == "");
}

TEST_CASE("fusion: expressions are split where kernels would become too large") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({33}, 1);
    const auto in = values(a);
    SUBCASE("many functions") {
        Tensor y = a;
        std::vector<double> expected = in;
        CHECK(launches([&] {
                  for (int i = 0; i < 100; ++i) y = y * 0.5 + 0.25;
                  materialize(y);
              }) < 30);
        for (double& v : expected)
            for (int i = 0; i < 100; ++i) v = v * 0.5 + 0.25;
        CHECK(difference(y, expected, tolerance(DType::f32, 100)) == "");
    }
    SUBCASE("many inputs") {
        std::vector<Tensor> parts;
        Tensor y = a;
        std::vector<double> expected = in;
        for (std::uint64_t i = 0; i < 20; ++i) {
            parts.push_back(random_tensor({33}, 10 + i));
            y = y + parts.back();
            const auto added = values(parts.back());
            for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += added[k];
        }
        CHECK(difference(y, expected, tolerance(DType::f32, 40)) == "");
    }
    SUBCASE("a value that doubles") {
        Tensor y = a;
        for (int i = 0; i < 40; ++i) y = (y + y) * 0.5;
        CHECK(difference(y, in, tolerance(DType::f32, 4)) == "");
    }
}

TEST_CASE("fusion: functions after a product or a convolution become its epilogue") {
    const FusionScope fusion_on(true);
    if (!has_kernel_style(KernelStyle::simd)) return;
    const ops::KernelStyleScope cpu(KernelStyle::simd);
    const Tensor x = random_tensor({2, 3, 6, 7}, 1), filter = random_tensor({4, 3, 3, 3}, 2),
                 residual = random_tensor({2, 4, 6, 7}, 3);
    const Tensor rows = random_tensor({6, 9}, 4), weight = random_tensor({5, 9}, 5), bias = random_tensor({5}, 6);
    const auto convolved = [&] { return relu(conv2d(x, filter, {}, {.padding = 1}) + residual); };
    const auto mapped = [&] { return gelu(linear(rows, weight, bias)); };
    const Tensor second = random_tensor({3, 4, 1, 1}, 7);
    const auto nested = [&] { return conv2d(relu(conv2d(x, filter, {}, {.padding = 1}) + residual), second); };
    const auto too_many_inputs = [&] {  // one input too many with the bias
        Tensor y = linear(rows, weight, bias);
        for (std::uint64_t i = 0; i < 7; ++i) y = y + random_tensor({6, 5}, 20 + i);
        return y;
    };
    const auto reused_result = [&] {
        const Tensor h = linear(rows, weight, bias);
        Tensor y = relu(h);
        materialize(y);
        return y + h;
    };
    const auto both = [&] {
        Tensor y = matmul(rows, transpose(weight));
        y = relu(y) + y;
        return y;
    };
    const auto two_consumers = [&] {
        Tensor y = matmul(rows, transpose(weight)), z = linear(rows, weight);
        y = y * z;
        return y;
    };
    for (const auto& [function, max_launches] :
         std::vector<std::pair<std::function<Tensor()>, int>>{{convolved, 0},
                                                              {nested, 0},
                                                              {mapped, 0},
                                                              {too_many_inputs, 2},
                                                              {reused_result, 3},
                                                              {both, 1},
                                                              {two_consumers, 1}}) {
        std::vector<double> unfused;
        {
            const FusionScope fusion_off(false);
            unfused = values(function());
        }
        std::vector<double> fused;
        CHECK(launches([&] { materialize(function()); }, "elementwise") <= max_launches);
        CHECK(difference(function(), unfused, tolerance(DType::f32, 40)) == "");
    }
}

TEST_CASE("fusion: batch normalisation at inference becomes the scale and shift of the convolution before it") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({2, 3, 6, 7}, 1), filter = random_tensor({5, 3, 3, 3}, 2),
                 residual = random_tensor({2, 5, 6, 7}, 3), depth = random_tensor({3, 1, 3, 3}, 4);
    Tensor weight = random_tensor({5}, 5), bias = random_tensor({5}, 6), mean = random_tensor({5}, 7),
           variance = random_tensor({5}, 8, DType::f32, 0.5, 2);
    const auto net = [&] {
        return relu(
            batch_norm(conv2d(x, filter, {}, {.padding = 1}), weight, bias, mean, variance, {.training = false}) +
            residual);
    };
    const auto unfused_net = [&] {
        const FusionScope fusion_off(false);
        const auto channels = [](const Tensor& t) { return reshape(t, {5, 1, 1}); };
        const Tensor h = conv2d(x, filter, {}, {.padding = 1});
        return values(relu((h - channels(mean)) / sqrt(channels(variance) + 1e-5) * channels(weight) + channels(bias) +
                           residual));
    };
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const NoGrad no_grad;
        CHECK(difference(net(), unfused_net(), tolerance(DType::f32, 60)) == "");
        CHECK(launches([&] { materialize(net()); }, "elementwise") == 0);
        CHECK(launches([&] { materialize(net()); }, "batch_norm_scale") == 0);
        // The folded values are recomputed when any of the four tensors is written.
        for (Tensor* tensor : {&weight, &bias, &mean, &variance}) {
            tensor->mul_(1.25);
            CHECK(difference(net(), unfused_net(), tolerance(DType::f32, 60)) == "");
        }
    }
    {
        // Views of the same statistics are different ones.
        const NoGrad no_grad;
        const Tensor m = random_tensor({8}, 11), v = random_tensor({8}, 12, DType::f32, 0.5, 2),
                     in = random_tensor({2, 8}, 13);
        for (const std::int64_t channels : {1, 4, 8}) {
            const Tensor part = slice(in, 1, 0, channels), mean_part = slice(m, 0, 0, channels),
                         variance_part = slice(v, 0, 0, channels);
            const Tensor expected = (part - mean_part) / sqrt(variance_part + 1e-5);
            CHECK(difference(batch_norm(part, {}, {}, mean_part, variance_part, {.training = false}), values(expected),
                             tolerance(DType::f32, 10)) == "");
        }
    }
    {
        // Cached values hold no reference to other memory: each of the two uses the same variance and mean.
        const NoGrad no_grad;
        const Device device = default_device();
        device.synchronize();
        const auto before = device.memory().in_use;
        {
            const Tensor in = random_tensor({2, 3}, 1), a = random_tensor({3}, 2, DType::f32, 0.5, 2),
                         b = random_tensor({3}, 3, DType::f32, 0.5, 2);
            for (int round = 0; round < 2; ++round) {
                const auto expected = [&](const Tensor& m, const Tensor& v) {
                    return values((in - m) / sqrt(v + 1e-5));
                };
                CHECK(difference(batch_norm(in, {}, {}, a, b, {.training = false}), expected(a, b),
                                 tolerance(DType::f32, 10)) == "");
                CHECK(difference(batch_norm(in, {}, {}, b, a, {.training = false}), expected(b, a),
                                 tolerance(DType::f32, 10)) == "");
                CHECK(difference(batch_norm(in, {}, {}, a, a, {.training = false}), expected(a, a),
                                 tolerance(DType::f32, 10)) == "");
            }
        }
        CHECK(device.memory().in_use == before);
    }
    // With gradients nothing is folded, and the gradient is that of each function.
    weight.set_requires_grad();
    CHECK(difference(net(), unfused_net(), tolerance(DType::f32, 60)) == "");
    sum(square(net())).backward();
    const auto fused = values(weight.grad());
    weight.zero_grad();
    const FusionScope fusion_off(false);
    sum(square(net())).backward();
    CHECK(difference(fused, values(weight.grad()), tolerance(DType::f32, 500)) == "");
    CHECK(std::ranges::any_of(fused, [](double v) { return v != 0; }));
}

TEST_CASE("fusion: batch normalisation in training and its epilogue are one kernel") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({3, 4, 5, 6}, 1), weight = random_tensor({4}, 2), bias = random_tensor({4}, 3);
    std::vector<Tensor> others;
    for (std::uint64_t i = 0; i < 6; ++i) others.push_back(random_tensor({3, 4, 5, 6}, 10 + i));
    const auto plain = [&] { return batch_norm(x, weight, bias, {}, {}); };
    const auto followed = [&] { return relu(batch_norm(x, weight, bias, {}, {}) + others[0]); };
    const auto too_many = [&] {  // one input too many for a kernel
        Tensor y = plain();
        for (const Tensor& other : others) y = y + other;
        return y;
    };
    const auto reused_result = [&] {
        const Tensor h = plain();
        Tensor y = relu(h);
        materialize(y);
        return y - h;
    };
    struct LaunchCounts {
        std::function<Tensor()> function;
        int batch_norm_launches, elementwise_launches;
    };
    for (const auto& [function, batch_norm_launches, elementwise_launches] :
         std::vector<LaunchCounts>{{plain, 1, 0}, {followed, 0, 1}, {too_many, 1, 1}, {reused_result, 1, 2}}) {
        CHECK(launches([&] { materialize(function()); }, "batch_norm") == batch_norm_launches);
        CHECK(launches([&] { materialize(function()); }, "elementwise") == elementwise_launches);
        const Tensor fused = function();
        const FusionScope fusion_off(false);
        CHECK(difference(fused, values(function()), tolerance(DType::f32, 20)) == "");
    }
}

TEST_CASE("fusion: in-place writes defer to pending readers and change none of them") {
    const FusionScope fusion_on(true);
    Tensor x = random_tensor({12}, 1), w = random_tensor({5, 12}, 2);
    const auto before = values(x);
    std::vector<double> doubled = before;
    for (double& v : doubled) v *= 2;
    SUBCASE("elementwise") {
        const Tensor y = x * 2;
        x.fill_(0);
        CHECK(values(y) == doubled);
    }
    SUBCASE("through an alias") {
        const Tensor y = x * 2;
        Tensor same = reshape(x, {3, 4});
        same.fill_(0);
        CHECK(values(y) == doubled);
    }
    SUBCASE("below another value") {
        const Tensor y = x * 2, z = y + 1.0;
        x.fill_(0);
        for (double& v : doubled) v += 1;
        CHECK(difference(z, doubled, tolerance(DType::f32, 2)) == "");
    }
    SUBCASE("of a value evaluated in between") {
        Tensor y = x * 2;
        const Tensor z = y + 1.0;
        materialize(y);
        y.fill_(0);
        for (double& v : doubled) v += 1;
        CHECK(difference(z, doubled, tolerance(DType::f32, 2)) == "");
    }
    SUBCASE("product and convolution") {
        std::vector<double> expected;
        {
            const FusionScope fusion_off(false);
            expected = values(linear(reshape(x, {1, 12}), w));
        }
        const Tensor y = linear(reshape(x, {1, 12}), w);
        SUBCASE("the weight") { w.fill_(0); }
        SUBCASE("the input") { x.add_(x); }
        CHECK(values(y) == expected);
    }
    SUBCASE("by a user's kernel") {
        const Tensor y = x * 2;
        ops::fill(x.view(), 7);
        x.bump_version();
        CHECK(values(y) == doubled);
        CHECK(values(x) == std::vector<double>(12, 7));
    }
}

TEST_CASE("fusion: overwritten saved tensors are detected, evaluated or pending") {
    const FusionScope fusion_on(true);
    for (const bool computed : {false, true}) {
        CAPTURE(computed);
        Tensor x = random_tensor({6}, 1);
        x.set_requires_grad();
        Tensor y = exp(x);
        if (computed) materialize(y);
        const Tensor loss = sum(y);
        y.detach().fill_(1);
        CHECK_THROWS_AS(loss.backward(), ValueError);
    }
    // A write before it was saved is allowed.
    Tensor x = random_tensor({6}, 1);
    x.mul_(2);
    const auto in = values(x);
    x.set_requires_grad();
    sum(exp(x)).backward();
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(values(x.grad())[i] == doctest::Approx(std::exp(in[i])));
}

TEST_CASE("fusion: several threads evaluate the same values") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({1000}, 1);
    const auto in = values(x);
    for (int round = 0; round < (small_cases() ? 1 : 20); ++round) {
        const Tensor h = x * 2, y = h + 1.0;
        for (const std::string& fault : run_in_threads(4, [&](int thread) -> std::string {
                 const Tensor incremented = y + static_cast<double>(thread);
                 const auto got = values(incremented), shared = values(h);
                 for (std::size_t i = 0; i < in.size(); ++i)
                     if (std::abs(got[i] - (in[i] * 2 + 1 + thread)) > 1e-5 || shared[i] != in[i] * 2)
                         return "a wrong value";
                 return "";
             }))
            CHECK(fault == "");
    }
}

namespace {

/// A random program over tensors: functions, reads, released values, in-place writes. Returns all remaining values.
std::vector<std::vector<double>> random_program(unsigned seed, int steps) {
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    const std::array<Shape, 4> shapes{Shape{4, 6}, Shape{6}, Shape{4, 1}, Shape{4, 6}};
    std::vector<Tensor> all;
    for (std::uint64_t i = 0; i < 5; ++i) all.push_back(random_tensor(shapes[i % 4], seed + i));
    const Tensor square = random_tensor({6, 6}, seed + 9);
    for (int step = 0; step < steps; ++step) {
        const Tensor a = all[pick(all.size())], b = all[pick(all.size())];
        Tensor& slot = all[pick(all.size())];
        switch (pick(14)) {
            case 0:
                all.push_back(a + b);
                break;
            case 1:
                all.push_back(a * b);
                break;
            case 2:
                slot = relu(a) - b;
                break;
            case 3:
                slot = tanh(a);
                break;
            case 4:
                all.push_back(maximum(a, b * 0.5));
                break;
            case 5:
                slot = where(less(a, b), a, b);
                break;
            case 6:
                slot = (clamp(a, -2, 2) * 0.0 + 3.5).to(DType::i32).to(DType::f32) + a;
                break;  // avoids points where rounding changes the result
            case 7:
                (void)values(a);
                break;
            case 8:
                slot = slot.clone().mul_(0.75);
                break;
            case 9: {
                Tensor same = slot.detach();
                same.fill_(0.125 * static_cast<double>(pick(9)));
                break;
            }
            case 10:
                all.push_back(a.rank() == 2 && a.size(1) == 6 ? relu(matmul(a, square) * 0.25) : -a);
                break;
            case 11:
                all.push_back(clamp(sum(a) * 0.05, -1, 1) + a);
                break;
            case 12:
                if (all.size() > 4) all.erase(all.begin() + static_cast<std::ptrdiff_t>(pick(all.size())));
                break;
            default:
                all.push_back(sigmoid(a) + b.detach());
                break;
        }
        if (all.size() > 12) all.erase(all.begin(), all.begin() + 4);
    }
    std::vector<std::vector<double>> out;
    for (const Tensor& item : all) out.push_back(values(item));
    return out;
}

}  // namespace

TEST_CASE("fusion: random programs give the same numbers with and without it") {
    for (unsigned seed = 1; seed <= (small_cases() ? 2 : 60); ++seed) {
        CAPTURE(seed);
        std::vector<std::vector<double>> fused, unfused;
        {
            const FusionScope fusion_on(true);
            fused = random_program(seed, small_cases() ? 12 : 40);
        }
        {
            const FusionScope fusion_off(false);
            unfused = random_program(seed, small_cases() ? 12 : 40);
        }
        REQUIRE(fused.size() == unfused.size());
        for (std::size_t i = 0; i < fused.size(); ++i)
            CHECK(difference(fused[i], unfused[i], tolerance(DType::f32, 1000)) == "");
    }
}

TEST_CASE("fusion: the gradient of an activation before max pooling is the epilogue of the convolution's backward") {
    if (!ops::fuses()) return;
    const Tensor x = random_tensor({2, 3, 18, 18}, 1), first = random_tensor({4, 3, 3, 3}, 2).set_requires_grad(),
                 second = random_tensor({5, 4, 3, 3}, 3).set_requires_grad();
    const auto backward = [&] {
        const Tensor y = sum(conv2d(max_pool2d(relu(conv2d(x, first))), second));
        x.device().synchronize();
        Profiler profiler(x.device());
        y.backward();
        profiler.stop();
        std::int64_t elementwise = 0;
        for (const auto& row : profiler.rows()) elementwise += row.name == "elementwise" ? row.calls : 0;
        return elementwise;
    };
    (void)backward();
    CHECK(backward() <= 3);  // the broadcast gradient of the sum, and two accumulations
}
