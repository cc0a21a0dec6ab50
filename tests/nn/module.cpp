// Modules: registration, state dictionaries, moves, summaries, initial values.
#include <declivity/nn/nn.hpp>

#include <cmath>
#include <numeric>

#include <declivity/autograd/autograd.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/nn/tensor_names.hpp>
#include "tests/support/devices.hpp"
#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Block : nn::Layer {
    nn::Conv2d& conv = add("conv", nn::Conv2d(2, 3, 3, {.padding = 1, .bias = false}));
    nn::BatchNorm& norm = add("norm", nn::BatchNorm(3));
    Tensor scale = parameter("scale", ones({1}));

    Tensor forward(Tensor x) override { return relu(norm(conv(x))) * scale; }
    std::string type_name() const override { return "Block"; }
};

}  // namespace

TEST_CASE("module: parameters, buffers and children are named in order of registration") {
    nn::Sequential model(Block(), nn::Flatten(), nn::Linear(3 * 4 * 4, 5));
    CHECK(names(model.named_parameters()) ==
          std::vector<std::string>{"0.scale", "0.conv.weight", "0.norm.weight", "0.norm.bias", "2.weight", "2.bias"});
    CHECK(names(model.named_buffers()) ==
          std::vector<std::string>{"0.norm.running_mean", "0.norm.running_var", "0.norm.num_batches_tracked"});
    CHECK(model.state_dict().size() == 9);
    CHECK(model.children().size() == 3);
    for (const Tensor& parameter : model.parameters()) CHECK(parameter.requires_grad());
    CHECK_FALSE(model.named_buffers()[0].tensor.requires_grad());
    model.eval();
    CHECK_FALSE(model.children()[0].second->children()[1].second->training());
}

TEST_CASE("module: a moved module keeps its parameters, and its members refer to them") {
    Block block;
    const Tensor weight = block.conv.weight();
    Block moved(std::move(block));
    CHECK(state_of(moved.named_parameters()[1].tensor) == state_of(weight));
    CHECK(state_of(moved.conv.weight()) == state_of(weight));
    CHECK(moved(uniform({1, 2, 4, 4})).shape() == Shape{1, 3, 4, 4});
}

TEST_CASE("state dictionaries: copy values, refuse mismatches without changing anything") {
    manual_seed(1);
    nn::Sequential a(nn::Linear(3, 4), nn::Linear(4, 2)), b(nn::Linear(3, 4), nn::Linear(4, 2));
    const auto before = test::values(b.parameters()[0]);
    CHECK(test::values(a.parameters()[0]) != before);
    auto state = a.state_dict();
    state.pop_back();
    CHECK_THROWS_WITH_AS(b.load_state_dict(state), doctest::Contains("missing: [1.bias]"), ValueError);
    state = a.state_dict();
    state[3].tensor = zeros({3});
    CHECK_THROWS_AS(b.load_state_dict(state), ShapeError);
    state = a.state_dict();
    state.push_back({"more", zeros({1})});
    CHECK_THROWS_WITH_AS(b.load_state_dict(state), doctest::Contains("unexpected: [more]"), ValueError);
    CHECK(test::values(b.parameters()[0]) == before);
    CHECK_THROWS_WITH_AS(b.load_state_dict({{"0.weight", Tensor()}}, false),
                         "load_state_dict: expected a tensor for '0.weight', got an undefined one", ValueError);
    const LoadedState partly = b.load_state_dict(state, false);
    CHECK(partly.missing.empty());
    CHECK(partly.unexpected == std::vector<std::string>{"more"});
    CHECK_FALSE(partly.complete());
    CHECK(b.load_state_dict({{"0.weight", b.state_dict()[0].tensor}, {"x", ones({1})}}, false).missing ==
          std::vector<std::string>{"0.bias", "1.weight", "1.bias"});
    CHECK(b.load_state_dict(b.state_dict()).complete());
    for (std::size_t i = 0; i < 4; ++i) CHECK(test::values(a.parameters()[i]) == test::values(b.parameters()[i]));
    CHECK_FALSE(a.parameters()[0].view().buffer == b.parameters()[0].view().buffer);
}

TEST_CASE("module: to(dtype) converts the parameters behind existing handles") {
    nn::Linear layer(3, 2);
    const Tensor handle = layer.weight();
    layer.to(test::widest());
    CHECK(handle.dtype() == test::widest());
    CHECK(layer(uniform({4, 3}, 0, 1, {.dtype = test::widest()})).dtype() == test::widest());
    layer.to(DType::f32);
    const Tensor x = uniform({4, 3});
    const auto exact = test::values(layer(x));
    layer.to(DType::bf16);
    CHECK(handle.dtype() == DType::bf16);
    const Tensor y_bf16 = layer(x.to(DType::bf16));
    CHECK(y_bf16.dtype() == DType::bf16);
    CHECK(test::difference(y_bf16, exact, {.absolute = 0.02, .relative = 0.01}) == "");
    CHECK(test::values(nn::truncated_normal_(zeros({5}, {DType::f16}), 3, 0.1))[4] == doctest::Approx(3).epsilon(0.1));
    CHECK(handle.requires_grad());
}

TEST_CASE("module: errors name the layer") {
    nn::Sequential model(nn::Linear(3, 4), nn::Sequential(nn::Linear(5, 2)));
    CHECK_THROWS_WITH_AS(model(uniform({2, 3})), doctest::Contains("(in Sequential/1/0)"), ShapeError);
    CHECK_THROWS_AS(model(Tensor()), ValueError);
    CHECK_THROWS_AS(nn::Linear(0, 3), ValueError);
    CHECK_THROWS_AS(nn::Conv2d(4, 6, 3, {.groups = 4}), ValueError);
    CHECK_THROWS_AS(nn::Dropout(1.5), ValueError);
}

TEST_CASE("summary: a line for each layer and the totals") {
    nn::Sequential model(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(8 * 3 * 3, 10));
    const std::string summary = model.summary({1, 1, 8, 8});
    CHECK(summary.find("[1, 8, 6, 6]") != std::string::npos);
    CHECK(summary.find(std::to_string(8 * 9 + 8 + 720 + 10)) != std::string::npos);
    CHECK(summary.find(std::to_string(8 * 36 * 9 + 720)) != std::string::npos);
    CHECK(model.training());
}

TEST_CASE("dropout: only active in training mode") {
    nn::Dropout dropout(0.5);
    const Tensor x = ones({1000});
    dropout.eval();
    CHECK(test::values(dropout(x)) == test::values(x));
    dropout.train();
    const auto dropped = test::values(dropout(x));
    const auto zeros_count = std::count(dropped.begin(), dropped.end(), 0.0);
    CHECK(zeros_count > 400);
    CHECK(zeros_count < 600);
    CHECK(std::count(dropped.begin(), dropped.end(), 2.0) == 1000 - zeros_count);
}

TEST_CASE("module: modules in evaluation mode see each optimizer step") {
    manual_seed(4);
    nn::Sequential model(nn::Conv2d(18, 33, 3, {.padding = 1}), nn::ReLU(), nn::Flatten(),
                         nn::Linear(33 * 12 * 12, 10));
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    const Tensor x = uniform({16, 18, 12, 12}, -1, 1);
    const auto outside = [&] {
        const NoGrad no_grad;
        return test::values(model(x));
    };
    std::vector<double> before;
    for (int step = 0; step < 3; ++step) {
        const auto expected = test::values(model(x));
        for (int pass = 0; pass < 2; ++pass) {
            const auto got = outside();
            double error = 0, norm = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                error += (got[i] - expected[i]) * (got[i] - expected[i]);
                norm += expected[i] * expected[i];
            }
            CHECK(std::sqrt(error / norm) < 1e-5);
        }
        CHECK(outside() != before);
        before = outside();
        optimizer.zero_grad();
        sum(model(x)).backward();
        optimizer.step();
    }
}

TEST_CASE("initialisers: standard deviations match their formulas") {
    manual_seed(2);
    const Shape shape{64, 20, 3, 3};  // 180 inputs, 576 outputs
    const auto metrics = [](const Tensor& tensor) {
        const auto values = test::values(tensor);
        const double n = static_cast<double>(values.size()),
                     mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
        double square = 0, largest = 0;
        for (const double value : values) {
            square += (value - mean) * (value - mean);
            largest = std::max(largest, std::abs(value));
        }
        return std::array{mean, std::sqrt(square / n), largest};
    };
    const auto check = [&](const Tensor& tensor, double deviation, double bound) {
        const auto [mean, standard_deviation, largest] = metrics(tensor);
        CHECK(std::abs(mean) < 5 * deviation / std::sqrt(11520.0));
        CHECK(standard_deviation == doctest::Approx(deviation).epsilon(0.03));
        CHECK(largest <= bound);
    };
    check(nn::kaiming_uniform_(zeros(shape)), std::sqrt(2.0 / 180), std::sqrt(6.0 / 180));
    check(nn::kaiming_normal_(zeros(shape), 0.5), std::sqrt(2.0 / (1.25 * 180)), INFINITY);
    check(nn::xavier_uniform_(zeros(shape), 2), 2 * std::sqrt(2.0 / 756), 2 * std::sqrt(6.0 / 756));
    check(nn::xavier_normal_(zeros(shape)), std::sqrt(2.0 / 756), INFINITY);
    // Truncated at two standard deviations, a normal distribution has 0.8796 of its standard deviation.
    check(nn::truncated_normal_(zeros(shape), 0, 0.1), 0.08796, 0.2000001);
    const auto first = test::values(nn::truncated_normal_(zeros({5}))),
               second = test::values(nn::truncated_normal_(zeros({5})));
    CHECK(first != second);
    CHECK_THROWS_AS(nn::fan_of({3}), ShapeError);
    CHECK_THROWS_WITH_AS(nn::kaiming_uniform_(zeros({3})),
                         "kaiming_uniform_: expected a weight (out, in, window...), got [3]", ShapeError);
}

TEST_CASE("load_state_dict: names that match except for a common prefix are reported") {
    nn::Sequential model(nn::Linear(2, 3), nn::Sequential(nn::Linear(3, 2)));
    nn::Sequential outer(nn::ReLU(), nn::Sequential(nn::Linear(3, 2)));
    const auto load_error = [&](const StateDict& state, nn::Module* target = nullptr) {
        try {
            (target != nullptr ? *target : model).load_state_dict(state);
        } catch (const ValueError& error) {
            return std::string(error.what());
        }
        return std::string("loaded");
    };
    const auto with_prefix = [&](const std::string& prefix) {
        StateDict state;
        for (const NamedTensor& item : model.state_dict()) state.push_back({prefix + item.name, item.tensor.clone()});
        return state;
    };
    CHECK(load_error(with_prefix("module."))
              .ends_with("; 4 of the unexpected names are missing ones with the prefix 'module.': remove it from the "
                         "names of the state"));
    StateDict more = with_prefix("net.body.");  // next to entries of another module
    more.push_back({"loss.weight", ones({2})});
    CHECK(load_error(more).find("4 of the unexpected names are missing ones with the prefix 'net.body.'") !=
          std::string::npos);
    // The other way round: the state of the module '1'.
    CHECK(load_error(outer[1].state_dict(), &outer)
              .ends_with("; 2 of the missing names are unexpected ones with the prefix '1.': add it to the names of "
                         "the state, or load the state into the module of that name"));
    CHECK(load_error({{"head.scale", ones({2})}}).find("prefix") == std::string::npos);
    CHECK(load_error(with_prefix("")) == "loaded");
    CHECK(model.load_state_dict(with_prefix("module."), false).missing.size() == 4);
}

TEST_CASE("module: a move or conversion that runs out of memory leaves the module unchanged") {
    const auto limited = [](const char* limit) {
        const test::Environment pool("DECLIVITY_POOL", std::nullopt), memory("DECLIVITY_MEMORY_LIMIT", limit);
        return test::fresh_device();
    };
    nn::Sequential model(nn::Linear(256, 256), nn::Linear(256, 256), nn::Linear(256, 256));
    const Device before = model.parameters()[0].device();
    CHECK_THROWS_AS(model.to(limited("600K")), OutOfMemory);
    for (const Tensor& parameter : model.parameters()) CHECK(parameter.device() == before);
    model.to(limited("2M"));
    if (test::widest() != DType::f64) return;
    const std::vector<double> weight = test::values(model.parameters()[0]);
    CHECK_THROWS_AS(model.to(DType::f64), OutOfMemory);
    for (const Tensor& parameter : model.parameters()) CHECK(parameter.dtype() == DType::f32);
    CHECK(test::values(model.parameters()[0]) == weight);
}
