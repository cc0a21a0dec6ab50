// Layer 6. Spectrogram layers with torchaudio's names; windows and filter banks are buffers.
#pragma once

#include <cstdint>
#include <string>

#include <declivity/functions/audio.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_audio
/// @{

/// See audio::spectrogram for the options; buffer "window".
class DECLIVITY_API Spectrogram : public Layer {
  public:
    explicit Spectrogram(audio::SpectrogramOptions options = {}, const TensorOptions& tensors = {});
    [[nodiscard]] Tensor window() const { return window_; }
    [[nodiscard]] audio::SpectrogramOptions options() const;
    [[nodiscard]] std::string type_name() const override { return "Spectrogram"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Spectrogram); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    audio::SpectrogramOptions options_;
    Tensor window_;
};

/// Mel filter bank: (..., frequencies, frames) -> (..., n_mels, frames); buffer "fb".
class DECLIVITY_API MelScale : public Layer {
  public:
    /// @param n_stft number of frequencies
    explicit MelScale(std::int64_t n_mels = 128, std::int64_t sample_rate = 16000, std::int64_t n_stft = 201,
                      const audio::MelFilterBankOptions& mel = {}, const TensorOptions& tensors = {});
    [[nodiscard]] Tensor filter_bank() const { return bank_; }
    [[nodiscard]] std::string type_name() const override { return "MelScale"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MelScale); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Tensor bank_;
};

/// See audio::mel_spectrogram for the options; children "spectrogram" and "mel_scale".
class DECLIVITY_API MelSpectrogram : public Layer {
  public:
    explicit MelSpectrogram(audio::MelSpectrogramOptions options = {}, const TensorOptions& tensors = {});
    /// Options including the buffers.
    [[nodiscard]] audio::MelSpectrogramOptions options() const;
    [[nodiscard]] std::string type_name() const override { return "MelSpectrogram"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MelSpectrogram); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    audio::MelSpectrogramOptions options_;
    Spectrogram& spectrogram_;
    MelScale& mel_scale_;
};

/// See audio::mfcc for the options; child "MelSpectrogram".
class DECLIVITY_API MFCC : public Layer {
  public:
    explicit MFCC(audio::MfccOptions options = {}, const TensorOptions& tensors = {});
    [[nodiscard]] std::string type_name() const override { return "MFCC"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MFCC); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    audio::MfccOptions options_;
    std::string norm_;
    MelSpectrogram& mel_spectrogram_;
};

/// @}

}  // namespace declivity::nn
