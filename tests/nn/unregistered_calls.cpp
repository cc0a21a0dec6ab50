// Modules called within another's forward() without being its child: reported, except in legitimate cases.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <tests/support/values.hpp>
#include "tests/support/captured_stderr.hpp"

using namespace declivity;
using test::stderr_of;

namespace {

/// A layer as a plain member. Each test case has its own class, since a class is reported a few times only.
template <int>
struct Plain : nn::Layer {
    nn::Linear& a = add("a", nn::Linear(4, 4));
    nn::Linear b{4, 2};
    Tensor forward(Tensor x) override { return b(a(x)); }
    [[nodiscard]] std::string type_name() const override { return "Plain"; }
};

struct Nameless : nn::Layer {
    nn::Linear b{4, 2};
    Tensor forward(Tensor x) override { return b(x); }
};

/// Calls the given module.
struct Calls : nn::Layer {
    explicit Calls(std::function<Tensor(Tensor)> function) : call(std::move(function)) {}
    Tensor forward(Tensor x) override { return call(x); }
    [[nodiscard]] std::string type_name() const override { return "Calls"; }
    std::function<Tensor(Tensor)> call;
};

const Tensor& input() {
    static const Tensor x = ones({3, 4});
    return x;
}

}  // namespace

TEST_CASE("unregistered calls: a layer that is a plain member is reported once, by name") {
    Plain<0> model;
    const std::string text = stderr_of([&] {
        for (int i = 0; i < 3; ++i) model(input());
    });
    CHECK(text ==
          "declivity: warning: Plain: expected the modules that forward() calls to be its children, got Linear, which "
          "is not: its parameters are not trained or saved with those of Plain, and train(), eval() and to() do not "
          "reach it. Register it, `Linear& layer = add(\"layer\", Linear(...));`; a module that is trained on its own "
          "is declared by set_external()\n");
    Plain<0> moved = std::move(model);
    CHECK(stderr_of([&] { moved(input()); }) == "");
}

TEST_CASE("unregistered calls: below other layers, in lists and pointers, of an unnamed class") {
    Nameless nameless;
    CHECK(stderr_of([&] { nameless(input()); }).starts_with("declivity: warning: Nameless: expected"));
    nn::Sequential model(Plain<1>{}, nn::ReLU());
    CHECK(stderr_of([&] { model(input()); }).find("got Linear") != std::string::npos);
    // Children of a list that is not a child itself.
    struct Listed : nn::Layer {
        nn::ModuleList<nn::Linear> layers;
        Listed() { layers.append(nn::Linear(4, 4)); }
        Tensor forward(Tensor x) override { return layers[0](x); }
    };
    Listed listed;
    CHECK(stderr_of([&] { listed(input()); }).find("got Linear") != std::string::npos);
    struct Pointed : nn::Layer {
        std::vector<std::shared_ptr<nn::Layer>> layers{std::make_shared<nn::Sequential>(nn::Linear(4, 4))};
        Tensor forward(Tensor x) override { return (*layers[0])(x); }
    };
    Pointed pointed;
    const std::string text = stderr_of([&] { pointed(input()); });
    CHECK(text.find("Pointed: expected") != std::string::npos);
    CHECK(text.find("got Sequential") != std::string::npos);
    CHECK(text.find("got Linear") == std::string::npos);  // which is a child of it
    struct Dropped : nn::Layer {
        nn::Dropout dropout{0.5};
        Tensor forward(Tensor x) override { return dropout(x); }
    };
    Dropped dropped;  // eval() would not reach it
    CHECK(stderr_of([&] { dropped(input()); }).find("got Dropout") != std::string::npos);
}

TEST_CASE("unregistered calls: a class is reported a few times at most") {
    const std::string text = stderr_of([&] {
        for (int i = 0; i < 20; ++i) Plain<2>()(input());
    });
    std::size_t lines = 0;
    for (const char character : text) lines += character == '\n' ? 1 : 0;
    CHECK(lines >= 1);
    CHECK(lines <= 4);
}

TEST_CASE("unregistered calls: children, shared modules, functions and frozen networks are not reported") {
    nn::Linear frozen(4, 4), external(4, 4), inference(4, 4), alone(4, 4);
    for (Tensor& parameter : frozen.parameters()) parameter.set_requires_grad(false);
    external.set_external();
    CHECK(external.external());
    nn::Linear moved = std::move(external);
    nn::ReLU relu;
    Calls frozen_teacher([&](const Tensor& x) { return frozen(x); });
    Calls declared([&](const Tensor& x) { return moved(x); });
    Calls without_gradients([&](const Tensor& x) {
        const NoGrad no_grad;
        return inference(x);
    });
    Calls without_parameters([&](const Tensor& x) { return relu(x); });
    // A decoder that calls a layer of its encoder.
    struct Tied : nn::Layer {
        nn::Linear& encoder = add("encoder", nn::Linear(4, 4));
        Calls& decoder = add("decoder", Calls([&layer = encoder](const Tensor& x) { return layer(x); }));
        Tensor forward(Tensor x) override { return decoder(x); }
    };
    Tied tied;
    Tied tied_and_moved = std::move(tied);
    // Lists, dictionaries and grandchildren called by their grandparent.
    struct Nested : nn::Layer {
        nn::ModuleList<nn::Linear>& list = add("list", nn::ModuleList<nn::Linear>(nn::Linear(4, 4)));
        nn::ModuleDict<nn::Linear>& heads = add("heads", nn::ModuleDict<nn::Linear>());
        nn::Sequential& block = add("block", nn::Sequential(nn::Linear(4, 4), nn::Dropout(0.5)));
        Nested() { heads.insert("one", nn::Linear(4, 4)); }
        Tensor forward(Tensor x) override { return block[0](heads["one"](list[0](block(x)))); }
    };
    Nested nested;
    nn::Linear parametrized(4, 4);
    nn::weight_norm(parametrized);
    nn::spectral_norm(parametrized, "weight");
    nn::Sequential adapted(nn::Linear(4, 4));
    nn::add_lora(adapted, {.r = 2});
    CHECK(stderr_of([&] {
              for (nn::Layer* layer :
                   std::vector<nn::Layer*>{&frozen_teacher, &declared, &without_gradients, &without_parameters,
                                           &tied_and_moved, &nested, &parametrized, &adapted})
                  (*layer)(input());
              (void)alone(moved(input()));  // one after the other
              sum(nested(input())).backward();
              std::thread([&] { alone(input()); }).join();
          }) == "");
}

TEST_CASE("unregistered calls: children of an external module, and calls after an exception") {
    nn::Sequential critic(nn::Linear(4, 4), nn::Linear(4, 1));
    critic.set_external();
    Calls loss([&](const Tensor& x) { return critic[0](x); });
    nn::Linear layer(4, 4);
    CHECK(stderr_of([&] {
              loss(input());
              CHECK_THROWS(layer(ones({3, 5})));
              layer(input());  // the call that threw has ended
          }) == "");
    critic.set_external(false);
    CHECK(stderr_of([&] { loss(input()); }).find("Calls: expected") != std::string::npos);
}
