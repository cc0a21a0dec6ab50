// Layer 2, private. Interface between the lazy functions of batch normalisation (batch_norm_values.cpp) and its kernels
// (batch_norm.cpp).
#pragma once

#include <declivity/ops/batch_norm.hpp>
#include <declivity/ops/operation.hpp>

namespace declivity::ops {

/// @throws as batch_norm; empty operands are not checked
void check_batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias);
/// @throws as batch_norm_statistics
void check_batch_norm_statistics(const View& x, const BatchNormRunning& running, const View& mean, const View& scale);

/// Returns whether one fused kernel computes statistics and normalisation, since a work-item or work-group processes
/// whole channels.
bool is_batch_norm_whole(const View& x);
/// Launches the fused kernel. Writes mean and scale, and updates the statistics in `running`.
EpilogueFused launch_batch_norm_whole(const View& x, double eps, const BatchNormRunning& running, const View& mean,
                                      const View& scale, const View& weight, const View& bias, const View& out,
                                      const Epilogue& epilogue);

}  // namespace declivity::ops
