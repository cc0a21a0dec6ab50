// Layer 2, private. What the values of batch normalisation (batch_norm_values.cpp) ask of its kernels (batch_norm.cpp).
#pragma once

#include <declivity/ops/batch_norm.hpp>
#include <declivity/ops/operation.hpp>

namespace declivity::ops {

/// @throws as batch_norm; operands that are none are not looked at
void check_batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias);
/// @throws as batch_norm_statistics
void check_batch_norm_statistics(const View& x, const BatchNormRunning& running, const View& mean, const View& scale);

/// Whether one kernel does statistics and normalisation, since a work-item or group has whole channels in its hands.
bool is_batch_norm_whole(const View& x);
/// Launches that kernel. Writes mean and scale, updates what `running` has.
EpilogueFused launch_batch_norm_whole(const View& x, double eps, const BatchNormRunning& running, const View& mean,
                                      const View& scale, const View& weight, const View& bias, const View& out,
                                      const Epilogue& epilogue);

}  // namespace declivity::ops
