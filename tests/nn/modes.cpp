// Modules added after eval() or train() get the mode of their parent.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;
using test::values;

namespace {

/// Adds a child in each way that a user-defined module can.
struct Parent : nn::Layer {
    Tensor forward(Tensor x) override { return x; }
    [[nodiscard]] std::string type_name() const override { return "Parent"; }
    nn::Dropout& via_add(const std::string& name) { return add(name, nn::Dropout(0.5)); }
    nn::Dropout& via_emplace(const std::string& name) { return emplace<nn::Dropout>(name, 0.5); }
    void via_pointer(const std::string& name) { add_child(name, std::make_unique<nn::Dropout>(0.5)); }
};

struct Doubled : nn::Layer {
    Tensor forward(Tensor w) override { return w * 2.0; }
    [[nodiscard]] std::string type_name() const override { return "Doubled"; }
};

/// Returns whether a module and all its descendants are in one mode.
bool all_in(const nn::Module& module, bool training) {
    bool same = module.training() == training;
    module.for_each_child([&](const nn::Module& child) { same = same && all_in(child, training); });
    return same;
}

}  // namespace

TEST_CASE("modes: a child takes the mode of its parent, in whichever way it is added") {
    for (const bool training : {false, true}) {
        CAPTURE(training);
        Parent parent;
        parent.train(training);
        CHECK(parent.via_add("a").training() == training);
        CHECK(parent.via_emplace("b").training() == training);
        parent.via_pointer("c");
        CHECK(all_in(parent, training));

        nn::Sequential sequence(nn::Linear(2, 2));
        sequence.train(training);
        nn::Dropout dropout_layer(0.5);
        dropout_layer.train(!training);
        CHECK(sequence.append(std::move(dropout_layer)).training() == training);
        CHECK(sequence.emplace<nn::Dropout>(0.5).training() == training);
        nn::Sequential block(nn::Linear(2, 2), nn::Sequential(nn::Dropout(0.5)));
        block.train(!training);
        sequence.append(std::move(block));  // with all its descendants
        CHECK(all_in(sequence, training));

        nn::ModuleList<> list;
        list.train(training);
        list.append(nn::Dropout(0.5));
        list.emplace<nn::Dropout>(0.5);
        CHECK(all_in(list, training));

        nn::ModuleDict<> heads;
        heads.train(training);
        heads.insert("one", nn::Dropout(0.5));
        heads.emplace<nn::Dropout>("two", 0.5);
        CHECK(all_in(heads, training));
    }
}

TEST_CASE("modes: a dropout appended after eval() passes its input through") {
    nn::Sequential model(nn::Linear(4, 4));
    model.eval();
    const Tensor x = ones({8, 4}), before = model(x);
    model.append(nn::Dropout(0.9));
    CHECK(values(model(x)) == values(before));
    model.train();
    CHECK(values(model(x)) != values(before));
}

TEST_CASE("modes: adapters and parametrizations of a model in evaluation mode") {
    nn::Sequential model(nn::Linear(4, 4), nn::ReLU(), nn::Linear(4, 2));
    model.eval();
    nn::add_lora(model, {.r = 2, .lora_dropout = 0.5, .target_modules = {}});
    CHECK(all_in(model, false));
    auto& linear = static_cast<nn::Linear&>(model[0]);
    CHECK_FALSE(linear.lora()->training());
    nn::Linear plain(4, 4);
    plain.eval();
    nn::register_parametrization(plain, "weight", Doubled());
    nn::register_parametrization(plain, "weight", Doubled());
    nn::spectral_norm(plain);
    CHECK(all_in(plain, false));
    nn::Conv2d conv(2, 2, 3);
    conv.eval();
    nn::weight_norm(conv);
    nn::lora(conv);
    CHECK(all_in(conv, false));
    nn::Linear trained(4, 4);
    Doubled still;
    still.eval();
    nn::register_parametrization(trained, "weight", std::move(still));
    CHECK(all_in(trained, true));
}

TEST_CASE("modes: a layer assigned to a child takes over its mode") {
    nn::Sequential model(nn::Linear(4, 4), nn::Sequential(nn::Dropout(0.5)));
    model.eval();
    static_cast<nn::Linear&>(model[0]) = nn::Linear(4, 3);
    static_cast<nn::Sequential&>(model[1]) = nn::Sequential(nn::Dropout(0.5), nn::Linear(3, 2));
    CHECK(all_in(model, false));
    nn::Sequential unregistered(nn::Dropout(0.5));
    unregistered.eval();
    unregistered = nn::Sequential(nn::Dropout(0.5));  // not a child: keeps its mode
    CHECK(all_in(unregistered, true));
    nn::Sequential moved = std::move(model);
    moved.append(nn::Dropout(0.5));
    CHECK(all_in(moved, false));
    moved.train();
    CHECK(all_in(moved, true));
}
