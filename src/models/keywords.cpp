#include <declivity/models/keywords.hpp>

#include <declivity/nn/functional.hpp>

#include "checks.hpp"
#include "parts.hpp"

namespace declivity::models {
namespace {

constexpr double kSilence = 1e-6;  // added to powers, so that their logarithm is bounded

nn::Conv2dOptions without_bias(nn::Conv2dOptions conv, const ModelOptions& options) {
    conv.bias = false;  // the normalisation layer has its own bias
    conv.dtype = options.dtype;
    conv.device = options.device;
    return conv;
}

void append_conv_norm_relu(nn::Sequential& layers, nn::Conv2d conv, std::int64_t channels,
                           const ModelOptions& options) {
    layers.append(std::move(conv));
    layers.append(nn::BatchNorm2d(channels, {.dtype = options.dtype, .device = options.device}));
    layers.append(nn::ReLU());
}

nn::Sequential stem(const KeywordCNNConfig& config, const ModelOptions& options) {
    nn::Sequential layers;
    append_conv_norm_relu(
        layers, nn::Conv2d(1, config.channels, {4, 10}, without_bias({.stride = 2, .padding = {2, 5}}, options)),
        config.channels, options);
    return layers;
}

nn::Sequential block(const KeywordCNNConfig& config, const ModelOptions& options) {
    nn::Sequential layers;
    append_conv_norm_relu(layers,
                          nn::Conv2d(config.channels, config.channels, 3,
                                     without_bias({.padding = 1, .groups = config.channels}, options)),
                          config.channels, options);
    append_conv_norm_relu(layers, nn::Conv2d(config.channels, config.channels, 1, without_bias({}, options)),
                          config.channels, options);
    return layers;
}

nn::Sequential blocks(const KeywordCNNConfig& config, const ModelOptions& options) {
    nn::Sequential layers;
    for (std::int64_t i = 0; i < config.blocks; ++i) layers.append(block(config, options));
    return layers;
}

}  // namespace

void KeywordCNNConfig::check() const {
    require_at_least("KeywordCNNConfig::classes", classes, 1);
    require_at_least("KeywordCNNConfig::sample_rate", sample_rate, 1);
    require_at_least("KeywordCNNConfig::n_fft", n_fft, 2);
    require_at_least("KeywordCNNConfig::hop_length", hop_length, 1);
    require_at_least("KeywordCNNConfig::n_mels", n_mels, 1);
    require_at_least("KeywordCNNConfig::channels", channels, 1);
    require_at_least("KeywordCNNConfig::blocks", blocks, 0);
    if (!(f_min >= 0) || !(f_min < static_cast<double>(sample_rate) / 2))
        throw ValueError(
            fmt::format("KeywordCNNConfig::f_min: expected at least 0 and less than half the sample rate, "
                        "got {}",
                        f_min));
    if (!(dropout >= 0) || !(dropout < 1))
        throw ValueError(
            fmt::format("KeywordCNNConfig::dropout: expected at least 0 and less than 1, got {}", dropout));
}

KeywordCNN::KeywordCNN(const KeywordCNNConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      mel_(add("mel", nn::MelSpectrogram({.sample_rate = config.sample_rate,
                                          .n_mels = config.n_mels,
                                          .spectrogram = {.n_fft = config.n_fft, .hop_length = config.hop_length},
                                          .mel = {.f_min = config.f_min}},
                                         {options.dtype, options.device}))),
      norm_(add("norm", nn::BatchNorm1d(config.n_mels, {.dtype = options.dtype, .device = options.device}))),
      stem_(add("stem", stem(config, options))),
      blocks_(add("blocks", blocks(config, options))),
      dropout_(add("dropout", nn::Dropout(config.dropout))),
      classifier_(add("classifier", nn::Linear(config.channels, config.classes, linear_options(true, options)))) {}

Tensor KeywordCNN::features(const Tensor& samples) {
    if (!samples.defined()) throw ValueError("KeywordCNN: expected samples of shape (N, T), got an undefined tensor");
    ops::require_real("KeywordCNN", "samples", samples.dtype());
    const std::int64_t min_length = config_.n_fft / 2 + 1;
    if (samples.rank() != 2 || samples.size(1) < min_length)
        throw ShapeError(fmt::format("KeywordCNN: expected samples of shape (N, T) with T of at least {}, got {}",
                                     min_length, samples.shape().str()));
    return log(mel_(samples) + kSilence);
}

Tensor KeywordCNN::forward(Tensor samples) {
    const Tensor mels = features(samples);
    // A loudness factor becomes an additive constant in the logarithm.
    const Tensor x = norm_(mels - mean(mels, {1, 2}, true));
    const Tensor y = blocks_(stem_(unsqueeze(x, 1)));
    return classifier_(dropout_(flatten(global_avg_pool2d(y))));
}

}  // namespace declivity::models
