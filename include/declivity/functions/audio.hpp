// Layer 5. Spectrograms, composed of other functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <declivity/functions/padding.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::audio {

/// @defgroup functions_audio Spectrograms
/// @ingroup functions
/// Spectrograms of real signals (..., T), with the defaults of torchaudio; the last axis of the results is time. All
/// are differentiable.
///
/// Windows and filter banks are computed in each call unless given: modules (nn/audio.hpp) cache theirs.
/// @{

/// Divisor of a spectrogram: 1, the square root of the sum of the window's squares, or the square root of n_fft.
enum class SpectrogramNorm : std::uint8_t { none, window, frame_length };
constexpr std::string_view name_of(SpectrogramNorm norm) noexcept {
    constexpr std::string_view names[] = {"none", "window", "frame_length"};
    return names[static_cast<std::size_t>(norm)];
}

/// Mel scale of f Hz: 2595 log10(1 + f / 700) (O'Shaughnessy 1987, HTK), or 3 f / 200 up to 1000 Hz and logarithmic
/// above (Slaney 1998).
enum class MelScale : std::uint8_t { htk, slaney };
constexpr std::string_view name_of(MelScale scale) noexcept { return scale == MelScale::htk ? "htk" : "slaney"; }
/// none: filters have a maximum of 1; slaney: filters have equal area.
enum class MelNorm : std::uint8_t { none, slaney };
constexpr std::string_view name_of(MelNorm norm) noexcept { return norm == MelNorm::none ? "none" : "slaney"; }

/// Options of spectrogram().
struct SpectrogramOptions {
    std::int64_t n_fft = 400;                               ///< frame length in samples
    std::optional<std::int64_t> win_length = std::nullopt;  ///< n_fft if none
    std::optional<std::int64_t> hop_length = std::nullopt;  ///< win_length / 2 if none
    std::int64_t pad = 0;                                   ///< zeros at both ends of the signal
    Tensor window = {};                                     ///< (win_length); hann_window(win_length) if none
    std::optional<double> power = 2;                        ///< exponent of the magnitude; none: complex numbers
    SpectrogramNorm normalized = SpectrogramNorm::none;
    bool center = true;
    PadMode pad_mode = PadMode::reflect;
    bool onesided = true;
};
/// Spectrogram |stft(x)|^power: (..., T) -> (..., frequencies, frames), or the complex numbers (..., frequencies,
/// frames, 2) without a power. See stft().
/// Example: `audio::spectrogram(ones({4}), {.n_fft = 4, .window = ones({4}), .center = false})` is `[[16], [0], [0]]`.
DECLIVITY_API Tensor spectrogram(const Tensor& x, const SpectrogramOptions& options = {});

/// Options of mel_filter_bank().
struct MelFilterBankOptions {
    double f_min = 0;                            ///< Hz
    std::optional<double> f_max = std::nullopt;  ///< Hz; half the sample rate if none
    MelNorm norm = MelNorm::none;
    MelScale mel_scale = MelScale::htk;
};
/// Triangular filters that convert frequencies 0 .. sample_rate / 2 to mels: (n_freqs, n_mels).
/// Example: `audio::mel_filter_bank(5, 2, 8000)` is `[[0, 0], [0.6759, 0.3241], [0, 0.9055], [0, 0.4528], [0, 0]]`.
/// @throws ValueError for inconsistent numbers
DECLIVITY_API Tensor mel_filter_bank(std::int64_t n_freqs, std::int64_t n_mels, std::int64_t sample_rate,
                                     const MelFilterBankOptions& mel = {}, const TensorOptions& options = {});

/// Options of mel_spectrogram().
struct MelSpectrogramOptions {
    std::int64_t sample_rate = 16000;
    std::int64_t n_mels = 128;
    SpectrogramOptions spectrogram = {};  ///< must be onesided and have a power
    MelFilterBankOptions mel = {};
    Tensor filter_bank = {};  ///< (frequencies, n_mels) instead of mel_filter_bank()
};
/// (..., T) -> (..., n_mels, frames).
/// Example: `audio::mel_spectrogram(ones({1600}), {.n_mels = 8}).shape()` is `[8, 9]`.
DECLIVITY_API Tensor mel_spectrogram(const Tensor& x, const MelSpectrogramOptions& options = {});

/// Options of amplitude_to_db().
struct AmplitudeToDbOptions {
    double multiplier = 10;                       ///< 10 for powers, 20 for amplitudes
    double amin = 1e-10;                          ///< lower bound of x
    double db_multiplier = 0;                     ///< log10 of the value at 0 dB
    std::optional<double> top_db = std::nullopt;  ///< clamps to this far below the maximum of all but leading axes
};
/// Decibels multiplier (log10(max(x, amin)) - db_multiplier), x (..., channels, frequencies, frames) or fewer axes.
/// Examples: for x = `[[1, 100, 0]]`, `audio::amplitude_to_db(x)` is `[[0, 20, -100]]`;
/// `audio::amplitude_to_db(x, {.top_db = 30})` is `[[0, 20, -10]]`.
/// @throws ValueError unless amin > 0; TypeError for integers
DECLIVITY_API Tensor amplitude_to_db(const Tensor& x, const AmplitudeToDbOptions& options = {});

/// Options of mfcc().
struct MfccOptions {
    std::int64_t n_mfcc = 40;
    std::string_view norm = "ortho";  ///< of the cosine transform, see fft::dct
    bool log_mels = false;            ///< log(mels + 1e-6) instead of decibels clamped to 80 below the maximum
    MelSpectrogramOptions mel_spectrogram = {};
};
/// Mel-frequency cepstral coefficients (MFCC), the cosine transform of a logarithmic mel spectrogram: (..., T) -> (...,
/// n_mfcc, frames).
/// Example: `audio::mfcc(ones({1600}), {.n_mfcc = 5}).shape()` is `[5, 9]`.
/// @throws ValueError for more coefficients than mels
DECLIVITY_API Tensor mfcc(const Tensor& x, const MfccOptions& options = {});

/// @}

}  // namespace declivity::audio
