// Layer 5. Window functions and short-time Fourier transforms, composed of other functions.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/functions/padding.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_signal Windows and short-time Fourier transforms
/// @ingroup functions
/// Window functions and short-time Fourier transforms, by their names in torch.
///
/// Windows have `length` samples, of a floating type. Periodic ones, for spectra, are symmetric ones of length + 1
/// without the last sample. In the formulas i is the index of a sample, and n is length, or length - 1 if symmetric. A
/// window of one sample is 1. Computed on the device; f16 and bf16 in f32.
///
/// Errors of windows: ValueError for a negative length; TypeError for another type.
/// @{

/// Hann window 0.5 - 0.5 cos(2 pi i / n).
/// Examples: `hann_window(4)` is `[0, 0.5, 1, 0.5]`; `hann_window(5, false)` is `[0, 0.5, 1, 0.5, 0]`.
DECLIVITY_API Tensor hann_window(std::int64_t length, bool periodic = true, const TensorOptions& options = {});
/// Hamming window alpha - beta cos(2 pi i / n).
/// Example: `hamming_window(4)` is `[0.08, 0.54, 1, 0.54]`.
DECLIVITY_API Tensor hamming_window(std::int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                                    const TensorOptions& options = {});
/// Blackman window 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n).
/// Example: `blackman_window(4)` is `[0, 0.34, 1, 0.34]`.
DECLIVITY_API Tensor blackman_window(std::int64_t length, bool periodic = true, const TensorOptions& options = {});
/// Bartlett window 1 - |2 i / n - 1|.
/// Example: `bartlett_window(4)` is `[0, 0.5, 1, 0.5]`.
DECLIVITY_API Tensor bartlett_window(std::int64_t length, bool periodic = true, const TensorOptions& options = {});
/// Kaiser window I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta), with the modified Bessel function I0 (Kaiser 1974).
/// Examples: `kaiser_window(3, false, 0)` is `[1, 1, 1]`; `kaiser_window(3, false, 2)` is `[0.4387, 1, 0.4387]`.
/// @throws ValueError for a negative beta
DECLIVITY_API Tensor kaiser_window(std::int64_t length, bool periodic = true, double beta = 12,
                                   const TensorOptions& options = {});

/// Options of stft().
struct StftOptions {
    std::optional<std::int64_t> hop_length = std::nullopt;  ///< samples from frame to frame; n_fft / 4 if none
    std::optional<std::int64_t> win_length = std::nullopt;  ///< n_fft if none
    Tensor window = {};  ///< (win_length), zero-padded on both sides to n_fft; ones if none
    bool center = true;  ///< frame t is centred at sample t hop_length: adds n_fft / 2 samples at both ends
    PadMode pad_mode = PadMode::reflect;  ///< padding mode if centred
    bool normalized = false;              ///< divides by the square root of n_fft
    bool onesided = true;                 ///< only the first n_fft / 2 + 1 frequencies
};
/// Short-time Fourier transform of frames of n_fft samples, times a window: x (T) or (B, T), real -> (B, frequencies,
/// frames, 2), pairs of real and imaginary part (complex.hpp); without B if x has none.
/// Example: for x = `[1, 2, 3, 4, 5, 6]`, `stft(x, 4, {.hop_length = 2, .center = false})` is
/// `[[[10, 0], [18, 0]], [[-2, 2], [-2, 2]], [[-2, 0], [-2, 0]]]` (frames 1 2 3 4 and 3 4 5 6).
/// @throws ShapeError for a signal shorter than a frame, or too short for reflect padding; ValueError for inconsistent
/// sizes
DECLIVITY_API Tensor stft(const Tensor& x, std::int64_t n_fft, const StftOptions& options = {});

/// Options of istft().
struct IstftOptions {
    std::optional<std::int64_t> hop_length = std::nullopt;  ///< these options as for stft
    std::optional<std::int64_t> win_length = std::nullopt;
    Tensor window = {};
    bool center = true;
    bool normalized = false;
    bool onesided = true;  ///< false if x has n_fft frequencies, of which the first n_fft / 2 + 1 are used
    std::optional<std::int64_t> length = std::nullopt;  ///< samples of the result: truncated, or zero-padded at the end
};
/// Inverse of stft by least squares (Griffin, Lim 1984): x (B, frequencies, frames, 2) -> (B, T). Samples that no
/// window reaches are 0, where torch.istft throws: checking it would synchronise.
/// Example: for x = `[1, 2, 3, 4, 5, 6]`, `istft(stft(x, 4), 4)` is `[1, 2, 3, 4, 5, 6]`.
/// @throws ShapeError, ValueError as stft
DECLIVITY_API Tensor istft(const Tensor& x, std::int64_t n_fft, const IstftOptions& options = {});

/// @}

}  // namespace declivity
