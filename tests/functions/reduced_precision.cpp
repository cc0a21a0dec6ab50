// f16 and bf16 tensors: created, read, printed, cast with gradients; functions that compute in f32, and errors.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr DType kReducedPrecision[] = {DType::f16, DType::bf16};

std::vector<double> rounded(std::vector<double> values, DType dtype) {
    for (double& value : values) value = as_type(value, dtype);
    return values;
}

std::string body(const Tensor& x) {
    const std::string text = x.str();
    return text.substr(text.find('\n') + 1);
}

}  // namespace

TEST_CASE("reduced precision: created, filled, read and printed") {
    const Tensor x = Tensor::from<float16>({float16(1.5), float16(-2), float16(0.1)}, {3});
    CHECK(x.dtype() == DType::f16);
    CHECK(static_cast<float>(x.to_vector<float16>()[2]) == as_type(0.1, DType::f16));
    CHECK_THROWS_WITH_AS(x.to_vector<float>(), "to_vector: expected the tensor's type, f16, got f32", TypeError);
    CHECK_THROWS_WITH_AS(x.to_vector<bfloat16>(), "to_vector: expected the tensor's type, f16, got bf16", TypeError);
    CHECK(x.str() == "Tensor(f16, [3], '" + device().name() + "')\n[ 1.5000, -2.0000,  0.1000]");
    CHECK(body(full({2}, 0.1, {DType::bf16})) == "[0.1001, 0.1001]");
    CHECK(body(full({2}, 1e6, {DType::f16})) == "[inf, inf]");
    for (const DType dtype : kReducedPrecision) {
        CHECK(values(full({3}, 0.3, {dtype})) == std::vector<double>(3, as_type(0.3, dtype)));
        CHECK(values(zeros({2}, {dtype})) == std::vector<double>{0, 0});
        CHECK(values(ones_like(full({2}, 3, {dtype}))) == std::vector<double>{1, 1});
        CHECK(ones_like(zeros({2}, {dtype})).dtype() == dtype);
        CHECK(values(arange(0, 3, 0.7, {dtype})) ==
              rounded({0, static_cast<double>(0.7F), static_cast<double>(2 * 0.7F), static_cast<double>(3 * 0.7F),
                       static_cast<double>(4 * 0.7F)},
                      dtype));
        Tensor room = zeros({4, 3}, {dtype});
        Tensor column = slice(room, 1, 1, 2);
        column.fill_(0.3);
        CHECK(values(room)[4] == as_type(0.3, dtype));
        CHECK(values(room)[5] == 0);
        room.mul_(3).add_(room);
        CHECK(values(room)[1] == as_type(2 * as_type(3 * as_type(0.3, dtype), dtype), dtype));
        const auto random = values(uniform({1000}, 2, 3, {dtype}));
        for (const double value : random) CHECK_UNARY(value >= 2 && value <= 3 && value == as_type(value, dtype));
        CHECK(values(normal({50}, 5, 0, {dtype})) == std::vector<double>(50, 5));
        const Tensor other_value = zeros({2, 3}, {dtype});
        CHECK_THROWS_AS(Tensor(other_value).copy_(zeros({2, 3})), TypeError);
    }
    CHECK(static_cast<float>(full({}, 7, {DType::bf16}).item<bfloat16>()) == 7);
}

TEST_CASE("reduced precision: shape functions move bytes") {
    for (const DType dtype : kReducedPrecision) {
        const Tensor x = random_tensor({3, 4, 5}, 1, dtype);
        const auto v = values(x);
        const auto permuted = values(permute(x, {2, 0, 1}).clone());
        for (std::size_t i = 0; i < 60; ++i) CHECK_UNARY(permuted[i] == v[i % 12 * 5 + i / 12]);
        CHECK(values(reshape(transpose(reshape(transpose(x).clone(), {3, 5, 4})), {60})) == v);
        CHECK(values(concat({slice(x, 1, 0, 1), slice(x, 1, 1, 4)}, 1)) == v);
        CHECK(values(slice(pad(x, {1, 0, 2}, {0, 1, 1}, 0.1), 0, 1, 4))[2] == v[0]);
        CHECK(values(pad(x, {1, 0, 2}, {0, 1, 1}, 0.1))[0] == as_type(0.1, dtype));
        CHECK(values(expand(slice(x, 0, 1, 2), {2, 4, 5}).clone())[20] == v[20]);
    }
}

TEST_CASE("reduced precision: the gradient of a cast is cast back") {
    for (const DType dtype : kReducedPrecision) {
        Tensor x = Tensor::from<float>({0.3F, -1.7F, 2}, {3}).set_requires_grad();
        const Tensor reduced = x.to(dtype);
        CHECK(reduced.requires_grad());
        sum(square(reduced)).backward();
        CHECK(x.grad().dtype() == DType::f32);
        std::vector<double> expected;
        for (const double value : {0.3F, -1.7F, 2.0F}) expected.push_back(2 * as_type(value, dtype));
        CHECK(values(x.grad()) == expected);
        Tensor leaf = reduced.detach().clone().set_requires_grad();
        (sum(leaf.to(DType::f32) * 1.1)).backward();
        CHECK(leaf.grad().dtype() == dtype);
        CHECK(values(leaf.grad()) == std::vector<double>(3, as_type(1.1F, dtype)));
        // Gradients of a leaf accumulate in its type.
        sum(leaf * 2).backward();
        CHECK(values(leaf.grad()) == std::vector<double>(3, as_type(as_type(1.1F, dtype) + 2, dtype)));
        CHECK_THROWS_AS(sum(leaf).backward(ones({})), TypeError);
    }
}

TEST_CASE("reduced precision: functions without 16-bit kernels compute in f32 and round once") {
    const Tensor labels = Tensor::from<std::int64_t>({1, 0, 4}, {3});
    struct Case {
        const char* name;
        std::function<Tensor(const Tensor& x, const Tensor& y)> call;
    };
    const Case cases[] = {
        {"softmax", [](const Tensor& x, const Tensor&) { return softmax(x); }},
        {"log_softmax", [](const Tensor& x, const Tensor&) { return log_softmax(x, 0); }},
        {"cross_entropy", [&](const Tensor& x, const Tensor&) { return cross_entropy(x, labels); }},
        {"cross_entropy, a loss for each",
         [&](const Tensor& x, const Tensor&) { return cross_entropy(x, labels, {.reduction = Reduction::none}); }},
        {"mse_loss", [](const Tensor& x, const Tensor& y) { return mse_loss(x * 100, y * 100); }},
        {"bce_with_logits", [](const Tensor& x, const Tensor& y) { return bce_with_logits(x, y); }},
        {"batch_norm", [](const Tensor& x, const Tensor&) { return batch_norm(x, {}, {}, {}, {}); }},
        {"dropout",
         [](const Tensor& x, const Tensor&) {
             manual_seed(3);
             return dropout(x, 0.4);
         }},
        {"mean", [](const Tensor& x, const Tensor&) { return mean(x, {0}); }},
        {"max", [](const Tensor& x, const Tensor&) { return max(x, {1}); }},
    };
    for (const Case& test_case : cases)
        for (const DType dtype : kReducedPrecision) {
            if (small_cases() && dtype == DType::bf16) continue;
            CAPTURE(test_case.name);
            CAPTURE(name_of(dtype));
            Tensor x = random_tensor({3, 5}, 1, dtype, -2, 2), y = random_tensor({3, 5}, 2, dtype, 0, 1);
            Tensor upcast = x.to(DType::f32);
            x.set_requires_grad();
            upcast.set_requires_grad();
            const Tensor got = test_case.call(x, y), exact = test_case.call(upcast, y.to(DType::f32));
            CHECK(got.dtype() == dtype);
            // Within half an ulp if an intermediate result was rounded too (mse_loss of products).
            const double unit = dtype == DType::f16 ? 0x1p-10 : 0x1p-7;
            CHECK(difference(got, values(exact),
                             {.absolute = 1e-7,
                              .relative = test_case.name == std::string("mse_loss") ? 2 * unit : unit / 2 * 1.001}) ==
                  "");
            sum(got).backward();
            sum(exact).backward();
            CHECK(x.grad().dtype() == dtype);
            // Backward uses the rounded result (softmax).
            CHECK(difference(x.grad(), values(upcast.grad()), {.absolute = unit / 4, .relative = 4 * unit}) == "");
        }
    // The squares overflow f16, their mean does not.
    CHECK(static_cast<float>(mse_loss(Tensor::from<float16>({float16(300), float16(0), float16(0), float16(0)}, {4}),
                                      zeros({4}, {DType::f16}))
                                 .item<float16>()) == 22496);
    CHECK(mse_loss(zeros({2}, {DType::f16}), zeros({2}, {DType::bf16})).dtype() == DType::f32);
    CHECK(mse_loss(zeros({2}, {DType::f16}), zeros({2})).dtype() == DType::f32);
    CHECK(argmax(Tensor::from<bfloat16>({bfloat16(1), bfloat16(3), bfloat16(2)}, {3})).item<std::int64_t>() == 1);
}

TEST_CASE("reduced precision: batch_norm with running statistics of either type") {
    const Tensor x = random_tensor({6, 3, 4}, 1, DType::f16, -1, 3);
    Tensor mean = zeros({3}), variance = ones({3}), reduced_mean = zeros({3}, {DType::f16}),
           reduced_variance = ones({3}, {DType::f16});
    const Tensor weight = full({3}, 2, {DType::f16}), bias = full({3}, 0.5, {DType::f16});
    const Tensor with_f32 = batch_norm(x, weight, bias, mean, variance),
                 with_f16 = batch_norm(x, weight, bias, reduced_mean, reduced_variance);
    CHECK(with_f32.dtype() == DType::f16);
    CHECK(values(with_f32) == values(with_f16));
    Tensor expected_mean = zeros({3}), expected_variance = ones({3});
    (void)batch_norm(x.to(DType::f32), weight.to(DType::f32), bias.to(DType::f32), expected_mean, expected_variance);
    CHECK(values(mean) == values(expected_mean));
    CHECK(values(variance) == values(expected_variance));
    CHECK(values(reduced_mean) == rounded(values(expected_mean), DType::f16));
    CHECK(values(reduced_variance) == rounded(values(expected_variance), DType::f16));
    CHECK(values(reduced_mean)[0] != 0);
    (void)batch_norm(x, weight, bias, reduced_mean, reduced_variance, {.training = false});
    CHECK(values(reduced_mean) == rounded(values(expected_mean), DType::f16));
}

TEST_CASE("reduced precision: products and their gradients") {
    for (const DType dtype : kReducedPrecision) {
        if (small_cases() && dtype == DType::bf16) continue;
        Tensor x = random_tensor({2, 3, 7}, 1, dtype), w = random_tensor({5, 7}, 2, dtype),
               b = random_tensor({5}, 3, dtype);
        Tensor upcast_x = x.to(DType::f32), upcast_w = w.to(DType::f32), upcast_b = b.to(DType::f32);
        for (Tensor* leaf : {&x, &w, &b, &upcast_x, &upcast_w, &upcast_b}) leaf->set_requires_grad();
        const Tensor got = linear(x, w, b), exact = linear(upcast_x, upcast_w, upcast_b);
        const double unit = dtype == DType::f16 ? 0x1p-10 : 0x1p-7;
        CHECK(got.dtype() == dtype);
        CHECK(difference(got, values(exact), {.absolute = 1e-6, .relative = unit / 2 * 1.001}) == "");
        sum(got).backward();
        sum(exact).backward();
        for (const auto& [reduced, upcast] : {std::pair{&x, &upcast_x}, {&w, &upcast_w}, {&b, &upcast_b}}) {
            CHECK(reduced->grad().dtype() == dtype);
            CHECK(difference(reduced->grad(), values(upcast->grad()),
                             {.absolute = 1e-6, .relative = unit / 2 * 1.001}) == "");
        }
        CHECK_THROWS_WITH_AS(
            matmul(x, transpose(upcast_w)),
            ("matmul: expected a and b of one type, got " + std::string(name_of(dtype)) + " and f32").c_str(),
            TypeError);
    }
}

TEST_CASE("reduced precision: convolution, pooling and optimizers") {
    const Tensor x = ones({1, 1, 4, 4}, {DType::f16}), weight = ones({1, 1, 2, 2}, {DType::f16});
    CHECK(values(conv2d(x, weight)) == std::vector<double>(9, 4));
    CHECK(conv2d(x, weight).dtype() == DType::f16);
    CHECK(values(conv_transpose2d(x, weight))[6] == 4);
    CHECK(conv_transpose2d(x, weight).dtype() == DType::f16);
    CHECK_THROWS_AS(conv2d(x, weight.to(DType::f32)), TypeError);
    CHECK(max_pool2d(x).dtype() == DType::f16);
    CHECK(avg_pool2d(x.to(DType::bf16)).dtype() == DType::bf16);
    CHECK(global_avg_pool2d(x).dtype() == DType::f16);
    Tensor parameter = zeros({3}, {DType::bf16});
    parameter.set_requires_grad();
    CHECK_NOTHROW(optim::SGD({parameter}, {.lr = 0.1}));
}
