// Deferred batched launches: sums of partial gradients, and statistics of batch normalisation. The numbers are the same
// as without.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/ops/batch_norm.hpp>
#include <declivity/ops/conv2d.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/ops/optim/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/launches.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/engine/fusion.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/engine/partial_sums.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::FusionScope;
using ops::KernelStyleScope;

namespace {

/// Summed in double, in the order of k.
std::vector<double> summed(const Tensor& partials) {
    const std::vector<double> all = values(partials);
    std::vector<double> sums(static_cast<std::size_t>(partials.size(1)));
    for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
    return sums;
}

/// Residual blocks with shortcuts of several sizes, as in K. He et al. 2015.
struct Block : nn::Layer {
    Block(std::int64_t in, std::int64_t out, std::int64_t stride)
        : first(add("first", nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}))),
          first_norm(add("first_norm", nn::BatchNorm(out))),
          second(add("second", nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}))),
          second_norm(add("second_norm", nn::BatchNorm(out))) {
        if (in != out)
            shortcut = &add("shortcut", nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}),
                                                       nn::BatchNorm(out)));
    }
    Tensor forward(Tensor x) override {
        const Tensor y = second_norm(second(relu(first_norm(first(x)))));
        return relu(y + (shortcut != nullptr ? (*shortcut)(x) : x));
    }

    nn::Conv2d& first;
    nn::BatchNorm& first_norm;
    nn::Conv2d& second;
    nn::BatchNorm& second_norm;
    nn::Sequential* shortcut = nullptr;
};

}  // namespace

TEST_CASE("pending: batched sums of partial results, in both kernel styles") {
    for (const KernelStyle style : kernel_styles())
        for (const DType dtype : floats())
            for (const std::int64_t count : {1, 3, 50}) {  // more than one launch supports
                if (small_cases() && count > 3) continue;
                CAPTURE(count);
                CAPTURE(static_cast<int>(style));
                std::vector<Tensor> partials, results;
                std::vector<ops::SplitKPartial> sums;
                const Tensor memory = full({6000}, 7, {dtype});
                for (std::int64_t i = 0; i < count; ++i) {
                    const std::int64_t elements = i % 3 == 0 ? 1 + i : i % 3 == 1 ? 256 + i : 777;
                    partials.push_back(random_tensor({1 + i % 5, elements}, static_cast<std::uint64_t>(i), dtype));
                    if (i == 1) results.push_back(Tensor(copy_on_device(default_device(), dtype, {elements})));
                    else
                        results.push_back(i % 2 == 0 || count > 3 ? zeros({elements}, {dtype})
                                                                  : slice(memory, 0, 1000 * i, 1000 * i + elements));
                    sums.push_back({partials.back().view(), results.back().view()});
                }
                // All partials are in one memory object, except separate ones; or, for a memory checker, each is
                // separate.
                const int launch_count = launches([&] { ops::reduce_partials(sums, style); }, "sum_partials");
                CHECK(launch_count >= (count > 22 ? 3 : 1));
                if (!small_cases()) CHECK(launch_count <= (count > 22 ? 6 : 2));
                for (std::size_t i = 0; i < sums.size(); ++i)
                    CHECK(difference(results[i], summed(partials[i]), tolerance(dtype, 5)) == "");
                const std::vector<double> memory_values = values(memory);
                CHECK(memory_values[999] == 7);
                CHECK(memory_values[5999] == 7);
            }
}

TEST_CASE("pending: sums of partial results are batched, and any use of one launches all") {
    const FusionScope fusion_on(true);
    const Tensor a = random_tensor({3, 20}, 1), b = random_tensor({2, 300}, 2),
                 c = random_tensor({4, 6}, 3, device().info().fp64 ? DType::f64 : DType::f32);
    const auto sum_of = [](const Tensor& partials, const Shape& shape) {
        return Tensor(ops::lazy_reduce_partials(partials.view(), shape, partials.dtype()));
    };
    Tensor x, y, z;
    CHECK(launches([&] { x = sum_of(a, {4, 5}), y = sum_of(b, {300}), z = sum_of(c, {6}); }) == 0);
    CHECK(ops::is_batched(x.value()));
    CHECK(launches([&] { materialize(y); }) == 1);
    CHECK(x.value().computed());
    CHECK(!ops::is_batched(x.value()));
    CHECK(z.value().computed() == (c.dtype() == DType::f32));  // of another type
    CHECK(launches([&] { materialize(x), materialize(y); }) == 0);
    CHECK(difference(x, summed(a), tolerance(DType::f32, 3)) == "");
    CHECK(difference(y, summed(b), tolerance(DType::f32, 2)) == "");
    CHECK(difference(z, summed(c), tolerance(c.dtype(), 4)) == "");
    // An input of an expression, and a dropped sum.
    CHECK(launches([&] { materialize(sum_of(a, {20}) * 2.0); }, "sum_partials") == 1);
    CHECK(launches([&] { (void)sum_of(a, {20}), materialize(sum_of(b, {300})); }) == 1);
    Tensor doubled = sum_of(a, {20}) + sum_of(a, {20});
    std::vector<double> expected = summed(a);
    for (double& value : expected) value *= 2;
    CHECK(difference(doubled, expected, tolerance(DType::f32, 3)) == "");
    // Per thread.
    x = sum_of(a, {20});
    for (const std::string& fault :
         run_in_threads(2, [&](int) { return difference(sum_of(b, {300}), summed(b), tolerance(DType::f32, 2)); }))
        CHECK(fault == "");
    if (!small_cases()) CHECK(ops::is_batched(x.value()));
    for (const std::string& fault :
         run_in_threads(2, [&](int) { return difference(x, summed(a), tolerance(DType::f32, 3)); }))
        CHECK(fault == "");
    // Deferred sums must not hold too much memory. (A memory checker becomes slow after it has seen a large array.)
    if (!small_cases()) {
        const Tensor large = zeros({3, 1000000});
        CHECK(sum_of(large, {1000000}).value().computed());
    }
    // A write to a deferred sum's input launches it first.
    const FusionScope fusion_off(false);
    CHECK(sum_of(a, {20}).value().computed());
}

TEST_CASE("pending: gradients of filters are reduced in one launch, when the first is read") {
    if (small_cases()) return;  // of convolutions, which have their own cases
    const Tensor x = random_tensor({6, 3, 12, 12}, 1);
    nn::Sequential net(nn::Conv2d(3, 5, 3, {.padding = 1}), nn::ReLU(), nn::Conv2d(5, 4, 3), nn::ReLU(),
                       nn::Conv2d(4, 6, 3, {.stride = 2}));
    const auto parameters = net.parameters();
    const auto gradients = [&](bool fused) {
        const FusionScope scope(fused);
        std::vector<std::vector<float>> all;
        net.zero_grad();
        const int partial_sum_launches = launches([&] { sum(square(net(x))).backward(); }, "sum_partials");
        if (!fused) CHECK(partial_sum_launches >= 2);
        else CHECK(partial_sum_launches == 0);
        if (fused) CHECK(launches([&] { (void)parameters[2].grad().view(); }, "sum_partials") == 1);
        for (const Tensor& parameter : parameters) all.push_back(parameter.grad().to_vector<float>());
        if (fused)
            CHECK(launches([&] {
                      for (const Tensor& parameter : parameters) (void)parameter.grad().view();
                  }) == 0);
        // Accumulated once more, also while the first sums are still deferred.
        net.zero_grad();
        sum(square(net(x))).backward();
        sum(square(net(x))).backward();
        for (const Tensor& parameter : parameters) all.push_back(parameter.grad().to_vector<float>());
        optim::SGD sgd(parameters, {.lr = 0.0});
        net.zero_grad();
        sum(square(net(x))).backward();
        if (fused) CHECK(launches([&] { sgd.step(); }, "sum_partials") == 1);
        net.zero_grad();
        sum(square(net(x))).backward();
        if (fused)
            CHECK(launches([&] { all.push_back(optim::clip_grad_norm(parameters, 0.5).to_vector<float>()); },
                           "sum_partials") == 1);
        else all.push_back(optim::clip_grad_norm(parameters, 0.5).to_vector<float>());
        for (const Tensor& parameter : parameters) all.push_back(parameter.grad().to_vector<float>());
        return all;
    };
    CHECK(gradients(true) == gradients(false));
}

TEST_CASE(
    "pending: batch_norm in training: statistics, normalisation and epilogue are one kernel, with the same bits") {
    struct Size {
        Shape x;
        bool single_kernel;  // one kernel, on simd devices with few units
    };
    const std::vector<Size> sizes{{{2, 5, 17, 16}, true}, {{3, 16, 8, 8}, true}, {{5, 13, 10, 7}, true},
                                  {{2, 9, 5, 7}, true},   {{2, 3, 300}, true},   {{4, 9, 3, 3}, false},
                                  {{6, 4}, false}};
    struct KernelEpilogue {
        const char* name;
        std::function<Tensor(Tensor, const Tensor&)> function;
    };
    const std::vector<KernelEpilogue> epilogues{
        {"none", [](Tensor y, const Tensor&) { return y; }},
        {"relu", [](Tensor y, const Tensor&) { return relu(std::move(y)); }},
        {"residual", [](Tensor y, const Tensor& r) { return relu(std::move(y) + r); }},
        {"sigmoid", [](Tensor y, const Tensor&) { return sigmoid(std::move(y)); }},
        {"square", [](Tensor y, const Tensor& r) { return square(std::move(y)) * r; }}};
    for (const KernelStyle style : kernel_styles())
        for (const Size& size : sizes)
            for (const KernelEpilogue& epilogue : epilogues)
                for (const DType dtype : floats()) {
                    if (small_cases() && (size.x.numel() > 1900 || dtype == DType::f64 ||
                                          (std::string(epilogue.name) != "residual" &&
                                           (size.x.rank() != 3 || std::string(epilogue.name) != "sigmoid"))))
                        continue;
                    const KernelStyleScope scope(style);
                    CAPTURE(size.x.str());
                    CAPTURE(epilogue.name);
                    CAPTURE(static_cast<int>(style));
                    const bool affine = size.x[0] != 5;
                    const Tensor x = random_tensor(size.x, 1, dtype, -1, 3), residual = random_tensor(size.x, 2, dtype);
                    const Shape channels{size.x[1]};
                    const Tensor weight = affine ? random_tensor(channels, 3, dtype) : Tensor(),
                                 bias = affine ? random_tensor(channels, 4, dtype) : Tensor();
                    const auto run = [&](bool fused, bool read_early) {
                        const FusionScope fusion_on(fused);
                        const Tensor mean = random_tensor(channels, 5, dtype),
                                     variance = random_tensor(channels, 6, dtype, 0.5, 1);
                        std::vector<std::vector<double>> out;
                        Tensor y = batch_norm(x, weight, bias, mean, variance, {.training = true});
                        if (read_early) out = {values(mean), values(variance)};
                        int launch_count = 0;
                        launch_count = launches(
                            [&, y = std::move(y)]() mutable {
                                out.push_back(values(epilogue.function(std::move(y), residual)));
                            },
                            "");
                        if (!read_early) out.insert(out.begin(), {values(mean), values(variance)});
                        const bool few_units = default_device().info().compute_units <= 2 && style == KernelStyle::simd;
                        if (fused && !read_early && size.single_kernel && few_units &&
                            std::string(epilogue.name) != "square")
                            CHECK(launch_count == 1);
                        return out;
                    };
                    const auto expected = run(false, false);
                    const Tolerance allowed = tolerance(dtype, 4);
                    for (const bool read_early : {false, true}) {
                        const auto got = run(true, read_early);
                        CHECK(got[0] == expected[0]);
                        CHECK(got[1] == expected[1]);
                        CHECK(difference(got[2], expected[2], allowed) == "");
                    }
                }
}

TEST_CASE("pending: deferred running statistics are visible to every reader, and count each batch once") {
    const Shape size = small_cases() ? Shape{2, 3, 5, 7} : Shape{4, 3, 16, 16};
    const Tensor x = random_tensor(size, 1, DType::f32, 0, 2), other = random_tensor(size, 2);
    const auto after = [&](bool fused,
                           const std::function<std::vector<float>(nn::BatchNorm&, const Tensor&)>& consumer) {
        const FusionScope scope(fused);
        nn::BatchNorm norm(3);
        const Tensor mean = norm.named_buffers()[0].tensor;
        return consumer(norm, mean);
    };
    const std::vector<std::function<std::vector<float>(nn::BatchNorm&, const Tensor&)>> consumers{
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            (void)norm(x);
            return mean.to_vector<float>();
        },  // its result is unused
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor y = norm(x);
            return mean.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor y = norm(x), doubled = mean * 2.0;
            materialize(y);
            return doubled.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor before = mean * 2.0, y = norm(x);
            materialize(y);
            return before.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor part = slice(mean, 0, 1, 3), y = norm(x);
            return part.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor same = mean.detach(), y = norm(x);
            return same.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor y = norm(x), z = norm(other), w = norm(x);
            materialize(z), materialize(y);
            return mean.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, Tensor mean) {
            const Tensor y = norm(x);
            {
                const NoGrad none;
                mean.mul_(0.5);
            }
            materialize(y);
            return mean.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, Tensor mean) {
            const Tensor y = norm(x);
            {
                const NoGrad none;
                mean.fill_(3);
            }
            return y.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor&) {
            const Tensor y = norm(x);
            norm.eval();
            const NoGrad none;
            return norm(other).to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor&) {
            Tensor in = x.clone();
            const Tensor y = norm(in);
            in.fill_(0);
            return y.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            Tensor in = x.clone();
            (void)norm(in);
            in.fill_(0);
            return mean.to_vector<float>();
        },
        [&](nn::BatchNorm& norm, const Tensor& mean) {
            const Tensor y = norm(x);
            return mean.clone().to_vector<float>();
        },
    };
    for (std::size_t i = 0; i < consumers.size(); i += small_cases() ? 4 : 1) {
        CAPTURE(i);
        CHECK(after(true, consumers[i]) == after(false, consumers[i]));
    }
    // They keep neither the layer's memory alive nor, once launched, the input's.
    const FusionScope fusion_on(true);
    default_device().synchronize();
    const auto in_use = [] { return default_device().memory().in_use; };
    const auto before = in_use();
    {
        nn::BatchNorm norm(3);
        (void)norm(x);
    }
    CHECK(in_use() == before);
    nn::BatchNorm norm(3);
    const auto with_layer = in_use();
    materialize(norm(x.clone()));
    CHECK(in_use() == with_layer);
}

TEST_CASE("pending: Winograd transforms its weights on its own in training, with the same bits") {
    if (!has_kernel_style(KernelStyle::simd)) return;
    const auto& strategy = ops::conv2d_winograd4();
    for (const ops::Conv2dDirection direction : {ops::Conv2dDirection::forward, ops::Conv2dDirection::backward_input})
        for (const auto& [channels, filters] : {std::pair{3, 5}, std::pair{18, 7}, std::pair{2, 99}}) {
            if (small_cases() && (filters > 5 || direction != ops::Conv2dDirection::forward)) continue;
            const std::int64_t units = default_device().info().compute_units,
                               rows = 37 * units;  // three units of tiles for each compute unit
            const ops::Conv2dProblem problem =
                ops::conv2d_problem("test", direction, DType::f32, KernelStyle::simd, {1, channels, rows, 53},
                                    {filters, channels, 3, 3}, {.padding = {1, 1}});
            Tensor x = random_tensor({1, channels, rows, 53}, 1), out = random_tensor({1, filters, rows, 53}, 3);
            const Tensor weight = random_tensor({filters, channels, 3, 3}, 2);
            Tensor& result = direction == ops::Conv2dDirection::forward ? out : x;
            const auto run = [&](bool fused) {
                const FusionScope scope(fused);
                CHECK(launches([&] {
                          strategy.run(problem, {x.view(), weight.view(), out.view()});
                      }) == (fused ? 1 : 2));
                return result.to_vector<float>();
            };
            CAPTURE(channels);
            const auto expected = run(false);
            result.fill_(0);
            CHECK(run(true) == expected);
        }
}

TEST_CASE("pending: a training step of ResNet-20 takes at most half the launches of unfused functions") {
    if (small_cases()) return;
    const auto make = [] {
        auto net = std::make_unique<nn::Sequential>(nn::Conv2d(3, 16, 3, {.padding = 1, .bias = false}),
                                                    nn::BatchNorm(16), nn::ReLU());
        std::int64_t in = 16;
        for (const std::int64_t out : {16, 32, 64})
            for (int block = 0; block < 3; ++block, in = out) net->append(Block(in, out, in == out ? 1 : 2));
        net->append(nn::GlobalAvgPool2d());
        net->append(nn::Flatten());
        net->append(nn::Linear(64, 10));
        return net;
    };
    const auto net = make();
    const Tensor images = random_tensor({64, 3, 32, 32}, 1);
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < 64; ++i) classes.push_back(i * 7 % 10);
    const Tensor labels = Tensor::from(classes, {64});
    optim::SGD optimizer(net->parameters(), {.lr = 0.01, .momentum = 0.9});
    const auto step = [&](bool fused) {
        const FusionScope scope(fused);
        optimizer.zero_grad();
        cross_entropy((*net)(images), labels).backward();
        optimizer.step();
    };
    step(true);
    const int fused = launches([&] { step(true); }), separate = launches([&] { step(false); });
    CAPTURE(fused);
    CAPTURE(separate);
    CHECK(fused < separate);
    // With more compute units sums are split, which takes more kernels.
    if (default_device().kernel_style() == KernelStyle::simd && default_device().info().compute_units <= 2) {
        CHECK(2 * fused <= separate);
        CHECK(fused <= 121);
    }
}
