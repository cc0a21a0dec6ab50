// Layer 7. Keyword spotting: classification of spoken words or other short sounds.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/models/config.hpp>
#include <declivity/nn/audio.hpp>
#include <declivity/nn/batch_norm.hpp>
#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/sequential.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

struct DECLIVITY_API KeywordCNNConfig {
    std::int64_t classes = 0;
    std::int64_t sample_rate = 16000;
    std::int64_t n_fft = 512;       ///< FFT window in samples
    std::int64_t hop_length = 160;  ///< hop between frames in samples
    std::int64_t n_mels = 40;
    double f_min = 20;  ///< Hz, of the lowest filter; the highest ends at half the sample rate
    std::int64_t channels = 64;
    std::int64_t blocks = 4;  ///< number of depthwise separable convolution blocks
    double dropout = 0.2;     ///< before the last layer
    /// @throws ValueError naming the field
    void check() const;
};

/// A small convolutional network on log-mel spectrograms, DS-CNN (Y. Zhang, N. Suda, L. Lai, V. Chandra, Hello edge:
/// keyword spotting on microcontrollers, 2017): a convolution of 10 frames by 4 mels with a stride of 2, `blocks`
/// depthwise separable blocks (3 x 3 depthwise and 1 x 1 pointwise convolution, each with batch normalisation and
/// ReLU), global average pooling, and a linear layer. Samples (N, T) -> logits (N, classes), for any T of at least
/// n_fft / 2 + 1.
///
/// Insensitive to loudness: mels are normalised by the mean of their logarithm over a recording.
///
/// Buffers mel.* (window and filters); parameters norm.* (batch normalisation of each mel), stem.0.weight (channels, 1,
/// 4, 10), stem.1.*, blocks.0.0.weight (channels, 1, 3, 3), blocks.0.1.*, blocks.0.3.weight (channels, channels, 1, 1),
/// blocks.0.4.*, ..., classifier.weight (classes, channels) and classifier.bias.
class DECLIVITY_API KeywordCNN : public nn::Layer {
  public:
    explicit KeywordCNN(const KeywordCNNConfig& config, const ModelOptions& options = {});
    /// Log-mel spectrogram of samples (N, T), before normalisation: (N, n_mels, frames).
    [[nodiscard]] Tensor features(const Tensor& samples);
    [[nodiscard]] const KeywordCNNConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "KeywordCNN"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(KeywordCNN); }

  protected:
    Tensor forward(Tensor samples) override;

  private:
    KeywordCNNConfig config_;
    nn::MelSpectrogram& mel_;
    nn::BatchNorm1d& norm_;
    nn::Sequential &stem_, &blocks_;
    nn::Dropout& dropout_;
    nn::Linear& classifier_;
};

/// @}

}  // namespace declivity::models
