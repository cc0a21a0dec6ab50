// Peer libraries with the same operators on the same processor. Each is optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"

namespace declivity::bench {

/// The peers this program was built with.
std::vector<std::string> peer_names();

/// out (m, n) = a x b for each of a batch of dense matrices: a (m, k), or (k, m) if transposed; b likewise.
struct HostGemm {
    std::int64_t batch, m, n, k;
    bool a_transposed, b_transposed;
    const float *a, *b;
    float* out;
};
std::optional<Contender> openblas_gemm(const HostGemm& gemm);

enum class ConvDirection : std::uint8_t { forward, backward_input, backward_weights };

/// A convolution of plain NCHW host tensors; the result of the direction is written. The backward directions take the
/// output gradient in `out`.
struct HostConv2d {
    ConvDirection direction;
    std::int64_t n, c, h, w, o, r, s, p, q;
    std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
    float *x, *weight, *out;
};
/// oneDNN on plain tensors, with reorders into and out of its own layouts or without, whichever is faster
/// ("oneDNN-NCHW"), and on tensors already in its own layouts ("oneDNN-blocked").
std::vector<Contender> onednn_conv2d(const HostConv2d& conv);

/// Peers for each of several sets of operands, used round-robin like ours, so that no operand is cached.
std::vector<Contender> interleaved(const std::vector<std::vector<Contender>>& by_set);

/// Pooling of plain NCHW host tensors; in the backward direction `x` and `out` are the gradients and `x` is written.
struct HostPool2d {
    bool forward, largest;
    std::int64_t n, c, h, w, p, q, window_h, window_w, stride_h, stride_w, padding_h, padding_w;
    float *x, *out;
};
std::vector<Contender> onednn_pool2d(const HostPool2d& pool);

/// Batch normalisation in training: statistics and result forward; backward, the gradients of x, weight and bias: `out`
/// is the output gradient, and `x_gradient` is written.
struct HostBatchNorm {
    bool forward;
    std::int64_t n, c, h, w;
    float *x, *out, *x_gradient;
};
std::vector<Contender> onednn_batch_norm(const HostBatchNorm& norm);

/// Softmax or log-softmax of rows; backward from the result `y` and its gradient `out`.
struct HostSoftmax {
    bool forward, logarithm;
    std::int64_t rows, columns;
    float *x, *y, *out;
};
std::vector<Contender> onednn_softmax(const HostSoftmax& softmax);

/// A recurrent layer with as many inputs as hidden units; forward as inference, or forward and backward.
struct HostRnn {
    bool lstm, backward;  ///< if not LSTM, a GRU with the reset gate after the product
    std::int64_t steps, rows, units;
};
/// oneDNN in the layouts it chooses, with weights in that layout for each pass and its own random data.
std::optional<Contender> onednn_rnn(const HostRnn& rnn);

/// Transforms of a batch of complex or real host arrays over all their axes.
struct HostFft {
    std::vector<std::int64_t> sizes;
    std::int64_t batch;
    bool real;
    const float* x;
};
std::optional<Contender> fftw(const HostFft& fft);

}  // namespace declivity::bench
