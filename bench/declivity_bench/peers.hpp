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

/// Peers made for each of several sets of operands, that take the sets in turn as we do: none finds its own in a cache.
std::vector<Contender> in_turn(const std::vector<std::vector<Contender>>& of_sets);

/// Pooling of plain NCHW host tensors; backward, `x` and `out` are the gradients and `x` is written.
struct HostPool2d {
    bool forward, largest;
    std::int64_t n, c, h, w, p, q, window_h, window_w, stride_h, stride_w, padding_h, padding_w;
    float *x, *out;
};
std::vector<Contender> onednn_pool2d(const HostPool2d& pool);

/// Batch normalisation in training: statistics and result forward; backward, the gradients of x, weight and bias.
/// Backward, `out` is the gradient of the result, and `x_gradient` is written.
struct HostBatchNorm {
    bool forward;
    std::int64_t n, c, h, w;
    float *x, *out, *x_gradient;
};
std::vector<Contender> onednn_batch_norm(const HostBatchNorm& norm);

/// Softmax or its logarithm of rows; backward from the result `y` and its gradient `out`.
struct HostSoftmax {
    bool forward, logarithm;
    std::int64_t rows, columns;
    float *x, *y, *out;
};
std::vector<Contender> onednn_softmax(const HostSoftmax& softmax);

/// A recurrent layer with as many inputs as units; forward as inference, or forward and backward.
struct HostRnn {
    bool lstm, backward;  ///< otherwise a GRU, whose reset gate stands behind its product
    std::int64_t steps, rows, units;
};
/// oneDNN in layouts of its own choice, weights as it wants them each time: of numbers of its own.
std::optional<Contender> onednn_rnn(const HostRnn& rnn);

/// Transforms of a batch of complex or real host arrays, over all their axes.
struct HostFft {
    std::vector<std::int64_t> sizes;
    std::int64_t batch;
    bool real;
    const float* x;
};
std::optional<Contender> fftw(const HostFft& fft);

}  // namespace declivity::bench
