#include <declivity/nn/audio.hpp>

#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

audio::SpectrogramOptions without_window(audio::SpectrogramOptions options) {
    options.window = Tensor();
    return options;
}

}  // namespace

Spectrogram::Spectrogram(audio::SpectrogramOptions options, const TensorOptions& tensors)
    : options_(without_window(options)) {
    const std::int64_t length = options.win_length.value_or(options.n_fft);
    if (length < 1 || options.n_fft < length)
        throw ValueError(
            fmt::format("Spectrogram: expected a win_length of 1 to n_fft, got {} and {}", length, options.n_fft));
    window_ = buffer("window", options.window.defined() ? options.window : hann_window(length, true, tensors));
}

audio::SpectrogramOptions Spectrogram::options() const {
    audio::SpectrogramOptions result = options_;
    result.window = window_;
    return result;
}

Tensor Spectrogram::forward(Tensor x) { return audio::spectrogram(x, options()); }

MelScale::MelScale(std::int64_t n_mels, std::int64_t sample_rate, std::int64_t n_stft,
                   const audio::MelFilterBankOptions& mel, const TensorOptions& tensors)
    : bank_(buffer("fb", audio::mel_filter_bank(n_stft, n_mels, sample_rate, mel, tensors))) {}

Tensor MelScale::forward(Tensor x) {
    if (x.rank() < 2 || x.size(-2) != bank_.size(0))
        throw ShapeError(
            fmt::format("MelScale: expected x of shape (..., {}, frames), got {}", bank_.size(0), x.shape().str()));
    return transpose(matmul(transpose(x), bank_));
}

MelSpectrogram::MelSpectrogram(audio::MelSpectrogramOptions options, const TensorOptions& tensors)
    : options_(options),
      spectrogram_(add("spectrogram", Spectrogram(options.spectrogram, tensors))),
      mel_scale_(add("mel_scale", MelScale(options.n_mels, options.sample_rate, options.spectrogram.n_fft / 2 + 1,
                                           options.mel, tensors))) {
    options_.spectrogram.window = options_.filter_bank = Tensor();
    if (!options.spectrogram.power || !options.spectrogram.onesided)
        throw ValueError(fmt::format("MelSpectrogram: expected a power, and one side of the spectrum, got {} and {}",
                                     options.spectrogram.power ? "a power" : "none",
                                     options.spectrogram.onesided ? "one side" : "both sides"));
}

audio::MelSpectrogramOptions MelSpectrogram::options() const {
    audio::MelSpectrogramOptions result = options_;
    result.spectrogram = spectrogram_.options();
    result.filter_bank = mel_scale_.filter_bank();
    return result;
}

Tensor MelSpectrogram::forward(Tensor x) { return audio::mel_spectrogram(x, options()); }

MFCC::MFCC(audio::MfccOptions options, const TensorOptions& tensors)
    : options_(options),
      norm_(options.norm),
      mel_spectrogram_(add("MelSpectrogram", MelSpectrogram(options.mel_spectrogram, tensors))) {
    options_.mel_spectrogram = {};
    if (options.n_mfcc < 1 || options.n_mfcc > options.mel_spectrogram.n_mels)
        throw ValueError(fmt::format("MFCC: expected an n_mfcc of 1 to n_mels, {}, got {}",
                                     options.mel_spectrogram.n_mels, options.n_mfcc));
    if (norm_ != "ortho" && norm_ != "backward")
        throw ValueError(fmt::format("MFCC: expected norm \"ortho\" or \"backward\", got \"{}\"", norm_));
}

Tensor MFCC::forward(Tensor x) {
    audio::MfccOptions options = options_;
    options.norm = norm_;
    options.mel_spectrogram = mel_spectrogram_.options();
    return audio::mfcc(x, options);
}

}  // namespace declivity::nn
