// Direct convolution and its gradients by the formula: the strategy that supports every shape, and the reference for
// the others.
//
//   forward            out[n, o, p, q] = bias[o] + sum over c, r, s of x[n, c', h, w] * weight[o, c, r, s]
//   backward_input     x_gradient[n, c', h, w] = sum over o, r, s of g[n, o, p, q] * weight[o, c, r, s]
//   backward_weights   weight_gradient[o, c, r, s] = sum over n, p, q of g[n, o, p, q] * x[n, c', h, w]
//   h = p * stride_h + r * dilation_h - padding_h, w = q * stride_w + s * dilation_w - padding_w
//
// with g the gradient of out, n in [0, images), o in [0, filters), c in [0, group_channels), c' = c + group(o) *
// group_channels, (r, s) in the filter, (p, q) in the output, (h, w) in the input. One work-item computes one element
// of the result; `count` is their number and the global size is that rounded up to the local size. Without has_bias,
// `bias` may be any buffer and is not read.
//
//   REAL, REAL_IS_DOUBLE   type of the arithmetic (math.clh)
//   STORED, OUTPUT         types of operands and result in memory (storage.clh)
#include "math.clh"
#include "storage.clh"

struct Conv2d {
    long channels, filters, group_channels, group_filters;
    long height, width, filter_height, filter_width, out_height, out_width;
    long stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
    long images, has_bias;
};

// Splits the innermost index, of `size` values, off `rest`. Without %: clang turns a pair of / and % into a freeze
// instruction, which Oclgrind does not support.
static long split(long* rest, const long size) {
    const long outer = *rest / size, inner = *rest - outer * size;
    *rest = outer;
    return inner;
}

__kernel void conv2d_direct_forward(const struct Conv2d d, const long count, __global const STORED* restrict x,
                                    const long x_offset, __global const STORED* restrict weight,
                                    const long weight_offset, __global OUTPUT* restrict out, const long out_offset,
                                    __global const STORED* restrict bias, const long bias_offset) {
    long rest = get_global_id(0);
    if (rest >= count) return;
    __global OUTPUT* result = out + out_offset + rest;
    const long q = split(&rest, d.out_width);
    const long p = split(&rest, d.out_height);
    const long o = split(&rest, d.filters);
    const long n = rest;
    const long first_channel = o / d.group_filters * d.group_channels;
    __global const STORED* filter = weight + weight_offset + o * d.group_channels * d.filter_height * d.filter_width;
    REAL sum = 0;
    for (long c = 0; c < d.group_channels; ++c) {
        __global const STORED* plane = x + x_offset + (n * d.channels + first_channel + c) * d.height * d.width;
        for (long r = 0; r < d.filter_height; ++r) {
            const long h = p * d.stride_h + r * d.dilation_h - d.padding_h;
            for (long s = 0; s < d.filter_width; ++s, ++filter) {
                const long w = q * d.stride_w + s * d.dilation_w - d.padding_w;
                if (h >= 0 && h < d.height && w >= 0 && w < d.width)
                    sum += LOADED(plane[h * d.width + w]) * LOADED(*filter);
            }
        }
    }
    if (d.has_bias) sum += LOADED(bias[bias_offset + o]);
    *result = ROUNDED(sum);
}

__kernel void conv2d_direct_backward_input(const struct Conv2d d, const long count, __global const STORED* restrict g,
                                           const long g_offset, __global const STORED* restrict weight,
                                           const long weight_offset, __global OUTPUT* restrict x_gradient,
                                           const long x_gradient_offset) {
    long rest = get_global_id(0);
    if (rest >= count) return;
    __global OUTPUT* result = x_gradient + x_gradient_offset + rest;
    const long w = split(&rest, d.width);
    const long h = split(&rest, d.height);
    const long channel = split(&rest, d.channels);
    const long n = rest;
    const long group = channel / d.group_channels;
    const long c = channel - group * d.group_channels;
    const long first_filter = group * d.group_filters;
    REAL sum = 0;
    for (long i = 0; i < d.group_filters; ++i) {
        const long o = first_filter + i;
        __global const STORED* plane = g + g_offset + (n * d.filters + o) * d.out_height * d.out_width;
        __global const STORED* filter =
            weight + weight_offset + (o * d.group_channels + c) * d.filter_height * d.filter_width;
        for (long r = 0; r < d.filter_height; ++r) {
            const long y = h + d.padding_h - r * d.dilation_h;
            const long p = y / d.stride_h;
            if (y < 0 || p * d.stride_h != y || p >= d.out_height) continue;
            for (long s = 0; s < d.filter_width; ++s) {
                const long z = w + d.padding_w - s * d.dilation_w;
                const long q = z / d.stride_w;
                if (z < 0 || q * d.stride_w != z || q >= d.out_width) continue;
                sum += LOADED(plane[p * d.out_width + q]) * LOADED(filter[r * d.filter_width + s]);
            }
        }
    }
    *result = ROUNDED(sum);
}

__kernel void conv2d_direct_backward_weights(const struct Conv2d d, const long count, __global const STORED* restrict x,
                                             const long x_offset, __global const STORED* restrict g,
                                             const long g_offset, __global OUTPUT* restrict weight_gradient,
                                             const long weight_gradient_offset) {
    long rest = get_global_id(0);
    if (rest >= count) return;
    __global OUTPUT* result = weight_gradient + weight_gradient_offset + rest;
    const long s = split(&rest, d.filter_width);
    const long r = split(&rest, d.filter_height);
    const long c = split(&rest, d.group_channels);
    const long o = rest;
    const long channel = o / d.group_filters * d.group_channels + c;
    REAL sum = 0;
    for (long n = 0; n < d.images; ++n) {
        __global const STORED* from = g + g_offset + (n * d.filters + o) * d.out_height * d.out_width;
        __global const STORED* plane = x + x_offset + (n * d.channels + channel) * d.height * d.width;
        for (long p = 0; p < d.out_height; ++p) {
            const long h = p * d.stride_h + r * d.dilation_h - d.padding_h;
            if (h < 0 || h >= d.height) continue;
            for (long q = 0; q < d.out_width; ++q) {
                const long w = q * d.stride_w + s * d.dilation_w - d.padding_w;
                if (w >= 0 && w < d.width) sum += LOADED(from[p * d.out_width + q]) * LOADED(plane[h * d.width + w]);
            }
        }
    }
    *result = ROUNDED(sum);
}
