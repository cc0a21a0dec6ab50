#include <declivity/functions/audio.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/functions/complex.hpp>
#include <declivity/functions/fft.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/signal.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "stft.hpp"

namespace declivity::audio {
namespace {

std::int64_t window_length(const SpectrogramOptions& options) { return options.win_length.value_or(options.n_fft); }
std::int64_t hop_length(const SpectrogramOptions& options) {
    return options.hop_length.value_or(window_length(options) / 2);
}

/// x (..., T) as (B, T).
Tensor rows_of(const char* name, const Tensor& x) {
    if (x.rank() == 0) throw ShapeError(fmt::format("{}: expected x of shape (..., T), got a number", name));
    ops::require_real(name, "x", x.dtype());
    const std::int64_t length = x.size(-1);
    return reshape(x, {x.numel() / std::max<std::int64_t>(1, length), length});
}

/// y (B, frames, numbers, ...) as (..., numbers, frames, ...), with the axes that x has before T.
Tensor restore_axes(const Tensor& y, const Tensor& x) {
    Shape shape;
    for (int axis = 0; axis + 1 < x.rank(); ++axis) shape.push_back(x.size(axis));
    for (int axis = 1; axis < y.rank(); ++axis) shape.push_back(y.size(axis));
    const Tensor unflattened = reshape(y, shape);
    return transpose(unflattened, x.rank() - 1, x.rank());
}

/// Power spectrum (B, frames, frequencies), or complex numbers.
Tensor spectra(const char* name, const Tensor& x, const SpectrogramOptions& options) {
    if (options.power && !(*options.power > 0))
        throw ValueError(fmt::format("{}: expected a power above 0, got {}", name, *options.power));
    Tensor in = rows_of(name, x);
    if (options.pad != 0) in = pad(in, {options.pad, options.pad});
    const Tensor window = options.window.defined() ? options.window
                                                   : hann_window(std::max<std::int64_t>(0, window_length(options)),
                                                                 true, {x.dtype(), x.device()});
    Tensor y = detail::transformed_frames(name, in, options.n_fft,
                                          {.hop_length = hop_length(options),
                                           .win_length = window_length(options),
                                           .window = window,
                                           .center = options.center,
                                           .pad_mode = options.pad_mode,
                                           .normalized = options.normalized == SpectrogramNorm::frame_length,
                                           .onesided = options.onesided});
    if (options.normalized == SpectrogramNorm::window) y = y / sqrt(sum(square(window)));
    if (!options.power) return y;
    if (*options.power == 1) return complex_abs(y);
    if (*options.power == 2) return square(real(y)) + square(imag(y));
    return pow(complex_abs(y), *options.power);
}

double mel_of(double f, MelScale scale) {
    if (scale == MelScale::htk) return 2595 * std::log10(1 + f / 700);
    return f < 1000 ? 3 * f / 200 : 15 + std::log(f / 1000) * 27 / std::log(6.4);
}

Tensor hz_of(const Tensor& mel, MelScale scale) {
    if (scale == MelScale::htk) return 700 * (exp(mel * (std::log(10.0) / 2595)) - 1);
    return where(mel < 15, mel * (200.0 / 3), 1000 * exp((maximum(mel, 15) - 15) * (std::log(6.4) / 27)));
}

/// Mel spectrum (B, frames, n_mels).
Tensor mels(const char* name, const Tensor& x, const MelSpectrogramOptions& options) {
    const SpectrogramOptions& spectrum = options.spectrogram;
    if (!spectrum.power || !spectrum.onesided)
        throw ValueError(fmt::format("{}: expected a power, and one side of the spectrum, got {} and {}", name,
                                     spectrum.power ? "a power" : "none",
                                     spectrum.onesided ? "one side" : "both sides"));
    const Tensor powers = spectra(name, x, spectrum);
    const std::int64_t frequencies = spectrum.n_fft / 2 + 1;
    const Tensor bank =
        options.filter_bank.defined()
            ? options.filter_bank
            : mel_filter_bank(frequencies, options.n_mels, options.sample_rate, options.mel, {x.dtype(), x.device()});
    ops::require_shape(name, "the filter bank", bank.shape(), {frequencies, options.n_mels});
    return matmul(powers, bank);
}

/// Decibels, or logarithms; @param axes over which the maximum for top_db is taken
Tensor decibels(const Tensor& x, const AmplitudeToDbOptions& options, const Dims& axes) {
    const Tensor db =
        options.multiplier * log10(clamp_min(x, options.amin)) - options.multiplier * options.db_multiplier;
    if (!options.top_db || x.numel() == 0) return db;
    return maximum(db, amax(db, axes, true) - *options.top_db);
}

/// Options with the tensors of a decomposition: x, the window and the filter bank.
MelSpectrogramOptions with_tensors(MelSpectrogramOptions options, const std::vector<Tensor>& in) {
    options.spectrogram.window = in[1];
    options.filter_bank = in[2];
    return options;
}

/// Cepstral coefficients of a batch of signals.
Tensor coefficients(const char* name, const Tensor& x, const MfccOptions& options, const MelSpectrogramOptions& mel) {
    const Tensor powers = mels(name, x, mel);
    Tensor logarithms;
    if (options.log_mels) {
        logarithms = log(powers + 1e-6);
    } else {
        // The maximum of a signal is over all its channels: (..., channels, frames, mels).
        Shape shape;
        for (int axis = 0; axis + 1 < x.rank(); ++axis) shape.push_back(x.size(axis));
        shape.push_back(powers.size(1));
        shape.push_back(powers.size(2));
        Dims axes;
        for (int axis = std::max(0, shape.rank() - 3); axis < shape.rank(); ++axis) axes.push_back(axis);
        logarithms = reshape(decibels(reshape(powers, shape), {.top_db = 80}, axes), powers.shape());
    }
    return slice(fft::dct(logarithms, -1, options.norm), -1, 0, options.n_mfcc);
}

#define SPECTROGRAM_ATTRIBUTES(of)                                                                               \
    {"n_fft", (of).n_fft}, {"win_length", window_length(of)}, {"hop_length", hop_length(of)}, {"pad", (of).pad}, \
        {"power", (of).power.value_or(0)}, {"normalized", (of).normalized}, {"center", (of).center}, {           \
        "pad_mode", (of).pad_mode                                                                                \
    }

}  // namespace

Tensor spectrogram(const Tensor& x, const SpectrogramOptions& options) {
    const FunctionCall call("audio::spectrogram", {{"x", x}, {"window", options.window}},
                            {SPECTROGRAM_ATTRIBUTES(options), {"onesided", options.onesided}});
    call.require_defined({"x"});
    return call.result(detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& in) {
            SpectrogramOptions decomposition_options = options;
            decomposition_options.window = in[1];
            return std::vector{restore_axes(spectra("audio::spectrogram", in[0], decomposition_options), x)};
        },
        {x, options.window})[0]);
}

Tensor mel_filter_bank(std::int64_t n_freqs, std::int64_t n_mels, std::int64_t sample_rate,
                       const MelFilterBankOptions& mel, const TensorOptions& options) {
    const double f_max = mel.f_max.value_or(static_cast<double>(sample_rate) / 2);
    const FunctionCall call("audio::mel_filter_bank", {},
                            {{"n_freqs", n_freqs},
                             {"n_mels", n_mels},
                             {"sample_rate", sample_rate},
                             {"f_min", mel.f_min},
                             {"f_max", f_max},
                             {"norm", mel.norm},
                             {"mel_scale", mel.mel_scale}});
    constexpr auto* name = "audio::mel_filter_bank";
    ops::require_real(name, "dtype", options.dtype);
    if (n_freqs < 1 || n_mels < 1 || sample_rate < 1)
        throw ValueError(fmt::format("{}: expected n_freqs, n_mels and sample_rate of at least 1, got {}, {} and {}",
                                     name, n_freqs, n_mels, sample_rate));
    if (!(mel.f_min >= 0) || !(f_max > mel.f_min))
        throw ValueError(fmt::format("{}: expected 0 <= f_min < f_max, got {} and {}", name, mel.f_min, f_max));
    const DType real = compute_type(options.dtype);
    const TensorOptions compute_options{real, options.device};
    const auto nyquist = static_cast<double>(sample_rate / 2);
    const Tensor frequencies = reshape(linspace(0, nyquist, n_freqs, compute_options), {n_freqs, 1});
    const Tensor points =
        hz_of(linspace(mel_of(mel.f_min, mel.mel_scale), mel_of(f_max, mel.mel_scale), n_mels + 2, compute_options),
              mel.mel_scale);
    const Tensor low = slice(points, 0, 0, n_mels), middle = slice(points, 0, 1, n_mels + 1),
                 high = slice(points, 0, 2, n_mels + 2);
    Tensor bank = maximum(minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle)), 0);
    if (mel.norm == MelNorm::slaney) bank = bank * (2 / (high - low));
    return call.result(bank.to(options.dtype));
}

Tensor mel_spectrogram(const Tensor& x, const MelSpectrogramOptions& options) {
    const FunctionCall call("audio::mel_spectrogram",
                            {{"x", x}, {"window", options.spectrogram.window}, {"filter_bank", options.filter_bank}},
                            {SPECTROGRAM_ATTRIBUTES(options.spectrogram),
                             {"sample_rate", options.sample_rate},
                             {"n_mels", options.n_mels},
                             {"f_min", options.mel.f_min},
                             {"f_max", options.mel.f_max.value_or(static_cast<double>(options.sample_rate) / 2)}});
    call.require_defined({"x"});
    return call.result(detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& in) {
            return std::vector{restore_axes(mels("audio::mel_spectrogram", in[0], with_tensors(options, in)), x)};
        },
        {x, options.spectrogram.window, options.filter_bank})[0]);
}

Tensor amplitude_to_db(const Tensor& x, const AmplitudeToDbOptions& options) {
    const FunctionCall call("audio::amplitude_to_db", {{"x", x}},
                            {{"multiplier", options.multiplier},
                             {"amin", options.amin},
                             {"db_multiplier", options.db_multiplier},
                             {"top_db", options.top_db.value_or(-1)}});
    call.require_defined({"x"});
    ops::require_real("audio::amplitude_to_db", "x", x.dtype());
    if (!(options.amin > 0))
        throw ValueError(fmt::format("audio::amplitude_to_db: expected an amin above 0, got {}", options.amin));
    if (options.top_db && !(*options.top_db >= 0))
        throw ValueError(
            fmt::format("audio::amplitude_to_db: expected a top_db of at least 0, got {}", *options.top_db));
    Dims axes;
    for (int axis = std::max(0, x.rank() - 3); axis < x.rank(); ++axis) axes.push_back(axis);
    return call.result(
        detail::decomposed_in_f32(x, [&](const Tensor& upcast) { return decibels(upcast, options, axes); }));
}

Tensor mfcc(const Tensor& x, const MfccOptions& options) {
    const MelSpectrogramOptions& mel = options.mel_spectrogram;
    const FunctionCall call("audio::mfcc",
                            {{"x", x}, {"window", mel.spectrogram.window}, {"filter_bank", mel.filter_bank}},
                            {{"n_mfcc", options.n_mfcc},
                             {"norm", options.norm},
                             {"log_mels", options.log_mels},
                             SPECTROGRAM_ATTRIBUTES(mel.spectrogram)});
    call.require_defined({"x"});
    constexpr auto* name = "audio::mfcc";
    if (options.n_mfcc < 1 || options.n_mfcc > mel.n_mels)
        throw ValueError(
            fmt::format("{}: expected an n_mfcc of 1 to n_mels, {}, got {}", name, mel.n_mels, options.n_mfcc));
    return call.result(detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& in) {
            return std::vector{restore_axes(coefficients(name, in[0], options, with_tensors(mel, in)), x)};
        },
        {x, mel.spectrogram.window, mel.filter_bank})[0]);
}

}  // namespace declivity::audio
