// Moved modules, moved-from modules, and children constructed in place.
#include <declivity/nn/nn.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Its function and a pointer refer to the module itself, so it cannot be moved.
struct Scale : nn::Layer {
    explicit Scale(double initial_factor, std::unique_ptr<int> starts_at = nullptr)
        : factor(initial_factor), calls(starts_at ? *starts_at : 0) {}
    Scale(Scale&&) = delete;
    double factor;
    int calls;
    const Scale* self = this;
    nn::Lambda& function = add("function", nn::Lambda([this](const Tensor& x) { return ++calls, x * factor; }));

    Tensor forward(Tensor x) override { return function(x); }
    std::string type_name() const override { return "Scale"; }
};
static_assert(!std::is_move_constructible_v<Scale>);

struct OwningNet : nn::Layer {
    Scale& scale = emplace<Scale>("scale", 3.0, std::make_unique<int>(40));
    nn::Conv2d& conv = emplace<nn::Conv2d>("conv", 2, 3, 3, nn::Conv2dOptions{.padding = 1, .bias = false});
    nn::Linear& dense = add("dense", nn::Linear(3 * 5 * 5, 4));

    Tensor forward(Tensor x) override { return dense(flatten(conv(scale(x)))); }
    std::string type_name() const override { return "Net"; }
};

}  // namespace

TEST_CASE("children built in place: keep their address") {
    OwningNet net;
    CHECK(net.scale.self == &net.scale);
    CHECK(net.children()[0].second == &net.scale);
    CHECK(net.named_parameters().size() == 3);
    CHECK(net.named_parameters()[0].name == "conv.weight");
    const Tensor x = random_tensor({2, 2, 5, 5}, 1);
    CHECK(net(x).shape() == Shape{2, 4});
    CHECK(net.scale.calls == 41);
    CHECK(values(net.scale(x))[7] == doctest::Approx(3 * values(x)[7]));
    struct Twice : nn::Layer {
        Twice() { emplace<nn::ReLU>("a"), emplace<nn::ReLU>("a"); }
        Tensor forward(Tensor t) override { return t; }
    };
    CHECK_THROWS_WITH_AS(Twice(), doctest::Contains("expected each name once, got \"a\" again"), ValueError);
    struct Without : nn::Layer {
        Without() { add_child("a", nullptr); }
        Tensor forward(Tensor t) override { return t; }
    };
    CHECK_THROWS_WITH_AS(Without(), "Module: expected a module as 'a', got null", ValueError);
}

TEST_CASE("children built in place: in a Sequential") {
    nn::Sequential model(nn::Linear(5, 3));
    Scale& scale = model.emplace<Scale>(-2.0);
    nn::Linear& last = model.emplace<nn::Linear>(3, 2, nn::LinearOptions{.bias = false});
    model.append(nn::Tanh());
    CHECK(model.size() == 4);
    CHECK(scale.self == &scale);
    CHECK(model.children()[1].second == &scale);
    CHECK(model.named_parameters().back().name == "2.weight");
    CHECK(state_of(model.named_parameters().back().tensor) == state_of(last.weight()));
    CHECK(model(random_tensor({7, 5}, 1)).shape() == Shape{7, 2});
    nn::Sequential moved(std::move(model));  // its children stay where they are
    CHECK(moved(random_tensor({7, 5}, 1)).shape() == Shape{7, 2});
    CHECK(scale.calls == 2);
}

TEST_CASE("moved module: references to its children remain valid, and the result is the same") {
    OwningNet net;
    const Tensor x = random_tensor({2, 2, 5, 5}, 2);
    const auto before = values(net(x));
    OwningNet moved(std::move(net));
    CHECK(&moved.dense == moved.children()[2].second);
    CHECK(values(moved(x)) == before);
    CHECK(values(moved.conv(moved.scale(x))).size() == 150);
    sum(moved(x)).backward();
    for (const Tensor& parameter : moved.parameters()) CHECK(parameter.grad().defined());
}

TEST_CASE("moved-from module: calls report it") {
    nn::Sequential from(nn::Linear(5, 3), nn::ReLU());
    const nn::Sequential model(std::move(from));
    const Tensor x = random_tensor({7, 5}, 1);
    constexpr auto* message = "Sequential: expected a module, got one that was moved from";
    const std::vector<std::function<void()>> calls{
        [&] { (void)from(x); },
        [&] { (void)from.parameters(); },
        [&] { (void)from.named_parameters(); },
        [&] { (void)from.named_buffers(); },
        [&] { (void)from.state_dict(); },
        [&] { from.load_state_dict({}); },
        [&] { (void)from.children(); },
        [&] { from.for_each_child([](nn::Module&) {}); },
        [&] { (void)from.size(); },
        [&] { from.append(nn::ReLU()); },
        [&] { from.emplace<nn::ReLU>(); },
        [&] { from.to(DType::f32); },
        [&] { from.to(default_device()); },
        [&] { from.train(); },
        [&] { from.eval(); },
        [&] { from.zero_grad(); },
        [&] { (void)from.not_capture_safe(); },
        [&] {
            (void)from.summary({7, 5});
        },
        [&] { (void)optim::SGD(from.parameters(), {.lr = 0.1}); },
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
        CAPTURE(i);
        CHECK_THROWS_WITH_AS(calls[i](), message, ValueError);
    }
    CHECK(model.size() == 2);

    // This holds without children as well; an empty Sequential that was never moved returns x.
    nn::Sequential empty;
    CHECK(state_of(empty(x)) == state_of(x));
    CHECK(empty.parameters().empty());
    nn::Sequential other(std::move(empty));
    CHECK(state_of(other(x)) == state_of(x));
    CHECK_THROWS_WITH_AS((void)empty(x), message, ValueError);

    // Layers do the same; a moved-from layer continues to report it.
    nn::Linear linear(5, 3), second(std::move(linear));
    CHECK_THROWS_WITH_AS((void)linear(x), "Linear: expected a module, got one that was moved from", ValueError);
    nn::Linear third(std::move(linear));
    CHECK_THROWS_WITH_AS((void)third.state_dict(), "Linear: expected a module, got one that was moved from",
                         ValueError);
    CHECK_THROWS_WITH_AS((void)nn::Sequential(nn::ReLU(), std::move(linear)),
                         "Linear '1': expected a module, got one that was moved from", ValueError);
    nn::ReLU relu_layer, taken(std::move(relu_layer));
    CHECK_THROWS_WITH_AS((void)relu_layer(x), doctest::Contains("expected a module, got one that was moved from"),
                         ValueError);
    CHECK(taken(x).shape() == x.shape());

    // A child that was moved away is reported with its position.
    nn::Sequential outer(nn::Sequential(nn::ReLU(), nn::Linear(5, 3)), nn::Tanh());
    auto& child = dynamic_cast<nn::Linear&>(*outer.children()[0].second->children()[1].second);
    const nn::Linear moved_child(std::move(child));
    CHECK_THROWS_WITH_AS((void)outer.parameters(), "Linear '0.1': expected a module, got one that was moved from",
                         ValueError);
    CHECK_THROWS_WITH_AS((void)outer(x), doctest::Contains("Linear: expected a module, got one that was moved from"),
                         ValueError);
}

TEST_CASE("moved-from module: assignment makes it usable again") {
    const Tensor x = random_tensor({7, 5}, 1);
    nn::Linear a(5, 3), b(5, 2);
    std::swap(a, b);
    CHECK(a(x).shape() == Shape{7, 2});
    CHECK(b(x).shape() == Shape{7, 3});
    nn::Linear c(std::move(a));
    a = std::move(b);
    CHECK(a(x).shape() == Shape{7, 3});
    CHECK_THROWS_AS((void)b(x), ValueError);
    a = std::move(b);  // the source is now moved-from
    CHECK_THROWS_AS((void)a(x), ValueError);
    auto& same = c;
    c = std::move(same);
    CHECK(c(x).shape() == Shape{7, 2});
    std::vector<nn::Linear> many;
    for (int i = 1; i < 9; ++i) many.emplace_back(5, i);
    for (int i = 1; i < 9; ++i) CHECK(many[static_cast<std::size_t>(i - 1)](x).shape() == Shape{7, i});
}

TEST_CASE("moved-from module: a child remains a child, and takes the mode of its parent when it is assigned to") {
    nn::Sequential model(nn::Linear(5, 3), nn::Dropout(0.5));
    model.eval();
    nn::Linear taken(std::move(static_cast<nn::Linear&>(model[0])));
    CHECK_FALSE(taken.training());
    model[0].set_external();  // no effect
    CHECK_FALSE(model[0].external());
    CHECK_THROWS_AS((void)model.parameters(), ValueError);
    static_cast<nn::Linear&>(model[0]) = nn::Linear(5, 4);
    CHECK_FALSE(model[0].training());
    CHECK(model(random_tensor({7, 5}, 1)).shape() == Shape{7, 4});
    CHECK(taken(random_tensor({7, 5}, 1)).shape() == Shape{7, 3});
    std::vector<const nn::Module*> visited;
    model.for_each_child([&](const nn::Module& child) { visited.push_back(&child); });
    CHECK(visited == std::vector<const nn::Module*>{&model[0], &model[1]});
}
