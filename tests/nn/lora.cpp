// Low-rank adapters: results, training, merging, files, and frozen 16-bit weights.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/atomic_file.hpp>
#include <declivity/io/lora.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using test::difference;
using test::random_tensor;
using test::values;

namespace {

struct LoraNet : nn::Layer {
    nn::Linear& q_proj = add("q_proj", nn::Linear(5, 7));
    nn::Linear& head = add("head", nn::Linear(7, 3, {.bias = false}));
    Tensor forward(Tensor x) override { return head(tanh(q_proj(x))); }
};

/// Nonzero values for B, which starts at 0.
void fill_adapters(nn::Module& model) {
    const NoGrad no_grad;
    std::uint64_t seed = 90;
    for (const Tensor& lora_parameter : nn::lora_parameters(model))
        Tensor(lora_parameter).copy_(random_tensor(lora_parameter.shape(), ++seed).to(lora_parameter.dtype()));
}

void check_untouched(const LoraNet& net) {
    CHECK(nn::adapted_layers(net).empty());
    CHECK(net.parameters().size() == 3);
    for (const Tensor& parameter : net.parameters()) CHECK(parameter.requires_grad());
}

void write(const std::filesystem::path& path, const std::string& text) {
    io::write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("lora: adapters add scale B A x, and only they are trained") {
    LoraNet net;
    const Tensor x = random_tensor({4, 5}, 1);
    const auto before = values(net(x));
    CHECK(nn::add_lora(net, {.r = 2, .lora_alpha = 6, .target_modules = {"q_proj"}}) ==
          std::vector<std::string>{"q_proj"});
    CHECK(values(net(x)) == before);  // B is 0
    fill_adapters(net);
    const nn::Lora& lora = *net.q_proj.lora();
    const Tensor weight = net.q_proj.weight() + matmul(lora.b(), lora.a()) * 3;
    const Tensor expected = matmul(tanh(linear(x, weight, net.q_proj.bias())), transpose(net.head.weight()));
    CHECK(difference(net(x), values(expected), {1e-5, 1e-5}) == "");
    sum(net(x)).backward();
    for (const auto& [name, tensor] : net.named_parameters()) {
        CAPTURE(name);
        CHECK(tensor.grad().defined() == (name.find(".lora.") != std::string::npos));
    }
    CHECK(nn::lora_parameters(net).size() == 2);
    CHECK_THROWS_AS(nn::add_lora(net), ValueError);
    LoraNet other;
    CHECK_THROWS_AS(nn::add_lora(other, {.target_modules = {"q_proj", "v_proj"}}), ValueError);
    CHECK(other.q_proj.lora() == nullptr);
    for (const nn::LoraOptions& bad : {nn::LoraOptions{.r = 0}, {.lora_alpha = NAN}, {.lora_dropout = 2}})
        CHECK_THROWS_AS(nn::add_lora(other, bad), ValueError);
    for (const nn::LoraOptions& bad : {nn::LoraOptions{.base_dtype = DType::i32}, {.dtype = DType::i32}})
        CHECK_THROWS_AS(nn::add_lora(other, bad), TypeError);
    CHECK(other.q_proj.weight().requires_grad());  // nothing was changed
    CHECK_THROWS_AS(other.q_proj.merge_lora(), ValueError);
    LoraNet scaled;
    nn::add_lora(scaled, {.r = 4, .lora_alpha = 6, .use_rslora = true});
    fill_adapters(scaled);
    const nn::Lora& head_lora = *scaled.head.lora();
    CHECK(difference(head_lora.delta(), values(matmul(head_lora.b(), head_lora.a()) * 3), {1e-5, 1e-5}) == "");
}

TEST_CASE("lora: merged and unmerged layers compute the same") {
    LoraNet net;
    const Tensor x = random_tensor({4, 5}, 1);
    nn::add_lora(net, {.r = 2});
    fill_adapters(net);
    const auto expected = values(net(x));
    const auto weight = values(net.head.weight());
    for (int i = 0; i < 2; ++i) nn::merge_lora(net);  // the second time does nothing
    CHECK(difference(net(x), expected, {1e-5, 1e-5}) == "");
    CHECK(values(net.head.weight()) != weight);
    for (int i = 0; i < 2; ++i) nn::unmerge_lora(net);
    CHECK(difference(net.head.weight(), weight, {1e-5, 1e-5}) == "");
    CHECK(difference(net(x), expected, {1e-5, 1e-5}) == "");
}

TEST_CASE("lora: frozen f16 and bf16 weights with f32 adapters") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        LoraNet reduced, full_precision;
        reduced.load_state_dict(full_precision.state_dict());
        for (nn::Linear* layer : {&full_precision.q_proj, &full_precision.head})  // the same values, rounded
            for (Tensor tensor : {layer->weight(), layer->bias()}) {
                const NoGrad no_grad;
                if (tensor.defined()) tensor.copy_(tensor.to(dtype).to(DType::f32));
            }
        std::vector<std::vector<double>> results, gradients;
        for (LoraNet* net : {&reduced, &full_precision}) {
            nn::LoraOptions options{.r = 2, .target_modules = {"head"}};
            if (net == &reduced) options.base_dtype = dtype;
            nn::add_lora(*net, options);
            fill_adapters(*net);
            const Tensor x = random_tensor({4, 5}, 1).set_requires_grad();
            const Tensor y = (*net)(x);
            CHECK(y.dtype() == DType::f32);
            sum(square(y)).backward();
            results.push_back(values(y));
            gradients.push_back(values(x.grad()));
        }
        for (const nn::Linear* layer : {&reduced.q_proj, &reduced.head}) CHECK(layer->weight().dtype() == dtype);
        CHECK(reduced.head.lora()->a().dtype() == DType::f32);
        CHECK(difference(results[0], results[1], {1e-5, 1e-5}) == "");
        CHECK(difference(gradients[0], gradients[1], {1e-5, 1e-5}) == "");
    }
}

TEST_CASE("lora: adapters of any type in an f16 or bf16 model") {
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const DType adapter_dtype : {DType::f32, dtype}) {
            CAPTURE(name_of(dtype));
            CAPTURE(name_of(adapter_dtype));
            LoraNet net, wide;
            net.to(dtype);
            StateDict state = net.state_dict();
            for (NamedTensor& item : state) item.tensor = item.tensor.to(DType::f32);
            wide.load_state_dict(state);
            for (LoraNet* const item : {&net, &wide}) {
                nn::add_lora(*item, {.r = 2, .dtype = item == &net ? adapter_dtype : DType::f32});
                fill_adapters(*item);
            }
            Tensor x = random_tensor({4, 5}, 1).to(dtype);
            const Tensor y = net(x);
            CHECK(y.dtype() == dtype);
            CHECK(difference(y.to(DType::f32), values(wide(x.to(DType::f32))), {2e-2, 2e-2}) == "");
            sum(square(y)).backward();
            for (const Tensor& lora_parameter : nn::lora_parameters(net)) {
                CHECK(lora_parameter.grad().dtype() == adapter_dtype);
                CHECK(sum(square(lora_parameter.grad().to(DType::f32))).item<float>() > 0);
            }
            nn::merge_lora(net);
            CHECK(difference(net(x).to(DType::f32), values(y.to(DType::f32)), {3e-2, 3e-2}) == "");
        }
}

TEST_CASE("lora: files with PEFT's names") {
    const test::TempFolder folder;
    LoraNet net;
    CHECK_THROWS_AS(io::save_lora(net, folder.path()), ValueError);
    nn::add_lora(net, {.r = 2, .lora_alpha = 3, .target_modules = {"head"}});
    fill_adapters(net);
    io::save_lora(net, folder.path());
    const io::Safetensors file = io::read_safetensors(folder.path() / "adapter_model.safetensors");
    CHECK(file.arrays.size() == 2);
    CHECK(file.arrays.contains("base_model.model.head.lora_A.weight"));
    CHECK(file.arrays.at("base_model.model.head.lora_B.weight").shape == Shape{3, 2});
    LoraNet other;
    other.load_state_dict([&] {
        StateDict base;
        for (const NamedTensor& tensor : net.state_dict())
            if (tensor.name.find(".lora.") == std::string::npos) base.push_back(tensor);
        return base;
    }());
    io::load_lora(other, folder.path());
    const Tensor x = random_tensor({4, 5}, 1);
    CHECK(values(other(x)) == values(net(x)));
    LoraNet third;
    nn::add_lora(third, {.r = 3, .target_modules = {"head"}});
    CHECK_THROWS_AS(io::load_lora(third, folder.path()), ShapeError);
    LoraNet fourth;
    nn::add_lora(fourth, {.r = 2, .target_modules = {"q_proj"}});
    CHECK_THROWS_AS(io::load_lora(fourth, folder.path()), ValueError);
    for (const char* text :
         {"{", "[]", R"({"r": 0})", R"({"r": "2"})", R"({"peft_type": "LOHA"})", R"({"target_modules": [1]})",
          R"({"target_modules": ".*head"})", R"({"lora_dropout": 2})", R"({"bias": "all"})", R"({"use_dora": true})",
          R"({"rank_pattern": {"head": 3}})", R"({"lora_alpha": true})"}) {
        CAPTURE(text);
        write(folder.path() / "adapter_config.json", text);
        LoraNet loaded;
        CHECK_THROWS_AS(io::load_lora(loaded, folder.path()), FormatError);
        check_untouched(loaded);
    }
}

TEST_CASE("lora: a mismatched file changes nothing and is named") {
    const test::TempFolder folder;
    LoraNet net;
    nn::add_lora(net, {.r = 2, .lora_alpha = 3, .target_modules = {"head"}});
    fill_adapters(net);
    io::save_lora(net, folder.path());
    const std::filesystem::path config = folder / "adapter_config.json", weights = folder / "adapter_model.safetensors";
    const auto check_error = [&](const char* text, const std::filesystem::path& named_file) {
        CAPTURE(text);
        write(config, text);
        LoraNet loaded;
        try {
            io::load_lora(loaded, folder.path());
            CHECK(false);
        } catch (const Error& error) {
            const std::string message = error.what();
            CHECK_MESSAGE(message.find(named_file.string()) != std::string::npos, message);
            CHECK_MESSAGE(message.find("load_lora") != std::string::npos, message);
        }
        check_untouched(loaded);
    };
    check_error(R"({"r": 3, "target_modules": ["head"]})", weights);            // rank differs from the arrays
    check_error(R"({"r": 2, "target_modules": ["head", "q_proj"]})", weights);  // arrays are missing
    check_error(R"({"r": 2, "target_modules": ["q_proj"]})", weights);          // extra arrays
    check_error(R"({"r": 2, "target_modules": ["nowhere"]})", config);
    check_error(R"({"r": 2, "target_modules": ["head"], "lora_alpha": "x"})", config);
    write(config, R"({"r": 2, "lora_alpha": 3, "target_modules": ["head"]})");
    io::Safetensors file = io::read_safetensors(weights);
    io::HostArray& b = file.arrays.at("base_model.model.head.lora_B.weight");
    b = io::HostArray::of(b.shape, std::vector<std::int32_t>(6, 1));
    io::write_safetensors(weights, file);
    check_error(R"({"r": 2, "lora_alpha": 3, "target_modules": ["head"]})", weights);  // integers
    std::filesystem::remove(weights);
    check_error(R"({"r": 2, "lora_alpha": 3, "target_modules": ["head"]})", weights);
    std::filesystem::remove(config);
    LoraNet loaded;
    CHECK_THROWS_AS(io::load_lora(loaded, folder.path()), IoError);
    check_untouched(loaded);
}

TEST_CASE("lora: the adapter options are read from the file") {
    const test::TempFolder folder;
    LoraNet net;
    nn::add_lora(net, {.r = 2, .lora_alpha = 3, .use_rslora = true, .target_modules = {"head"}});
    fill_adapters(net);
    io::save_lora(net, folder.path());
    LoraNet other;
    nn::add_lora(other, {.r = 2, .lora_alpha = 50, .lora_dropout = 0.5, .target_modules = {"head"}});
    io::load_lora(other, folder.path());
    const nn::LoraOptions& options = other.head.lora()->options();
    CHECK(options.lora_alpha == 3);
    CHECK(options.lora_dropout == 0);
    CHECK(options.use_rslora);
    CHECK(values(other.head.lora()->delta()) == values(net.head.lora()->delta()));
    // A mismatched file leaves values and options unchanged.
    LoraNet third;
    nn::add_lora(third, {.r = 3, .lora_alpha = 50, .target_modules = {"head"}});
    fill_adapters(third);
    const std::vector<double> before = values(third.head.lora()->delta());
    CHECK_THROWS_AS(io::load_lora(third, folder.path()), ShapeError);
    CHECK(third.head.lora()->options().lora_alpha == 50);
    CHECK(values(third.head.lora()->delta()) == before);
    // Values of a merged adapter are also in the weight.
    nn::merge_lora(other);
    CHECK_THROWS_AS(io::load_lora(other, folder.path()), ValueError);
    CHECK_THROWS_AS(other.head.lora()->set_options({.r = 2}), ValueError);
    nn::unmerge_lora(other);
    CHECK_THROWS_AS(other.head.lora()->set_options({.r = 3}), ValueError);
    CHECK_THROWS_AS(other.head.lora()->set_options({.r = 2, .lora_dropout = 2}), ValueError);
}

TEST_CASE("lora: a failed allocation changes nothing") {
    const Device device = [] {
        const test::Environment pool("DECLIVITY_POOL", std::nullopt), memory("DECLIVITY_MEMORY_LIMIT", "3M");
        return test::fresh_device();
    }();
    struct Wide : nn::Layer {
        nn::Linear& first = add("first", nn::Linear(256, 256));
        nn::Linear& second = add("second", nn::Linear(256, 256));
        Tensor forward(Tensor x) override { return second(first(x)); }
    };
    Wide model;
    model.to(device);
    const std::vector<double> before = values(model.first.weight());
    // One adapter fits into memory, two do not; nor do the f64 weights.
    for (const nn::LoraOptions& options :
         {nn::LoraOptions{.r = 900}, nn::LoraOptions{.r = 400, .base_dtype = DType::f64}}) {
        if (options.base_dtype && test::widest() != DType::f64) continue;
        CHECK_THROWS_AS(nn::add_lora(model, options), OutOfMemory);
        CHECK(nn::adapted_layers(model).empty());
        for (const Tensor& parameter : model.parameters()) {
            CHECK(parameter.requires_grad());
            CHECK(parameter.dtype() == DType::f32);
        }
    }
    CHECK(values(model.first.weight()) == before);
    CHECK(nn::add_lora(model, {.r = 4}) == std::vector<std::string>{"first", "second"});
}

TEST_CASE("lora: one file has adapters of one r and one set of options") {
    const test::TempFolder folder;
    LoraNet net;
    nn::add_lora(net, {.r = 2, .target_modules = {"head"}});
    net.q_proj.add_lora({.r = 3});
    CHECK_THROWS_WITH_AS(io::save_lora(net, folder.path()),
                         "save_lora: expected adapters with one r, lora_alpha, lora_dropout and use_rslora, got (r 3, "
                         "lora_alpha 8, lora_dropout 0, use_rslora false) of 'q_proj' and (r 2, lora_alpha 8, "
                         "lora_dropout 0, use_rslora false) of 'head'",
                         ValueError);
    CHECK(std::filesystem::is_empty(folder.path()));
    CHECK_THROWS_AS(nn::Linear(5, 7).add_lora(nn::Lora(5, 6, {}, test::device())), ShapeError);
    const std::uint64_t offset_before = random_state(test::device()).offset;
    CHECK_THROWS_WITH_AS(net.q_proj.add_lora({.r = 3}),
                         "Linear::add_lora: expected a layer without an adapter, got one with an adapter", ValueError);
    CHECK(random_state(test::device()).offset == offset_before);
}
