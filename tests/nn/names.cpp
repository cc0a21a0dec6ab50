// Names of other libraries that users type.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <declivity/autograd/autograd.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;

TEST_CASE("BatchNorm1d, 2d and 3d: BatchNorm with a check of the number of axes") {
    const Shape shapes[] = {{4, 3}, {4, 3, 5}, {4, 3, 2, 3}, {2, 3, 2, 2, 3}, {2, 3, 2, 2, 2, 2}};
    const auto check = [&](auto make, const std::string& name, std::vector<std::size_t> accepted,
                           const std::string& expected_shape) {
        for (const bool training : {true, false})
            for (std::size_t i = 0; i < std::size(shapes); ++i) {
                CAPTURE(shapes[i].str());
                auto layer = make();
                nn::BatchNorm plain(3);
                layer.train(training);
                plain.train(training);
                CHECK(layer.type_name() == name);
                CHECK(layer.not_capture_safe().empty());
                CHECK(layer.state_dict().size() == 5);
                const Tensor x = test::random_tensor(shapes[i], i);
                if (std::ranges::find(accepted, i) != accepted.end()) {
                    CHECK(test::values(layer(x)) == test::values(plain(x)));
                    CHECK(test::values(layer.named_buffers()[1].tensor) ==
                          test::values(plain.named_buffers()[1].tensor));
                } else {
                    CHECK_THROWS_WITH_AS(layer(x),
                                         (name + ": expected x of shape " + expected_shape + ", got " +
                                          shapes[i].str() + " (in " + name + ")")
                                             .c_str(),
                                         ShapeError);
                }
            }
    };
    check([] { return nn::BatchNorm1d(3); }, "BatchNorm1d", {0, 1}, "(N, C) or (N, C, L)");
    check([] { return nn::BatchNorm2d(3, {.momentum = 0.1}); }, "BatchNorm2d", {2}, "(N, C, H, W)");
    check([] { return nn::BatchNorm3d(3); }, "BatchNorm3d", {3}, "(N, C, D, H, W)");
    nn::Sequential model(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2), nn::ReLU());
    CHECK(model.summary({1, 1, 5, 5}).find("BatchNorm2d") != std::string::npos);
}

TEST_CASE("aliases: short names are the same as the long ones") {
    const Tensor a = test::random_tensor({3, 4}, 1),
                 b = where(greater(a, zeros({})), a, test::random_tensor({3, 4}, 2));
    using Binary = Tensor (*)(TensorOrScalar, TensorOrScalar);
    for (const auto& [operation, named_function] : {std::pair<Binary, Binary>{eq, equal},
                                                    {ne, not_equal},
                                                    {lt, less},
                                                    {le, less_equal},
                                                    {gt, greater},
                                                    {ge, greater_equal}})
        CHECK(test::values(operation(a, b)) == test::values(named_function(a, b)));
    CHECK(test::values(cat({a, b})) == test::values(concat({a, b}, 0)));
    CHECK(cat({a, b}, -1).shape() == Shape{3, 8});
    CHECK(a.dim() == 2);
    CHECK(a.sizes() == Shape{3, 4});
    const auto same = [](const std::function<Tensor()>& operation, const std::function<Tensor()>& named_function) {
        manual_seed(4);
        const auto values = test::values(operation());
        manual_seed(4);
        CHECK(values == test::values(named_function()));
    };
    same([] { return rand({5, 3}); }, [] { return uniform({5, 3}); });
    same([] { return randn({5, 3}, {DType::bf16}); }, [] { return normal({5, 3}, 0, 1, {DType::bf16}); });
    {
        const NoGradGuard guard;
        CHECK_FALSE(grad_enabled());
    }
    Tensor p = zeros({2}).set_requires_grad();
    p.set_grad(Tensor::from<float>({3, 4}, {2}));
    CHECK(optim::clip_grad_norm_({p}, 1).to_vector<float>()[0] == doctest::Approx(5));
    CHECK(test::values(p.grad())[0] == doctest::Approx(0.6));
    const Tensor image = test::random_tensor({2, 3, 4, 4}, 3);
    CHECK(test::values(nn::AdaptiveAvgPool2d(1)(image)) == test::values(global_avg_pool2d(image)));
    CHECK(nn::AdaptiveAvgPool2d(1).type_name() == "AdaptiveAvgPool2d");
    CHECK(test::values(nn::Identity()(image)) == test::values(image));
    CHECK(nn::Identity().type_name() == "Identity");
    CHECK(nn::Identity().not_capture_safe().empty());
    CHECK(nn::AdaptiveAvgPool2d(1).not_capture_safe().empty());
}

TEST_CASE("summary: a network with integer inputs") {
    struct Embedding : nn::Layer {
        Tensor weight = parameter("weight", rand({7, 5}));
        Tensor forward(Tensor x) override {
            if (is_floating(x.dtype())) throw TypeError("Embedding: expected integers");
            return matmul(eq(reshape(x, {-1, 1}), arange(0, 7, 1, {x.dtype()})).to(DType::f32), weight);
        }
        std::string type_name() const override { return "Embedding"; }
    };
    nn::Sequential model{Embedding(), nn::Linear(5, 2)};
    for (const DType dtype : {DType::i64, DType::i32}) {
        const std::string summary = model.summary({3}, dtype);
        CHECK(summary.find("[3, 5]") != std::string::npos);
        CHECK(summary.find("[3, 2]") != std::string::npos);
    }
    CHECK_THROWS_AS((void)model.summary({3}), TypeError);  // the parameters' type by default
    CHECK(nn::Linear(5, 2).summary({3, 5}).find("[3, 2]") != std::string::npos);
}
