// The keyword spotting network: its layers compared with plain C++ in double, gradients, errors.
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/models/keywords.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>
#include <tests/support/weights.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr double kPi = std::numbers::pi;

/// Channels of an image (height, width).
struct Planes {
    std::size_t channels, height, width;
    Row values;
    [[nodiscard]] double at(std::size_t c, std::ptrdiff_t y, std::ptrdiff_t x) const {
        if (y < 0 || x < 0 || y >= static_cast<std::ptrdiff_t>(height) || x >= static_cast<std::ptrdiff_t>(width))
            return 0;
        return values[(c * height + static_cast<std::size_t>(y)) * width + static_cast<std::size_t>(x)];
    }
};

struct Window {
    std::size_t height, width, stride;
    std::ptrdiff_t top, left;
    bool depthwise = false;
};

Planes conv(const Planes& x, const Row& weight, std::size_t out, const Window& geometry) {
    const auto size = [&](std::size_t n, std::size_t window, std::ptrdiff_t padding) {
        return (n + 2 * static_cast<std::size_t>(padding) - window) / geometry.stride + 1;
    };
    Planes y{out, size(x.height, geometry.height, geometry.top), size(x.width, geometry.width, geometry.left), {}};
    const std::size_t in = geometry.depthwise ? 1 : x.channels;
    for (std::size_t o = 0; o < out; ++o)
        for (std::size_t r = 0; r < y.height; ++r)
            for (std::size_t c = 0; c < y.width; ++c) {
                double total = 0;
                for (std::size_t i = 0; i < in; ++i)
                    for (std::size_t a = 0; a < geometry.height; ++a)
                        for (std::size_t b = 0; b < geometry.width; ++b)
                            total += weight[((o * in + i) * geometry.height + a) * geometry.width + b] *
                                     x.at(geometry.depthwise ? o : i,
                                          static_cast<std::ptrdiff_t>(r * geometry.stride + a) - geometry.top,
                                          static_cast<std::ptrdiff_t>(c * geometry.stride + b) - geometry.left);
                y.values.push_back(total);
            }
    return y;
}

/// In evaluation mode, with the running statistics.
void normalise(const Weights& w, const std::string& name, Planes& x, bool relu) {
    const std::size_t size = x.height * x.width;
    for (std::size_t i = 0; i < x.values.size(); ++i) {
        const std::size_t c = i / size;
        double& v = x.values[i];
        v = (v - w.at(name + ".running_mean")[c]) / std::sqrt(w.at(name + ".running_var")[c] + 1e-5) *
                w.at(name + ".weight")[c] +
            w.at(name + ".bias")[c];
        if (relu) v = std::max(v, 0.0);
    }
}

/// Log-mel spectrogram of one audio clip.
Planes log_mels(const models::KeywordCNNConfig& config, const Row& samples) {
    const auto n = static_cast<std::size_t>(config.n_fft), hop = static_cast<std::size_t>(config.hop_length);
    const auto mels = static_cast<std::size_t>(config.n_mels);
    const auto length = static_cast<std::ptrdiff_t>(samples.size());
    const std::size_t frames = samples.size() / hop + 1, bins = n / 2 + 1;
    const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
    const double low = mel(config.f_min), high = mel(static_cast<double>(config.sample_rate) / 2);
    const auto edge = [&](std::size_t i) {
        const double m = low + (high - low) * static_cast<double>(i) / static_cast<double>(mels + 1);
        return 700 * (std::pow(10, m / 2595) - 1);
    };
    Planes y{mels, 1, frames, Row(mels * frames, 1e-6)};
    for (std::size_t t = 0; t < frames; ++t)
        for (std::size_t k = 0; k < bins; ++k) {
            double re = 0, im = 0;
            for (std::size_t i = 0; i < n; ++i) {
                std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t * hop + i) - static_cast<std::ptrdiff_t>(n / 2);
                if (at < 0) at = -at;  // reflected at both ends
                if (at >= length) at = 2 * (length - 1) - at;
                const double angle = 2 * kPi * static_cast<double>(i) / static_cast<double>(n);
                const double v = samples[static_cast<std::size_t>(at)] * (0.5 - 0.5 * std::cos(angle));
                re += v * std::cos(angle * static_cast<double>(k));
                im += v * std::sin(angle * static_cast<double>(k));
            }
            const double f = static_cast<double>(config.sample_rate) * static_cast<double>(k) / static_cast<double>(n);
            for (std::size_t m = 0; m < mels; ++m) {
                const double rising = (f - edge(m)) / (edge(m + 1) - edge(m)),
                             falling = (edge(m + 2) - f) / (edge(m + 2) - edge(m + 1));
                y.values[m * frames + t] += std::max(0.0, std::min(rising, falling)) * (re * re + im * im);
            }
        }
    for (double& value : y.values) value = std::log(value);
    return y;
}

Row logits(const models::KeywordCNNConfig& config, const Weights& w, const Row& samples) {
    Planes x = log_mels(config, samples);
    double mean = 0;
    for (const double value : x.values) mean += value / static_cast<double>(x.values.size());
    for (double& value : x.values) value -= mean;
    normalise(w, "norm", x, false);
    std::swap(x.channels, x.height);  // one channel of (mels, frames)
    const auto channels = static_cast<std::size_t>(config.channels);
    x = conv(x, w.at("stem.0.weight"), channels, {4, 10, 2, 2, 5});
    normalise(w, "stem.1", x, true);
    for (std::int64_t block = 0; block < config.blocks; ++block) {
        const std::string name = "blocks." + std::to_string(block);
        x = conv(x, w.at(name + ".0.weight"), channels, {3, 3, 1, 1, 1, true});
        normalise(w, name + ".1", x, true);
        x = conv(x, w.at(name + ".3.weight"), channels, {1, 1, 1, 0, 0});
        normalise(w, name + ".4", x, true);
    }
    Row y = w.at("classifier.bias");
    for (std::size_t o = 0; o < y.size(); ++o)
        for (std::size_t i = 0; i < x.values.size(); ++i)
            y[o] += w.at("classifier.weight")[o * channels + i / (x.height * x.width)] * x.values[i] /
                    static_cast<double>(x.height * x.width);
    return y;
}

}  // namespace

TEST_CASE("KeywordCNN: results and gradients match plain C++") {
    const models::KeywordCNNConfig config{.classes = 3,
                                          .sample_rate = 1000,
                                          .n_fft = 32,
                                          .hop_length = 11,
                                          .n_mels = 7,
                                          .f_min = 30,
                                          .channels = 5,
                                          .blocks = 2};
    for (const DType dtype : floats()) {
        models::KeywordCNN model(config, {.dtype = dtype});
        CHECK(model.not_capture_safe() == "");
        std::uint64_t seed = 60;
        {
            const NoGrad no_grad;
            for (const auto& [name, tensor] : model.state_dict()) {
                if (name.starts_with("mel.") || !is_floating(tensor.dtype())) continue;
                Tensor to = tensor;
                const bool scale = name.ends_with("running_var") || (tensor.rank() == 1 && name.ends_with("weight"));
                to.copy_(random_tensor(tensor.shape(), ++seed, dtype, scale ? 0.5 : -0.8, scale ? 1.5 : 0.9));
            }
        }
        model.eval();
        const std::int64_t length = small_cases() ? 60 : 130;
        const Tensor samples = random_tensor({2, length}, 8, dtype);
        const Row all = values(samples);
        std::vector<Row> command_lists;
        for (std::ptrdiff_t i = 0; i < 2; ++i)
            command_lists.emplace_back(all.begin() + i * length, all.begin() + (i + 1) * length);
        const auto reference = [&] {
            const Weights w = weights_of(model);
            Row out;
            for (const Row& command_list : command_lists)
                for (const double v : logits(config, w, command_list)) out.push_back(v);
            return out;
        };
        const Tensor y = model(samples);
        CHECK(difference(y, reference(), {dtype == DType::f64 ? 1e-9 : 2e-4, 1e-4}) == "");
        Row mels;
        for (const Row& command_list : command_lists)
            for (const double v : log_mels(config, command_list).values) mels.push_back(v);
        CHECK(difference(model.features(samples), mels, {dtype == DType::f64 ? 1e-9 : 1e-3, 1e-4}) == "");
        if (dtype != DType::f64) continue;
        const Row factors = random_values(y.numel(), 77);
        y.backward(tensor(factors, y.shape(), dtype));
        std::vector<Tensor> gradients;
        for (const Tensor& parameter : model.parameters()) gradients.push_back(parameter.grad());
        const auto loss = [&] {
            const Row out = reference();
            double total = 0;
            for (std::size_t i = 0; i < out.size(); ++i) total += factors[i] * out[i];
            return total;
        };
        CHECK(numeric_difference(model.parameters(), gradients, loss, {.max_elements = 4}) == "");
        const NoGrad no_grad;
        // The result does not depend on the volume.
        CHECK(difference(model(samples * 2), values(y), {1e-4, 1e-4}) == "");
    }
}

TEST_CASE("KeywordCNN: error messages") {
    using models::KeywordCNN;
    KeywordCNN model({.classes = 2, .n_fft = 64, .hop_length = 32, .n_mels = 5, .channels = 4, .blocks = 1});
    CHECK(error_without_context<ShapeError>([&] { (void)model(zeros({200})); }) ==
          "KeywordCNN: expected samples of shape (N, T) with T of at least 33, got [200]");
    CHECK(error_without_context<ShapeError>([&] {
              (void)model(zeros({2, 32}));
          }) == "KeywordCNN: expected samples of shape (N, T) with T of at least 33, got [2, 32]");
    CHECK(error_without_context<TypeError>([&] {
              (void)model(zeros({2, 99}, {.dtype = DType::i64}));
          }).starts_with("KeywordCNN: "));
    CHECK(model(zeros({2, 33})).shape() == Shape{2, 2});
    CHECK(error_without_context<ValueError>([] { (void)KeywordCNN({.classes = 0}); }) ==
          "KeywordCNNConfig::classes: expected at least 1, got 0");
    CHECK(error_without_context<ValueError>([] { (void)KeywordCNN({.classes = 2, .f_min = 9000}); }) ==
          "KeywordCNNConfig::f_min: expected at least 0 and less than half the sample rate, got 9000");
    CHECK(error_without_context<ValueError>([] { (void)KeywordCNN({.classes = 2, .dropout = 1}); }) ==
          "KeywordCNNConfig::dropout: expected at least 0 and less than 1, got 1");
}
