// Layer 2. Connectionist temporal classification (CTC) loss of sequences of log-probabilities (Graves et al. 2006).
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Inputs of ctc_loss(): dense, on one device.
struct CtcOperands {
    View log_probs;                      ///< (T, N, C), f32 or f64
    View targets;                        ///< (N, S), i64; elements after a target's length are ignored
    View input_lengths, target_lengths;  ///< (N), i64
    std::int64_t blank;
};

struct CtcResults {
    LazyArray losses;  ///< (N); infinite if there is no alignment, or a length is out of range
    LazyArray alphas;  ///< (N, T, 2 S + 1), for the gradient
};

/// Negative log-likelihood of each target. Deferred operation. @throws ShapeError, TypeError, DeviceError naming
/// ctc_loss
DECLIVITY_API CtcResults ctc_loss(const CtcOperands& operands);
/// Gradient of log_probs from that of the losses.
DECLIVITY_API LazyArray ctc_loss_backward(const CtcOperands& operands, const View& alphas, const View& losses,
                                          const View& gradient);

/// @}

}  // namespace declivity::ops
