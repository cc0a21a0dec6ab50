// Other libraries that do the same on the same processor. Each is optional: what is not installed is not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"

namespace declivity::bench {

/// Those that this program was built with.
std::vector<std::string> peer_names();

/// out (m, n) = a x b for each of a batch of dense matrices: a (m, k), or (k, m) when transposed, and so on.
struct HostGemm {
    std::int64_t batch, m, n, k;
    bool a_transposed, b_transposed;
    const float *a, *b;
    float* out;
};
std::optional<Contender> openblas_gemm(const HostGemm& gemm);

enum class ConvDirection : std::uint8_t { forward, backward_input, backward_weights };

/// A convolution of plain NCHW host tensors; the one that a direction computes is written. The backward directions take
/// the gradient of the output in `out`.
struct HostConv2d {
    ConvDirection direction;
    std::int64_t n, c, h, w, o, r, s, p, q;
    std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
    float *x, *weight, *out;
};
/// oneDNN on plain tensors, the reorders into and out of its own layouts counted, or without them where that is faster
/// ("oneDNN-NCHW"), and on tensors that are in its own layouts already ("oneDNN-blocked").
std::vector<Contender> onednn_conv2d(const HostConv2d& conv);

}  // namespace declivity::bench
