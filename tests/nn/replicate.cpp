// Replicas of a network on several devices.
#include <declivity/nn/replicate.hpp>

#include <memory>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Tied : nn::Layer {
    nn::Linear& encoder = add("encoder", nn::Linear(4, 3, {.bias = false}));
    Parameter decoder = parameter("decoder", encoder.weight());
    nn::BatchNorm1d& norm = add("norm", nn::BatchNorm1d(3));
    nn::Dropout& drop = add("drop", nn::Dropout(0.5));
    Tensor forward(Tensor x) override { return matmul(drop(norm(encoder(x))), decoder); }
};

}  // namespace

TEST_CASE("replicas: weights, buffers, modes and ties of the model, on each device") {
    Tied model;
    const Tensor x = random_tensor({5, 4}, 1);
    (void)model(x);  // updates the running statistics
    model.drop.eval();
    model.norm.eval();
    model.norm.parameters()[0].set_requires_grad(false);
    // Every available device, and the model's own twice.
    std::vector<Device> devices = Device::all();
    devices.push_back(default_device());
    devices.push_back(default_device());
    const auto replicas = nn::replicate([] { return Tied(); }, model, devices);
    REQUIRE(replicas.size() == devices.size());
    const auto expected = values(model(x));
    for (std::size_t i = 0; i < replicas.size(); ++i) {
        Tied& replica = *replicas[i];
        for (const auto& [name, tensor] : replica.state_dict()) CHECK(tensor.device() == devices[i]);
        CHECK(difference(replica(x.to(devices[i])), expected, {1e-5, 1e-5}) == "");
        CHECK(replica.training());
        CHECK_FALSE(replica.drop.training());
        CHECK(state_of(Tensor(replica.decoder)) == state_of(replica.encoder.weight()));
        CHECK(replica.parameters().size() == model.parameters().size());
        CHECK_FALSE(replica.norm.parameters()[0].requires_grad());
        CHECK(replica.norm.parameters()[1].requires_grad());
        CHECK(replica.norm.named_buffers()[2].tensor.item<std::int64_t>() == 1);
    }
    // They share no memory.
    {
        const NoGrad no_grad;
        replicas.back()->encoder.weight().fill_(0);
    }
    CHECK(values(model(x)) == expected);
    CHECK(difference((*replicas[replicas.size() - 2])(x), expected, {1e-5, 1e-5}) == "");
    sum((*replicas[replicas.size() - 2])(x)).backward();
    CHECK_FALSE(model.encoder.weight().grad().defined());
}

TEST_CASE("replicas: of another type, in place, with parametrizations, and errors") {
    const std::vector<Device> devices{default_device()};
    nn::Linear source_f16(4, 3, {.dtype = DType::f16});
    const auto from_f16 = nn::replicate([] { return nn::Linear(4, 3); }, source_f16, devices);
    CHECK(from_f16[0]->weight().dtype() == DType::f16);
    CHECK(values(from_f16[0]->weight()) == values(source_f16.weight()));
    const auto build = [] {
        auto with_lora = std::make_unique<nn::Sequential>(nn::Linear(4, 3));
        nn::lora((*with_lora)[0], "weight", {.rank = 2});
        return with_lora;
    };
    const auto model = build();
    const auto replicas = nn::replicate(build, *model, devices);
    const Tensor x = random_tensor({2, 4}, 2);
    CHECK(values((*replicas[0])(x)) == values((*model)(x)));
    CHECK_FALSE(replicas[0]->named_parameters()[1].tensor.requires_grad());

    CHECK_THROWS_WITH_AS(
        nn::replicate([] { return nn::Linear(4, 3, {.bias = false}); }, nn::Linear(4, 3), devices),
        "replicate: expected a replica with the parameters and buffers of the model, 'bias', got 'none'", ValueError);
    CHECK_THROWS_WITH_AS(nn::replicate([] { return nn::Linear(5, 3); }, nn::Linear(4, 3), devices),
                         "replicate: expected a replica whose 'weight' has shape [3, 4], got [3, 5]", ShapeError);
    CHECK_THROWS_WITH_AS(
        nn::replicate([] { return nn::Sequential(nn::ReLU()); }, nn::Sequential(nn::ReLU(), nn::ReLU()), devices),
        "replicate: expected a replica with the modules of the model, [0, 1] in it, got [0]", ValueError);
    CHECK(nn::replicate([] { return nn::Linear(4, 3); }, nn::Linear(4, 3), {}).empty());
}
