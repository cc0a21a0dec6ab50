// Layer 5, private. Transformed frames of signals.
#pragma once

#include <cstdint>

#include <declivity/functions/signal.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// stft() of x (B, T), before its axes are permuted: (B, frames, frequencies, 2).
Tensor transformed_frames(const char* name, const Tensor& x, std::int64_t n_fft, const StftOptions& options);

}  // namespace declivity::detail
