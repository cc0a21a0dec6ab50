// Lists and dictionaries of modules.
#include <declivity/nn/nn.hpp>

#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/nn/tensor_names.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

struct Gate : nn::Callable<Tensor(Tensor, Tensor)> {
    explicit Gate(std::int64_t n) : dense(add("dense", nn::Linear(n, n, {.bias = false}))) {}
    nn::Linear& dense;
    Tensor forward(Tensor x, Tensor scale) override { return dense(x) * scale; }
    const std::type_info& capture_safe() const override { return typeid(Gate); }
};

struct Net : nn::Layer {
    nn::ModuleList<Gate>& gates = add("gates", nn::ModuleList<Gate>());
    nn::ModuleDict<>& heads = add("heads", nn::ModuleDict<>());
    Net() {
        for (int i = 0; i < 3; ++i) gates.append(Gate(4));
        heads.insert("class", nn::Linear(4, 2));
        heads.emplace<nn::Sequential>("size", nn::Linear(4, 1), nn::Tanh());
    }
    Tensor forward(Tensor x) override {
        const Tensor scale = x;
        for (Gate& gate : gates) x = gate(x, scale);
        return cat({heads["class"](x), heads["size"](x)}, 1);
    }
    const std::type_info& capture_safe() const override { return typeid(Net); }
    std::string type_name() const override { return "Net"; }
};

}  // namespace

TEST_CASE("ModuleList and ModuleDict: PyTorch's names, access by index and key") {
    Net net;
    CHECK(names(net.state_dict()) == std::vector<std::string>{"gates.0.dense.weight", "gates.1.dense.weight",
                                                              "gates.2.dense.weight", "heads.class.weight",
                                                              "heads.class.bias", "heads.size.0.weight",
                                                              "heads.size.0.bias"});
    const Tensor x = random_tensor({5, 4}, 1);
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = linear(y, net.gates[i].dense.weight()) * x;
    const auto expected = values(cat({net.heads["class"](y), net.heads["size"](y)}, 1));
    CHECK(values(net(x)) == expected);
    CHECK(net.not_capture_safe().empty());
    Net moved(std::move(net));
    CHECK(values(moved(x)) == expected);
    CHECK(&moved.gates[-1] == &moved.gates[2]);
    CHECK(moved.gates.size() == 3);
    CHECK_FALSE(moved.gates.empty());
    CHECK(moved.heads.keys() == std::vector<std::string>{"class", "size"});
    CHECK(moved.heads.contains("size"));
    CHECK_FALSE(moved.heads.contains("sizes"));
    std::string order;
    for (auto [name, head] : moved.heads.items()) order += name + ":" + head.type_name() + " ";
    CHECK(order == "class:Linear size:Sequential ");
    int count = 0;
    for (nn::Layer& head : moved.heads) count += static_cast<int>(head.parameters().size());
    CHECK(count == 4);
    std::vector<std::string> paths;
    {
        const nn::ObserveCalls observe(
            [&](const std::string& path, const auto&, const auto&, const auto&) { paths.push_back(path); });
        (void)moved(x);
    }
    CHECK(paths == std::vector<std::string>{"Net/gates.0/dense", "Net/gates.0", "Net/gates.1/dense", "Net/gates.1",
                                            "Net/gates.2/dense", "Net/gates.2", "Net/heads.class", "Net/heads.size/0",
                                            "Net/heads.size/1", "Net/heads.size", "Net"});
    moved.eval();
    CHECK_FALSE(moved.gates[1].dense.training());
}

TEST_CASE("ModuleList and ModuleDict: of layers, of modules, and errors") {
    nn::ModuleList<> layers(nn::Linear(3, 2), nn::ReLU());
    CHECK(layers[0](ones({1, 3})).shape() == Shape{1, 2});
    CHECK(layers.append(nn::Dropout(0.25)).type_name() == "Dropout");
    CHECK(layers.size() == 3);
    nn::ModuleList<nn::Module> any(nn::LSTMCell(2, 3), nn::Linear(3, 2));
    CHECK(any[0].type_name() == "LSTMCell");
    nn::ModuleList<nn::Module> nested(std::move(any));
    CHECK(nested.size() == 2);
    nn::ModuleList<nn::Linear> same;
    CHECK(same.emplace(3, 2).weight().shape() == Shape{2, 3});
    CHECK(same.empty() == false);
    CHECK_THROWS_WITH_AS((void)layers[3], "ModuleList: expected the index of one of 3 modules, got 3", ValueError);
    CHECK_THROWS_WITH_AS((void)layers[-4], "ModuleList: expected the index of one of 3 modules, got -4", ValueError);
    nn::ModuleDict<nn::Linear> heads;
    heads.emplace("a", 3, 2);
    CHECK_THROWS_WITH_AS((void)heads["b"], "ModuleDict: expected one of the keys [a], got \"b\"", ValueError);
    CHECK_THROWS_AS(heads.insert("a", nn::Linear(3, 2)), ValueError);
    CHECK_THROWS_AS(heads.insert("a.b", nn::Linear(3, 2)), ValueError);
    CHECK(heads.size() == 1);
    nn::Sequential model(nn::Linear(3, 2), nn::Tanh());
    CHECK(model[-1].type_name() == "Tanh");
    CHECK_THROWS_WITH_AS((void)model[2], "Sequential: expected the index of one of 2 modules, got 2", ValueError);
    std::string types;
    for (nn::Layer& layer : model) types += layer.type_name() + " ";
    CHECK(types == "Linear Tanh ");
}

TEST_CASE("ModuleList, ModuleDict, Sequential: a captured step is captured again when a module is added") {
    const auto twice = [] { return nn::Lambda([](const Tensor& x) { return x * 2; }, "Twice"); };
    struct Holder : nn::Module {
        nn::ModuleList<>& list = add("list", nn::ModuleList<>());
        nn::ModuleDict<>& dict = add("dict", nn::ModuleDict<>());
        nn::Sequential& sequence = add("sequence", nn::Sequential());
    };
    struct Access {
        const char* label;
        Tensor (*call)(const Holder& net, Tensor x);
    };
    const std::vector<Access> accesses{
        {"list, iterated",
         [](const Holder& net, Tensor x) {
             for (nn::Layer& layer : net.list) x = layer(x);
             return x;
         }},
        {"list, by index and size()",
         [](const Holder& net, Tensor x) {
             for (std::size_t i = 0; i < net.list.size(); ++i) x = net.list[static_cast<std::int64_t>(i)](x);
             return x;
         }},
        {"list, the last", [](const Holder& net, Tensor x) { return net.list[-1](x) * (net.list.empty() ? 0 : 1); }},
        {"list, children",
         [](const Holder& net, Tensor x) {
             for (const auto& [name, layer] : net.list.children()) x = dynamic_cast<nn::Layer&>(*layer)(x);
             return x;
         }},
        {"dictionary, iterated",
         [](const Holder& net, Tensor x) {
             for (nn::Layer& layer : net.dict) x = layer(x);
             return x;
         }},
        {"dictionary, items",
         [](const Holder& net, Tensor x) {
             for (auto [name, layer] : net.dict.items()) x = layer(x);
             return x;
         }},
        {"dictionary, keys",
         [](const Holder& net, Tensor x) {
             for (const std::string& key : net.dict.keys()) x = net.dict[key](x);
             return x;
         }},
        {"dictionary, whether there is one",
         [](const Holder& net, Tensor x) { return net.dict.contains("b") ? net.dict["b"](x) : x; }},
        {"sequence, iterated",
         [](const Holder& net, Tensor x) {
             for (nn::Layer& layer : net.sequence) x = layer(x);
             return x;
         }},
        {"sequence, by size()",
         [](const Holder& net, Tensor x) { return x * static_cast<double>(net.sequence.size()); }},
        {"the number of parameters",
         [](const Holder& net, Tensor x) { return x * static_cast<double>(net.parameters().size()); }},
    };
    for (const Access& access : accesses) {
        CAPTURE(std::string(access.label));
        Holder net;
        const auto grow = [&](const std::string& key, auto make) {
            net.list.append(make());
            net.dict.insert(key, make());
            net.sequence.append(make());
        };
        grow("a", twice);
        auto step = capture([&](const Tensor& x) {
            const NoGrad no_grad;
            return access.call(net, x) + 1;
        });
        const Tensor x = ones({2});
        const auto same = [&] { return values(step(x)) == values(access.call(net, x) + 1); };
        CHECK(same());
        CHECK(same());
        CHECK(step.replayed() == 1);
        grow("b", [] { return nn::Linear(2, 2); });
        CHECK(same());
        CHECK(step.replayed() == 1);
        CHECK(same());
        CHECK(step.replayed() == 2);
    }
}
