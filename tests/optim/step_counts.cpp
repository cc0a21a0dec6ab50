// Step counts per parameter: formulas, launches, captured steps, and saved states.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/optim/adagrad.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/radam.hpp>
#include <declivity/optim/schedule.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"
#include "tests/support/launches.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;
using test::values;

namespace {

/// Its parameter becomes the step number.
class Counting : public optim::Optimizer {
  public:
    explicit Counting(const optim::Parameters& parameters) : Optimizer("Counting") { add(parameters, 1); }

  protected:
    void update(std::size_t, optim::Update& x) const override { x.parameter = 0 * x.parameter + x.step; }
};

Tensor leaf(double value, DType dtype = DType::f32, const Shape& shape = {3}) {
    return full(shape, value, {dtype}).set_requires_grad();
}

/// A step with a gradient of 1 for one parameter only.
void step_of(optim::Optimizer& optimizer, const Tensor& parameter) {
    optimizer.zero_grad();
    Tensor(parameter).set_grad(ones_like(parameter));
    optimizer.step();
}

Tensor state_entry(const optim::Optimizer& optimizer, const std::string& name) {
    for (const NamedTensor& item : optimizer.state_dict())
        if (item.name == name) return item.tensor;
    FAIL("no state named " << name);
    return {};
}

}  // namespace

TEST_CASE("step counts: the first gradient of a parameter in a later step is its first step") {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        const double unit = dtype == DType::f32 ? 1e-6 : 4e-3;
        const auto second = [&](auto&& make) {
            Tensor a = leaf(1, dtype), b = leaf(1, dtype);
            auto optimizer = make(optim::Parameters{a, b});
            for (int t = 0; t < 5; ++t) step_of(optimizer, a);
            step_of(optimizer, b);
            return values(b)[1];
        };
        // Adam's first step is lr, whatever the gradient.
        CHECK(second([](const optim::Parameters& p) { return optim::Adam(p, {.lr = 0.01}); }) ==
              doctest::Approx(0.99).epsilon(unit));
        CHECK(second([](const optim::Parameters& p) { return optim::AdamW(p, {.lr = 0.01, .weight_decay = 0.1}); }) ==
              doctest::Approx(1 - 0.001 - 0.01).epsilon(unit));
        // RAdam's first steps use the mean only, SGD's momentum begins with the gradient, Adagrad's rate is not
        // reduced.
        CHECK(second([](const optim::Parameters& p) { return optim::RAdam(p, {.lr = 0.25}); }) ==
              doctest::Approx(0.75).epsilon(unit));
        CHECK(second([](const optim::Parameters& p) {
                  return optim::SGD(p, {.lr = 0.25, .momentum = 0.9, .dampening = 0.5});
              }) == doctest::Approx(0.75).epsilon(unit));
        CHECK(second([](const optim::Parameters& p) { return optim::Adagrad(p, {.lr = 0.25, .lr_decay = 1}); }) ==
              doctest::Approx(0.75).epsilon(unit));
        CHECK(second([](const optim::Parameters& p) { return Counting(p); }) == 1);
    }
}

TEST_CASE(
    "step counts: a first gradient after thousands of steps of other parameters has the first step's correction") {
    Tensor a = leaf(1), b = leaf(1);
    optim::AdamW optimizer({a, b}, {.lr = 0.01, .weight_decay = 0});
    StateDict state;
    for (const auto& [name, tensor] : optimizer.state_dict())
        state.push_back({name, name == "state.0.step" ? full({}, 5000) : tensor.clone()});
    optimizer.load_state_dict(state);
    step_of(optimizer, b);
    CHECK(values(b)[0] == doctest::Approx(0.99).epsilon(1e-6));
    step_of(optimizer, a);
    CHECK(values(state_entry(optimizer, "state.0.step")) == std::vector<double>{5001});
    CHECK(values(state_entry(optimizer, "state.1.step")) == std::vector<double>{1});
}

TEST_CASE("step counts: groups, empty and large parameters, and a changing pattern of gradients") {
    const std::vector<Shape> shapes{{2}, {0}, {9001}, {}, {3, 5}};
    for (const bool exact : {false, true}) {
        const test::Environment pool("DECLIVITY_POOL", exact ? std::optional<std::string>("exact") : std::nullopt);
        const Device device = test::fresh_device();
        std::vector<Tensor> parameters;
        std::vector<int> expected(shapes.size(), 0);
        for (const Shape& shape : shapes) parameters.push_back(full(shape, 0, {.device = device}).set_requires_grad());
        Counting optimizer({parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]});
        for (int t = 0; t < 12; ++t) {
            optimizer.zero_grad();
            for (std::size_t i = 0; i < shapes.size(); ++i) {
                if (t % (static_cast<int>(i) + 1) != 0) continue;
                parameters[i].set_grad(ones_like(parameters[i]));
                ++expected[i];
            }
            optimizer.step();
        }
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            const auto found = values(parameters[i]);
            CHECK(found == std::vector<double>(found.size(), expected[i]));
            CHECK(values(state_entry(optimizer, "state." + std::to_string(i) + ".step")) ==
                  std::vector<double>{static_cast<double>(expected[i])});
        }
    }
}

TEST_CASE("step counts: a step launches two kernels, with gradients of all parameters or of some") {
    if (std::getenv("DECLIVITY_POOL") != nullptr)
        return;  // a kernel uses eight memory objects at most; in a pool, tensors share them
    std::vector<Tensor> parameters;
    for (std::int64_t i = 0; i < 40; ++i) parameters.push_back(full({1 + i * 7}, 1).set_requires_grad());
    optim::Adam optimizer(parameters);
    for (const std::size_t every : {1, 1, 3}) {
        optimizer.zero_grad();
        for (std::size_t i = 0; i < parameters.size(); i += every) parameters[i].set_grad(ones_like(parameters[i]));
        for (const Tensor& parameter : parameters)
            if (parameter.grad().defined()) test::materialize(parameter.grad());
        for (const NamedTensor& item : optimizer.state_dict()) test::materialize(item.tensor);
        CHECK(test::launches([&] { optimizer.step(); }) == 2);
    }
}

TEST_CASE("step counts: captured steps continue counting") {
    Tensor a = leaf(0), b = leaf(0);
    Counting plain({a, b});
    step_of(plain, b);
    step_of(plain, b);
    auto replayed = capture([&](const std::vector<Tensor>& x) {
        plain.zero_grad();
        sum(a * x[0]).backward();
        plain.step();
        return std::vector<Tensor>{};
    });
    for (int t = 1; t <= 5; ++t) {
        replayed(std::vector<Tensor>{full({3}, t)});
        CHECK(values(a) == std::vector<double>(3, t));
    }
    CHECK(replayed.replayed() >= 3);
    CHECK(values(b) == std::vector<double>(3, 2));
    step_of(plain, b);
    CHECK(values(b) == std::vector<double>(3, 3));
    replayed(std::vector<Tensor>{ones({3})});
    CHECK(values(a) == std::vector<double>(3, 6));
    CHECK(values(b) == std::vector<double>(3, 3));
}

TEST_CASE("step counts: states of earlier versions load, with one count for all parameters of a group") {
    for (const DType dtype : {DType::f32, test::widest(), DType::bf16}) {
        CAPTURE(name_of(dtype));
        const DType state_dtype = compute_type(dtype);
        Tensor a = leaf(1, dtype), b = leaf(1, dtype, {2});
        optim::Adam optimizer({a, b}, {.lr = 0.5});
        StateDict old{{"groups.0.progress", full({2}, 0.125, {state_dtype})}};
        old[0].tensor[1] = 7;
        for (const char* name : {"state.0.m", "state.0.v"}) old.push_back({name, full({3}, 0.25, {state_dtype})});
        for (const char* name : {"state.1.m", "state.1.v"}) old.push_back({name, full({2}, 0.75, {state_dtype})});
        if (state_dtype != dtype) {
            old.push_back({"state.0.master", ones({3}, {state_dtype})});
            old.push_back({"state.1.master", ones({2}, {state_dtype})});
        }
        const test::TempFolder folder;
        io::save(folder / "old.safetensors", old);
        optimizer.load_state_dict(io::load(folder / "old.safetensors"));
        CHECK(optimizer.learning_rate() == 0.125);
        CHECK(optimizer.initial_learning_rate() == 0.5);  // not part of such a state
        for (const char* name : {"state.0.step", "state.1.step"})
            CHECK(values(state_entry(optimizer, name)) == std::vector<double>{7});
        CHECK(values(state_entry(optimizer, "state.1.v")) == std::vector<double>(2, 0.75));
        if (dtype == DType::f64) continue;
        // The exact rate if its rounded value equals that of progress; otherwise that of progress.
        const double set = 0.1, parts[] = {static_cast<float>(set), set - static_cast<double>(static_cast<float>(set))};
        old.push_back({"groups.0.learning_rate",
                       Tensor::from<float>({static_cast<float>(parts[0]), static_cast<float>(parts[1]), 0}, {3})});
        old[0].tensor[0] = set;
        optimizer.load_state_dict(old);
        CHECK(optimizer.learning_rate() == doctest::Approx(set).epsilon(1e-14));
        old[0].tensor[0] = 0.375;
        optimizer.load_state_dict(old);
        CHECK(optimizer.learning_rate() == 0.375);
    }
}

TEST_CASE("step counts: a count may have any real type and be on any device") {
    Tensor a = leaf(1);
    optim::Adam optimizer({a}, {.lr = 0.5});
    for (const Tensor& step : {full({}, 9, {DType::i64}), full({1}, 9, {DType::i32}), full({}, 9),
                               full({}, 9, {.device = test::fresh_device()})}) {
        StateDict state = optimizer.state_dict();
        for (NamedTensor& item : state)
            if (item.name == "state.0.step") item.tensor = step;
        optimizer.load_state_dict(state);
        CHECK(values(state_entry(optimizer, "state.0.step")) == std::vector<double>{9});
        optimizer.load_state_dict(optim::Adam({leaf(1)}).state_dict());
        CHECK(values(state_entry(optimizer, "state.0.step")) == std::vector<double>{0});
    }
}

TEST_CASE("step counts: an invalid count is refused and changes nothing") {
    Tensor a = leaf(1);
    optim::Adam optimizer({a}, {.lr = 0.5});
    for (const double step : {-3.0, 1.5, static_cast<double>(NAN), HUGE_VAL}) {
        StateDict state = optimizer.state_dict(), torch = optim::Adam({leaf(2)}).torch_state_dict();
        for (NamedTensor& item : state)
            if (item.name == "state.0.step") item.tensor = full({}, step);
        CHECK_THROWS_WITH_AS(optimizer.load_state_dict(state),
                             doctest::Contains("load_state_dict: expected a non-negative integer number of steps as "
                                               "'state.0.step', got "),
                             ValueError);
        torch.push_back({"state.0.step", full({}, step)});
        for (const char* const name : {"state.0.exp_avg", "state.0.exp_avg_sq"})
            torch.push_back({name, full(a.shape(), 1)});
        CHECK_THROWS_WITH_AS(optimizer.load_torch_state_dict(torch),
                             doctest::Contains("a non-negative integer number of steps"), ValueError);
        StateDict old;
        for (const NamedTensor& tensor : optimizer.state_dict())
            if (tensor.name.find("rate") == std::string::npos && tensor.name.find("step") == std::string::npos)
                old.push_back(tensor);
        old.push_back({"groups.0.progress", Tensor::from<float>({0.5F, static_cast<float>(step)}, {2})});
        CHECK_THROWS_AS(optimizer.load_state_dict(old), ValueError);
        CHECK(values(state_entry(optimizer, "state.0.step")) == std::vector<double>{0});
    }
}

TEST_CASE("optimizer states: schedules continue from their initial rate") {
    Tensor a = leaf(1);
    const auto schedule = optim::step_decay(1, 0.5);
    optim::SGD first({a}, {.lr = 0.8});
    first.add_group({leaf(2)}, {.lr = 0.1});
    optim::apply(schedule, 2, first);
    const test::TempFolder folder;
    io::save(folder / "optimizer.safetensors", first.state_dict());
    optim::SGD second({a}, {.lr = 100});
    second.add_group({leaf(2)}, {.lr = 100});
    second.load_state_dict(io::load(folder / "optimizer.safetensors"));
    CHECK(second.learning_rate() == 0.2);
    CHECK(second.initial_learning_rate() == 0.8);
    CHECK(second.initial_learning_rate(1) == 0.1);
    optim::apply(schedule, 3, second);
    CHECK(second.learning_rate() == 0.1);
    CHECK(second.learning_rate(1) == 0.0125);
}

TEST_CASE("optimizers: frozen parameters are accepted, unchanged, and updated once unfrozen") {
    for (const DType dtype : {DType::f32, DType::f16}) {
        CAPTURE(name_of(dtype));
        Tensor frozen = full({3}, 1, {dtype}), trained = leaf(1, dtype);
        optim::Adam optimizer({frozen, trained}, {.lr = 0.25});
        const auto step = [&] {
            optimizer.zero_grad();
            sum((frozen * trained).to(DType::f32)).backward();
            optimizer.step();
        };
        step();
        step();
        CHECK(values(frozen) == std::vector<double>(3, 1));
        CHECK(values(state_entry(optimizer, "state.0.step")) == std::vector<double>{0});
        CHECK(values(trained)[0] == doctest::Approx(0.5).epsilon(1e-3));
        frozen.set_requires_grad();
        step();
        CHECK(values(frozen)[0] == doctest::Approx(0.75).epsilon(1e-3));
    }
    // All parameters of a partly frozen model, as PyTorch programs pass them.
    nn::Linear layer(3, 2);
    layer.parameters()[0].set_requires_grad(false);
    optim::SGD optimizer(layer.named_parameters(), {.lr = 1, .momentum = 0.9});
    optimizer.add_group({zeros({2})}, {});
    const auto weight = values(layer.parameters()[0]), bias = values(layer.parameters()[1]);
    sum(layer(ones({4, 3}))).backward();
    optimizer.step();
    CHECK(values(layer.parameters()[0]) == weight);
    CHECK(values(layer.parameters()[1])[0] == doctest::Approx(bias[0] - 4));
}
