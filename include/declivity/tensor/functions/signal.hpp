// Layer 3. Signals in short pieces: windows, and Fourier transforms of windows that slide over a signal, by the names
// of torch. All are made of others.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions/padding.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

// Windows of `length` samples, of a floating type. Periodic ones, for spectra, are symmetric ones of length + 1 without
// their last sample. One sample is 1. Computed on the device; f16 and bf16 in f32.
// @throws ValueError for a negative length; TypeError for another type

/// 0.5 - 0.5 cos(2 pi i / n), with n = length, or length - 1 of a symmetric one.
DECLIVITY_API Tensor hann_window(std::int64_t length, bool periodic = true, const TensorOptions& options = {});
/// alpha - beta cos(2 pi i / n).
DECLIVITY_API Tensor hamming_window(std::int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                                    const TensorOptions& options = {});
/// 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n).
DECLIVITY_API Tensor blackman_window(std::int64_t length, bool periodic = true, const TensorOptions& options = {});
/// 1 - |2 i / n - 1|.
DECLIVITY_API Tensor bartlett_window(std::int64_t length, bool periodic = true, const TensorOptions& options = {});
/// I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta), with the modified Bessel function I0 (Kaiser 1974).
/// @throws ValueError for a negative beta
DECLIVITY_API Tensor kaiser_window(std::int64_t length, bool periodic = true, double beta = 12,
                                   const TensorOptions& options = {});

struct StftOptions {
    std::optional<std::int64_t> hop_length = std::nullopt;  ///< samples from frame to frame; n_fft / 4 if none
    std::optional<std::int64_t> win_length = std::nullopt;  ///< n_fft if none
    Tensor window = {};  ///< (win_length), zeros on both sides up to n_fft; ones if none
    bool center = true;  ///< frame t stands around sample t hop_length: n_fft / 2 samples are added at both ends
    PadMode pad_mode = PadMode::reflect;  ///< how they are, where centered
    bool normalized = false;              ///< divided by the root of n_fft
    bool onesided = true;                 ///< the first n_fft / 2 + 1 frequencies alone
};
/// Fourier transforms of frames of n_fft samples, times a window: x (T) or (B, T), real -> (B, frequencies, frames, 2),
/// pairs of real and imaginary part (complex.hpp); without B where x has none.
/// @throws ShapeError for a signal that is shorter than a frame, or no longer than what is mirrored; ValueError for
/// sizes that do not belong together
DECLIVITY_API Tensor stft(const Tensor& x, std::int64_t n_fft, const StftOptions& options = {});

struct IstftOptions {
    std::optional<std::int64_t> hop_length = std::nullopt;  ///< as of stft, as all of them
    std::optional<std::int64_t> win_length = std::nullopt;
    Tensor window = {};
    bool center = true;
    bool normalized = false;
    bool onesided = true;  ///< x with n_fft frequencies is taken as not, of which the first half counts
    std::optional<std::int64_t> length = std::nullopt;  ///< samples of the result: cut, or zeros behind
};
/// The signal whose stft is nearest to x (B, frequencies, frames, 2), by least squares (Griffin, Lim 1984): (B, T).
/// Samples that no window reaches are 0, where torch.istft refuses the call: that would have to wait for the window.
/// @throws ShapeError, ValueError as stft
DECLIVITY_API Tensor istft(const Tensor& x, std::int64_t n_fft, const IstftOptions& options = {});

}  // namespace declivity
