// Parametrizations: a module's parameter is computed from trained originals.
#include <declivity/nn/parametrize.hpp>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/nn/tensor_names.hpp>
#include "tests/support/devices.hpp"
#include "tests/support/temp_folder.hpp"
#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Symmetric : nn::Layer {
    Tensor forward(Tensor w) override { return (w + transpose(w)) * 0.5; }
    std::string type_name() const override { return "Symmetric"; }
    const std::type_info& capture_safe() const override { return typeid(Symmetric); }
};

/// exp, with the logarithm as the original.
struct Positive : nn::Layer {
    Tensor forward(Tensor w) override { return exp(w); }
    static Tensor right_inverse(const Tensor& w) { return log(w); }
};

/// A trained factor.
struct Scaled : nn::Layer {
    Parameter factor = parameter("factor", full({1}, 2.0));
    Tensor forward(Tensor w) override { return w * factor; }
    const std::type_info& capture_safe() const override { return typeid(Scaled); }
};

/// A user-defined module.
struct Mix : nn::Layer {
    nn::Parameter w = parameter("w", random_tensor({3, 3}, 1));
    nn::Parameter scale = parameter("scale", full({1}, 0.5));
    Tensor plain = parameter("plain", ones({1}));
    Tensor forward(Tensor x) override { return matmul(x, w) * scale * plain + maximum(scale, 0.1); }
    std::string type_name() const override { return "Mix"; }
    const std::type_info& capture_safe() const override { return typeid(Mix); }
};

using Names = std::vector<std::string>;

Tensor symmetric(const Tensor& w) { return (w + transpose(w)) * 0.5; }

}  // namespace

TEST_CASE("parametrizations: a module computes with a function of the original") {
    Mix mixed_layer;
    const Tensor x = random_tensor({4, 3}, 2), w = mixed_layer.w;
    CHECK(names(mixed_layer.named_parameters()) == Names{"w", "scale", "plain"});
    CHECK(values(mixed_layer(x)) == values(matmul(x, w) * 0.5 + 0.5));
    const auto before = values(w);
    const Symmetric& registered = nn::register_parametrization(mixed_layer, "w", Symmetric());
    CHECK(&registered == mixed_layer.children()[0].second->children()[0].second->children()[0].second);
    CHECK(names(mixed_layer.named_parameters()) == Names{"scale", "plain", "parametrizations.w.original"});
    CHECK(names(mixed_layer.state_dict()) == names(mixed_layer.named_parameters()));
    CHECK(state_of(mixed_layer.named_parameters()[2].tensor) ==
          state_of(w));  // the same tensor, so that optimizers remain valid
    CHECK(values(w) == before);
    CHECK(difference(mixed_layer(x), values(matmul(x, symmetric(w)) * 0.5 + 0.5), {1e-6, 1e-6}) == "");
    CHECK(values(mixed_layer.w.value()) == values(symmetric(w)));
    CHECK(nn::is_parametrized(mixed_layer));
    CHECK(nn::is_parametrized(mixed_layer, "w"));
    CHECK_FALSE(nn::is_parametrized(mixed_layer, "scale"));
    // Gradients flow to the original, symmetric like the function.
    sum(mixed_layer(x)).backward();
    const auto g = values(w.grad());
    Tensor plain = w.detach().clone().set_requires_grad();
    sum(matmul(x, symmetric(plain)) * 0.5).backward();
    CHECK(difference(g, values(plain.grad()), {1e-5, 1e-5}) == "");
    CHECK(g[1] == doctest::Approx(g[3]));
    // After removal the value remains, and the handle is the trained one again.
    const auto value = values(mixed_layer.w.value());
    nn::remove_parametrizations(mixed_layer, "w");
    CHECK(names(mixed_layer.named_parameters()) == Names{"w", "scale", "plain"});
    CHECK(values(mixed_layer.w) == value);
    CHECK(state_of(Tensor(mixed_layer.w)) == state_of(w));
    CHECK(w.requires_grad());
    CHECK(w.is_leaf());
    CHECK_FALSE(nn::is_parametrized(mixed_layer));
    CHECK(mixed_layer.children().empty());
}

TEST_CASE("parametrizations: several in a row, one with parameters, one with a right inverse") {
    nn::Linear layer(3, 3);
    const Tensor w = layer.weight();
    const auto before = values(w);
    nn::register_parametrization(layer, "weight", Scaled());
    nn::register_parametrization(layer, "weight", Symmetric());
    CHECK(names(layer.state_dict()) ==
          Names{"bias", "parametrizations.weight.original", "parametrizations.weight.0.factor"});
    CHECK(difference(layer.weight(), values(symmetric(w * 2)), {1e-6, 1e-6}) == "");
    nn::remove_parametrizations(layer, "weight", false);
    CHECK(values(layer.weight()) == before);
    // For a module that continues with the same values.
    nn::Linear positive(3, 2);
    {
        const NoGrad no_grad;
        positive.weight().copy_(random_tensor({2, 3}, 3, DType::f32, 0.5, 2));
    }
    const Tensor x = random_tensor({4, 3}, 4), handle = positive.weight();
    const auto out = values(positive(x)), weight = values(positive.weight());
    nn::register_parametrization(positive, "weight", Positive());
    CHECK(difference(positive(x), out, {1e-5, 1e-5}) == "");
    CHECK(difference(handle,
                     {std::log(weight[0]), std::log(weight[1]), std::log(weight[2]), std::log(weight[3]),
                      std::log(weight[4]), std::log(weight[5])},
                     {1e-6, 1e-5}) == "");
    CHECK(state_of(positive.named_parameters()[1].tensor) == state_of(handle));
    nn::register_parametrization(positive, "bias", Scaled());
    CHECK(names(positive.state_dict()) == Names{"parametrizations.weight.original", "parametrizations.bias.original",
                                                "parametrizations.bias.0.factor"});
    nn::remove_parametrizations(positive, "weight");
    CHECK(difference(positive.weight(), weight, {1e-5, 1e-5}) == "");
    CHECK(nn::is_parametrized(positive, "bias"));
}

TEST_CASE("parametrizations: errors name the parameter and change nothing") {
    nn::Linear layer(3, 2);
    CHECK_THROWS_WITH_AS(
        nn::register_parametrization(layer, "wieght", Symmetric()),
        "register_parametrization: expected a parameter of Linear (\"weight\", \"bias\"), got \"wieght\"", ValueError);
    CHECK_THROWS_AS(nn::register_parametrization(layer, "weight", Symmetric()), ShapeError);  // 2 x 3 plus 3 x 2
    struct ChangesShape : nn::Layer {
        Tensor forward(Tensor w) override { return sum(w); }
    };
    CHECK_THROWS_WITH_AS(
        nn::register_parametrization(layer, "weight", ChangesShape()),
        doctest::Contains("register_parametrization: expected a parametrization that keeps the type, shape and device "
                          "of 'weight' of Linear, f32 [2, 3]"),
        ValueError);
    CHECK_THROWS_WITH_AS(nn::remove_parametrizations(layer, "weight"),
                         "remove_parametrizations: expected a parametrized parameter, got 'weight' of Linear",
                         ValueError);
    struct Pair : nn::Callable<Tensor(Tensor, Tensor)> {
        Tensor forward(Tensor a, Tensor b) override { return a * b; }
    };
    CHECK_THROWS_WITH_AS(nn::register_parametrization(layer, "weight", Pair()),
                         doctest::Contains("expected a right_inverse that returns 2 tensors"), ValueError);
    CHECK(names(layer.state_dict()) == Names{"weight", "bias"});
    CHECK(layer.children().empty());
    nn::weight_norm(layer);
    CHECK_THROWS_WITH_AS(nn::register_parametrization(layer, "weight", Pair()),
                         doctest::Contains("to take one tensor, got one that takes 2"), ValueError);
    CHECK_THROWS_WITH_AS(nn::remove_parametrizations(layer, "weight", false),
                         "remove_parametrizations: expected one original to restore, got 2 of 'weight'", ValueError);
    CHECK_THROWS_AS(nn::lora(layer, "bias"), ShapeError);
    CHECK_THROWS_WITH_AS(nn::lora(layer, "weight", {.rank = 0}), "LoRA: expected a rank of at least 1, got 0",
                         ValueError);
    Mix mixed_layer;
    CHECK_THROWS_WITH_AS(nn::register_parametrization(mixed_layer, "plain", Scaled()),
                         "register_parametrization: expected a parameter stored as nn::Parameter, got "
                         "'plain' of Mix, which stores a Tensor",
                         ValueError);
    nn::Linear moved_layer(std::move(layer));
    CHECK_THROWS_WITH_AS(nn::weight_norm(layer), doctest::Contains("got one that was moved from"), ValueError);
}

TEST_CASE("LoRA: W + alpha / rank B A with a frozen base") {
    manual_seed(7);
    const std::vector<std::pair<Shape, std::int64_t>> shapes{{{4, 5}, 20}, {{4, 2, 3, 3}, 72}};
    for (const bool conv : {false, true}) {
        std::unique_ptr<nn::Layer> layer;
        if (conv) layer = std::make_unique<nn::Conv2d>(2, 4, 3);
        else layer = std::make_unique<nn::Linear>(5, 4);
        const Tensor x = conv ? random_tensor({2, 2, 5, 6}, 1) : random_tensor({3, 5}, 1);
        const auto before = values((*layer)(x));
        const Tensor base = layer->parameter_value("weight");
        nn::lora(*layer, "weight", {.rank = 2, .alpha = 6});
        CHECK(difference((*layer)(x), before, {1e-6, 1e-6}) == "");  // B starts as zeros
        CHECK(names(layer->state_dict()) == Names{"bias", "parametrizations.weight.original",
                                                  "parametrizations.weight.0.lora_A",
                                                  "parametrizations.weight.0.lora_B"});
        const auto parameters = layer->named_parameters();
        CHECK_FALSE(parameters[1].tensor.requires_grad());
        CHECK(parameters[2].tensor.requires_grad());
        CHECK(parameters[2].tensor.shape() == Shape{2, conv ? 18 : 5});
        CHECK(parameters[3].tensor.shape() == Shape{4, 2});
        // The first training step changes only B, later ones also A.
        std::vector<Tensor> trained;
        for (const auto& parameter : parameters)
            if (parameter.tensor.requires_grad()) trained.push_back(parameter.tensor);
        optim::SGD optimizer(trained, {.lr = 0.05});
        const auto frozen = values(base);
        for (int step = 0; step < 3; ++step) {
            optimizer.zero_grad();
            mean(square((*layer)(x))).backward();
            CHECK_FALSE(base.grad().defined());
            optimizer.step();
        }
        CHECK(values(base) == frozen);
        const Tensor a = parameters[2].tensor.detach(), b = parameters[3].tensor.detach();
        const Tensor expected = base + reshape(matmul(b, a) * 3.0, base.shape());
        CHECK(difference(layer->parameter_value("weight"), values(expected), {1e-6, 1e-6}) == "");
        CHECK(values(expected) != frozen);
        // Merged.
        const auto merged = values((*layer)(x));
        nn::remove_parametrizations(*layer, "weight");
        CHECK(difference((*layer)(x), merged, {1e-6, 1e-6}) == "");
        CHECK(base.requires_grad());
        CHECK(names(layer->state_dict()) == Names{"weight", "bias"});
    }
}

TEST_CASE("LoRA: A has PyTorch's initial distribution") {
    manual_seed(8);
    nn::Linear layer(50, 40);
    nn::lora(layer, "weight", {.rank = 30});
    double largest = 0, squares = 0;
    const auto a = values(layer.named_parameters()[2].tensor);
    for (const double value : a) largest = std::max(largest, std::abs(value)), squares += value * value;
    const double bound = 1 / std::sqrt(50.0);  // kaiming_uniform_ with a = sqrt(5)
    CHECK(largest <= bound);
    CHECK(largest > 0.99 * bound);
    CHECK(std::sqrt(squares / static_cast<double>(a.size())) == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.05));
}

TEST_CASE("weight norm: g v / |v|, with a norm for each index of an axis") {
    const auto norms = [](const std::vector<double>& v, std::int64_t rows, std::int64_t columns, int dim) {
        std::vector<double> out(static_cast<std::size_t>(dim < 0 ? 1 : dim == 0 ? rows : columns), 0);
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) {
                const double element = v[static_cast<std::size_t>(i * columns + j)];
                out[static_cast<std::size_t>(dim < 0 ? 0 : dim == 0 ? i : j)] += element * element;
            }
        for (double& output : out) output = std::sqrt(output);
        return out;
    };
    for (const int dim : {0, 1, -1}) {
        CAPTURE(dim);
        nn::Linear layer(5, 3);
        const Tensor x = random_tensor({4, 5}, 9), handle = layer.weight();
        const auto before = values(layer(x)), weight = values(handle);
        nn::weight_norm(layer, "weight", dim < 0 ? std::nullopt : std::optional<std::int64_t>(dim));
        CHECK(names(layer.state_dict()) ==
              Names{"bias", "parametrizations.weight.original0", "parametrizations.weight.original1"});
        CHECK(difference(layer(x), before, {1e-6, 1e-6}) == "");
        Tensor g = layer.named_parameters()[1].tensor;
        const Tensor v = layer.named_parameters()[2].tensor;
        CHECK(state_of(v) == state_of(handle));
        CHECK(g.shape() == (dim < 0 ? Shape{} : dim == 0 ? Shape{3, 1} : Shape{1, 5}));
        CHECK(difference(g, norms(weight, 3, 5, dim), {1e-6, 1e-6}) == "");
        {
            const NoGrad no_grad;
            g.mul_(3);
        }
        const auto tripled = values(linear(x, v * 3, layer.bias()));
        CHECK(difference(layer(x), tripled, {1e-5, 1e-5}) == "");
        sum(square(layer(x))).backward();
        CHECK(g.grad().shape() == g.shape());
        // The gradient of v is orthogonal to v in each normalised row.
        if (dim == 0) {
            const auto gv = values(sum(v.grad() * v, {1}));
            for (const double value : gv) CHECK(std::abs(value) < 1e-4);
        }
        nn::remove_parametrizations(layer, "weight");
        CHECK(difference(layer(x), tripled, {1e-5, 1e-5}) == "");
        CHECK(state_of(layer.weight()) == state_of(handle));
    }
}

TEST_CASE("parametrizations: second-order gradients") {
    if (widest() != DType::f64) return;  // f32 is too coarse for finite differences
    for (const int kind : {0, 1, 2}) {
        CAPTURE(kind);
        nn::Linear layer(3, 3, {.dtype = DType::f64});
        if (kind == 0) nn::weight_norm(layer);
        if (kind == 1) nn::lora(layer, "weight", {.rank = 2, .alpha = 4});
        if (kind == 2) nn::register_parametrization(layer, "weight", Symmetric());
        std::vector<Tensor> trained;
        std::uint64_t seed = 30;
        for (const auto& [name, tensor] : layer.named_parameters()) {
            const NoGrad no_grad;
            Tensor(tensor).copy_(random_tensor(tensor.shape(), ++seed, DType::f64));
            if (tensor.requires_grad() && name != "bias") trained.push_back(tensor);
        }
        const Tensor x = random_tensor({4, 3}, 40, DType::f64);
        // Gradient of the gradient's squared norm, compared with central differences.
        const auto penalty = [&](bool graph) {
            const std::vector<Tensor> first = grad({sum(tanh(layer(x)))}, trained, {.create_graph = graph});
            Tensor total = zeros({}, {DType::f64});
            for (const Tensor& tensor : first) total = total + sum(square(tensor));
            return total;
        };
        const std::vector<Tensor> second = grad({penalty(true)}, trained);
        for (std::size_t t = 0; t < trained.size(); ++t) {
            const auto at = values(trained[t]);
            const auto got = values(second[t]);
            for (std::size_t i = 0; i < at.size(); ++i) {
                const auto loss_at = [&](double step) {
                    auto shifted = at;
                    shifted[i] += step;
                    {
                        const NoGrad no_grad;
                        Tensor(trained[t]).copy_(tensor(shifted, trained[t].shape(), DType::f64));
                    }
                    return penalty(false).item<double>();
                };
                const double numeric = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
                (void)loss_at(0);
                CHECK(got[i] == doctest::Approx(numeric).epsilon(1e-5));
            }
        }
    }
}

namespace {

/// Losses and parameters of some steps of a network with parametrizations, eager or captured.
std::vector<std::vector<double>> trained_parametrized(bool captured_steps) {
    manual_seed(11);
    nn::Sequential model(nn::Conv2d(1, 4, 3), nn::ReLU(), nn::Flatten(), nn::Linear(36, 3), Mix());
    nn::weight_norm(model[0]);
    nn::lora(model[3], "weight", {.rank = 2});
    nn::register_parametrization(model[4], "w", Symmetric());
    nn::register_parametrization(model[4], "w", Scaled());
    std::vector<Tensor> parameters;
    for (const Tensor& parameter : model.parameters())
        if (parameter.requires_grad()) parameters.push_back(parameter);
    optim::Adam optimizer(parameters, {.lr = 0.02});
    const auto step = [&](const std::vector<Tensor>& in) {
        optimizer.zero_grad();
        const Tensor loss = cross_entropy(model(in[0]), in[1]);
        loss.backward();
        optimizer.step();
        return std::vector{loss.detach()};
    };
    auto captured = capture(step);
    std::vector<std::vector<double>> out;
    for (std::uint64_t i = 0; i < 6; ++i) {
        const std::vector<Tensor> in{random_tensor({6, 1, 5, 5}, 50 + i),
                                     Tensor::from<std::int64_t>({0, 1, 2, 2, 1, 0}, {6})};
        out.push_back(values(captured_steps ? captured(in)[0] : step(in)[0]));
    }
    if (captured_steps) CHECK(captured.replayed() == 5);
    for (const Tensor& parameter : model.parameters()) out.push_back(values(parameter));
    CHECK(model.not_capture_safe().empty());
    return out;
}

}  // namespace

TEST_CASE("parametrizations: captured steps match eager ones bit for bit") {
    CHECK(trained_parametrized(true) == trained_parametrized(false));
}

TEST_CASE("parametrizations: a captured step is captured again when they are added or removed") {
    nn::Linear layer(3, 3);
    const NoGrad no_grad;
    const Tensor x = random_tensor({4, 3}, 12);
    auto step = capture([&](const Tensor& in) { return layer(in); });
    const auto plain = values(step(x));
    (void)step(x);
    nn::register_parametrization(layer, "weight", Scaled());
    const auto scaled = values(step(x));
    CHECK(difference(scaled, values(linear(x, layer.parameter_value("weight"), layer.bias())), {0, 0}) == "");
    CHECK(scaled != plain);
    CHECK(values(step(x)) == scaled);
    nn::register_parametrization(layer, "weight", Symmetric());
    CHECK(values(step(x)) == values(layer(x)));
    nn::remove_parametrizations(layer, "weight", false);
    CHECK(values(step(x)) == plain);
    CHECK(step.replayed() == 2);
}

TEST_CASE("parametrizations: state dicts, types, moves and optimizers") {
    const TempFolder folder;
    nn::Sequential a(nn::Linear(4, 4), nn::Linear(4, 2)), b(nn::Linear(4, 4), nn::Linear(4, 2));
    for (nn::Sequential* model : {&a, &b}) {
        nn::weight_norm((*model)[0]);
        nn::lora((*model)[1]);
    }
    const Tensor x = random_tensor({3, 4}, 13);
    io::save(folder / "a.safetensors", a.state_dict());
    b.load_state_dict(io::load(folder / "a.safetensors"));
    CHECK(values(b(x)) == values(a(x)));
    nn::Sequential plain(nn::Linear(4, 4), nn::Linear(4, 2));
    CHECK_THROWS_WITH_AS(plain.load_state_dict(a.state_dict()), doctest::Contains("missing: [0.weight, 1.weight]"),
                         ValueError);
    const auto exact = values(a(x));
    a.to(widest());
    CHECK(difference(a(x.to(widest())), exact, {1e-5, 1e-5}) == "");
    CHECK(a[0].parameter_value("weight").dtype() == widest());
    nn::remove_parametrizations(a[0], "weight");
    CHECK(a[0].parameter_value("weight").dtype() == widest());
    CHECK(difference(a(x.to(widest())), exact, {1e-5, 1e-5}) == "");
    nn::Sequential moved(std::move(b));
    CHECK(values(moved(x)) == exact);
    moved.eval();
    CHECK_FALSE(moved[0].children()[0].second->training());
    // An existing optimizer remains valid: the original is the same tensor.
    nn::Linear layer(3, 3);
    optim::SGD optimizer(layer.parameters(), {.lr = 0.1});
    nn::register_parametrization(layer, "weight", Symmetric());
    const auto before = values(layer.weight());
    sum(square(layer(random_tensor({4, 3}, 14)))).backward();
    optimizer.step();
    CHECK(values(layer.weight()) != before);
    // A tied parameter: the other module computes with the original.
    nn::Linear first(3, 3);
    struct Tied : nn::Layer {
        explicit Tied(const Tensor& shared) : w(parameter("w", shared)) {}
        Parameter w;
        Tensor forward(Tensor in) override { return matmul(in, w); }
    } second(first.weight());
    nn::register_parametrization(first, "weight", Symmetric());
    CHECK(state_of(Tensor(second.w)) == state_of(first.named_parameters()[1].tensor));
}

TEST_CASE("parametrizations: a summary counts the layer once, and observers do not see them") {
    nn::Sequential model(nn::Linear(4, 3), nn::ReLU());
    nn::lora(model[0], "weight", {.rank = 2});
    const std::string table = model.summary({5, 4});
    CHECK(table.find("LoRA") == std::string::npos);
    CHECK(table.find("Linear") != std::string::npos);
    CHECK(table.find(" 29 ") != std::string::npos);  // 12 + 3 + 8 + 6
    std::vector<std::string> observed;
    const nn::ObserveCalls observe(
        [&](const std::string& path, const auto&, const auto&, const auto&) { observed.push_back(path); });
    (void)model(ones({2, 4}));
    CHECK(observed == std::vector<std::string>{"Sequential/0", "Sequential/1", "Sequential"});
    struct Failing : nn::Layer {
        bool fails = false;
        Tensor forward(Tensor w) override {
            if (fails) throw ValueError("Failing: expected to fail");
            return w;
        }
    };
    nn::register_parametrization(model[0], "bias", Failing()).fails = true;
    CHECK_THROWS_WITH_AS(model(ones({2, 4})), "Failing: expected to fail (in Sequential/0/parametrizations.bias.0)",
                         ValueError);
}
