// One tensor registered twice: counted once, trained by both uses, saved under both names.
#include <declivity/nn/nn.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/nn/tensor_names.hpp>
#include "tests/support/temp_folder.hpp"
#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr int kInputs = 5, kHidden = 3;

/// x W, with another layer's W.
struct Decoder : nn::Layer {
    explicit Decoder(const Tensor& shared) : weight(parameter("weight", shared)), mean(buffer("mean", zeros({1}))) {}
    Tensor weight, mean;
    Tensor forward(Tensor x) override { return matmul(x, weight); }
    std::string type_name() const override { return "Decoder"; }
};

/// x W^T W.
struct Autoencoder : nn::Layer {
    nn::Linear& encoder = add("encoder", nn::Linear(kInputs, kHidden, {.bias = false}));
    Decoder& decoder = add("decoder", Decoder(encoder.weight()));
    Tensor shared_mean = buffer("mean", decoder.mean);

    Tensor forward(Tensor x) override { return decoder(encoder(x)); }
    std::string type_name() const override { return "Autoencoder"; }
};

using Matrix = std::vector<std::vector<double>>;

Matrix matrix(const std::vector<double>& values, std::size_t columns) {
    Matrix out(values.size() / columns);
    for (std::size_t i = 0; i < values.size(); ++i) out[i / columns].push_back(values[i]);
    return out;
}
Matrix product(const Matrix& a, const Matrix& b) {
    Matrix out(a.size(), std::vector<double>(b[0].size(), 0));
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t k = 0; k < b.size(); ++k)
            for (std::size_t j = 0; j < b[0].size(); ++j) out[i][j] += a[i][k] * b[k][j];
    return out;
}
Matrix transposed(const Matrix& a) {
    Matrix out(a[0].size(), std::vector<double>(a.size()));
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < a[0].size(); ++j) out[j][i] = a[i][j];
    return out;
}
std::vector<double> flattened(const Matrix& a) {
    std::vector<double> out;
    for (const auto& row : a) out.insert(out.end(), row.begin(), row.end());
    return out;
}

/// One step of gradient descent on |x W^T W - x|^2 in double: its gradient is 2 W (x^T e + e^T x).
Matrix gradient_step(const Matrix& w, const Matrix& x, double rate) {
    Matrix e = product(product(x, transposed(w)), w);
    for (std::size_t i = 0; i < e.size(); ++i)
        for (std::size_t j = 0; j < e[0].size(); ++j) e[i][j] -= x[i][j];
    Matrix s = product(transposed(x), e);
    const Matrix t = transposed(s);
    for (std::size_t i = 0; i < s.size(); ++i)
        for (std::size_t j = 0; j < s.size(); ++j) s[i][j] += t[i][j];
    const Matrix g = product(w, s);
    Matrix out = w;
    for (std::size_t i = 0; i < w.size(); ++i)
        for (std::size_t j = 0; j < w[0].size(); ++j) out[i][j] -= rate * 2 * g[i][j];
    return out;
}

}  // namespace

TEST_CASE("tied weights: counted once, named twice") {
    Autoencoder model;
    CHECK(model.parameters().size() == 1);
    CHECK(names(model.named_parameters()) == std::vector<std::string>{"encoder.weight"});
    CHECK(names(model.named_buffers()) == std::vector<std::string>{"mean"});
    CHECK(names(model.state_dict()) ==
          std::vector<std::string>{"mean", "encoder.weight", "decoder.weight", "decoder.mean"});
    CHECK(names(model.decoder.named_parameters()) == std::vector<std::string>{"weight"});
    // A line of the summary counts the layer's parameters, the last line counts each parameter once.
    const std::string summary = model.summary({7, kInputs});
    const std::string last = summary.substr(summary.find("total for"));
    CHECK(last.find(" 15 ") != std::string::npos);
    CHECK(last.find(" 30 ") == std::string::npos);
    const auto decoder = summary.find("Autoencoder/decoder");
    REQUIRE(decoder != std::string::npos);
    CHECK(summary.substr(decoder, summary.find('\n', decoder) - decoder).find(" 15 ") != std::string::npos);
}

TEST_CASE("tied weights: trained by both uses") {
    Autoencoder model;
    const Tensor x = random_tensor({7, kInputs}, 1);
    Matrix expected = matrix(values(model.encoder.weight()), kInputs);
    optim::SGD optimizer(model.parameters(), {.lr = 0.01});
    for (int step = 0; step < 5; ++step) {
        optimizer.zero_grad();
        sum(square(model(x) - x)).backward();
        optimizer.step();
        expected = gradient_step(expected, matrix(values(x), kInputs), 0.01);
        CHECK(difference(model.encoder.weight(), flattened(expected), {1e-5, 1e-5}) == "");
        CHECK(state_of(model.decoder.weight) == state_of(model.encoder.weight()));
    }
    // Other functions over all parameters also use it once.
    optim::Adam adam(model.parameters(), {.lr = 0.01});
    const auto loss = [&] { return sum(square(model(x) - x)); };
    const double before = loss().item<float>();
    for (int step = 0; step < 20; ++step) {
        model.zero_grad();
        loss().backward();
        const double norm = optim::clip_grad_norm(model.parameters(), 0.5).item<float>();
        double squares = 0;
        for (const double g : values(model.encoder.weight().grad())) squares += g * g;
        CHECK(std::sqrt(squares) == doctest::Approx(std::min(norm, 0.5)).epsilon(1e-4));
        adam.step();
    }
    CHECK(loss().item<float>() < before);
}

TEST_CASE("tied weights: saved and loaded under both names") {
    const TempFolder folder;
    Autoencoder a, b;
    const Tensor x = random_tensor({7, kInputs}, 2);
    const auto expected = values(a(x));
    CHECK(values(b(x)) != expected);
    b.load_state_dict(a.state_dict());
    CHECK(values(b(x)) == expected);
    CHECK(state_of(b.decoder.weight) == state_of(b.encoder.weight()));

    io::save(folder / "tied.safetensors", a.state_dict());
    const auto loaded = io::load(folder / "tied.safetensors");
    CHECK(loaded.size() == 4);
    Autoencoder c;
    c.load_state_dict(loaded);
    CHECK(values(c(x)) == expected);
    CHECK(values(c.decoder.weight) == values(a.encoder.weight()));
    CHECK(c.parameters().size() == 1);
    auto one_name = loaded;
    std::erase_if(one_name, [](const NamedTensor& tensor) { return tensor.name == "decoder.weight"; });
    Autoencoder d;
    d.load_state_dict(one_name);  // files of other libraries have either name
    CHECK(values(d(x)) == expected);
    auto other_name = loaded;
    std::erase_if(other_name, [](const NamedTensor& item) { return item.name == "encoder.weight"; });
    Autoencoder e;
    e.load_state_dict(other_name);
    CHECK(values(e(x)) == expected);
    std::erase_if(other_name, [](const NamedTensor& element) { return element.name == "decoder.weight"; });
    CHECK_THROWS_WITH_AS(e.load_state_dict(other_name), doctest::Contains("missing: [encoder.weight, decoder.weight]"),
                         ValueError);
    // Different values are refused, strict or not, and nothing is loaded.
    auto two_values = loaded;
    for (auto& [name, tensor] : two_values)
        if (name == "decoder.weight") tensor = tensor + 1;
    for (const bool strict : {true, false})
        CHECK_THROWS_WITH_AS(
            d.load_state_dict(two_values, strict),
            "load_state_dict: expected the same values for 'encoder.weight' and 'decoder.weight', which "
            "are one tensor here, got different ones",
            ValueError);
    CHECK(values(d(x)) == expected);
    // NaN equals itself: bits are compared.
    auto broken = loaded;
    for (auto& [name, tensor] : broken)
        if (name.ends_with("coder.weight")) tensor = full(tensor.shape(), NAN);
    d.load_state_dict(broken);
    CHECK(std::isnan(values(d.encoder.weight())[0]));

    // To another type and back: still one tensor under both handles.
    c.to(DType::f16);
    CHECK(c.decoder.weight.dtype() == DType::f16);
    c.to(DType::f32);
    CHECK(state_of(c.decoder.weight) == state_of(c.encoder.weight()));
    CHECK(difference(c(x), expected, {1e-2, 1e-2}) == "");
    sum(c(x)).backward();
    CHECK(c.encoder.weight().grad().defined());
    c.zero_grad();
    CHECK_FALSE(c.decoder.weight.grad().defined());
}
