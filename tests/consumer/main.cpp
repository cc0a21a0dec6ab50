// A user's program: trains a few steps, saves, loads and compares.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

// A user-defined module with children from the library.
struct Net : nn::Layer {
    nn::Conv2d& conv = add("conv", nn::Conv2d(1, 4, 3));
    nn::BatchNorm& norm = add("norm", nn::BatchNorm(4));
    nn::Linear& dense = add("dense", nn::Linear(4 * 3 * 3, 3));
    Tensor forward(Tensor x) override { return dense(flatten(max_pool2d(relu(norm(conv(x))), {.kernel_size = 2}))); }
};

/// References templates of the library, so that they are linked.
bool has_recurrent_layers() {
    nn::LSTM lstm(3, 5, {.num_layers = 2});
    nn::GRU gru(3, 5);
    nn::RNN rnn(3, 5);
    const Tensor x = normal({4, 2, 3});
    return lstm(x).y.shape() == gru(x).y.shape() && gru(x).y.shape() == rnn(x).y.shape();
}

int complain(const std::string& what) {
    std::fprintf(stderr, "consumer: %s\n", what.c_str());
    return 1;
}

// Exceptions keep their type across the library boundary.
template <class Expected, class Call>
bool throws(Call&& call) {
    try {
        call();
    } catch (const Expected& error) {
        return std::strlen(error.what()) > 0;
    } catch (...) {
    }
    return false;
}

bool same(const StateDict& a, const StateDict& b) {
    if (a.size() != b.size()) return false;
    for (const NamedTensor& expected : a) {
        bool found = false;
        for (const NamedTensor& got : b)
            found = found || (got.name == expected.name && got.tensor.shape() == expected.tensor.shape() &&
                              got.tensor.dtype() == expected.tensor.dtype() &&
                              (got.tensor.dtype() == DType::f32
                                   ? got.tensor.to_vector<float>() == expected.tensor.to_vector<float>()
                                   : got.tensor.numel() == expected.tensor.numel()));
        if (!found) return false;
    }
    return true;
}

int run(const std::filesystem::path& file) {
    std::printf("declivity %.*s\n", static_cast<int>(kVersion.size()), kVersion.data());
    std::printf("%s\n", Shape({2, 3}).str().c_str());
    std::printf("device: %s\n", default_device().name().c_str());

    manual_seed(3);
    Net model;
    const Tensor x = normal({24, 1, 8, 8});
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < 24; ++i) classes.push_back(i % 3);
    const Tensor labels = Tensor::from(classes, {24});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    float first = 0, last = 0;
    for (int step = 0; step < 10; ++step) {
        model.zero_grad();
        const Tensor loss = cross_entropy(model(x), labels);
        loss.backward();
        optimizer.step();
        last = loss.item<float>();
        if (step == 0) first = last;
    }
    std::printf("loss: %.3f to %.3f\n", first, last);
    if (!(last < 0.8F * first)) return complain("the loss did not fall");

    io::save(file, model.state_dict());
    const StateDict loaded = io::load(file);
    if (!same(model.state_dict(), loaded)) return complain("what was loaded is not what was saved");
    Net other;
    other.load_state_dict(loaded);
    model.eval();
    other.eval();
    if (model(x).to_vector<float>() != other(x).to_vector<float>())
        return complain("the loaded network computes something else");

    // The trainer with a data set of the library.
    data::SyntheticDigits digits(64, 1);
    nn::Sequential network(nn::Flatten(), nn::Linear(28 * 28, 10));
    optim::Adam adam(network.parameters(), {.lr = 1e-3});
    train::Trainer trainer(network, adam);
    trainer.fit(digits, digits, {.epochs = 1, .batch = 32, .quiet = true});
    if (!(trainer.evaluate(digits)["accuracy"] >= 0)) return complain("the trainer has no accuracy");

    // A custom function that the library calls and differentiates.
    const CustomFunction triple{
        .name = "triple",
        .forward = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 3.0}; },
        .backward = [](const std::vector<Tensor>&, const std::vector<Tensor>&,
                       const std::vector<Tensor>& g) { return std::vector<Tensor>{g[0] * 3.0}; }};
    const Tensor a = uniform({2, 3}).set_requires_grad();
    sum(triple({a})[0]).backward();
    if (a.grad().to_vector<float>() != std::vector<float>(6, 3.0F))
        return complain("a function of its own has a wrong gradient");

    if (!throws<ShapeError>([&] { (void)matmul(a, a); })) return complain("a wrong shape is no ShapeError");
    if (!throws<Error>([&] { (void)matmul(a, a); })) return complain("a wrong shape is no Error");
    if (!throws<std::runtime_error>([&] { (void)matmul(a, a); }))
        return complain("a wrong shape is no std::runtime_error");
    if (!throws<TypeError>([&] { (void)a.to_vector<double>(); })) return complain("a wrong type is no TypeError");
    if (!throws<IoError>([&] { (void)io::load(file.string() + ".missing"); }))
        return complain("a missing file is no IoError");
    // Modules keep their type too, whether their class is from the program or the library.
    nn::Module* child = model.children().at(0).second;
    if (dynamic_cast<nn::Conv2d*>(child) == nullptr || dynamic_cast<nn::Linear*>(child) != nullptr)
        return complain("a module has lost its type");
    std::printf("saved, loaded and compared\n");
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return run(count > 1 ? arguments[1] : "consumer.safetensors");
    } catch (const std::exception& error) {
        return complain(error.what());
    }
}
