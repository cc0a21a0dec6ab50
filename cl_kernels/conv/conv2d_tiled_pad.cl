// Copies of images with zero padding, split into phases, for the tiled convolution (conv2d_tiled.cl).
//
//   copy[plane][k_h][k_w][i][j] = source[plane][i * stride_h + k_h * step_h % stride_h - origin_h][likewise j], 0
//     outside
//
// for planes n * channels + c of the source, phases (k_h, k_w), i in [0, rows), j in [0, pitch). A gap may follow each
// plane, and a tail the last one, for vectors that extend past the end; both are set to zero.
//
//   REAL    element type
//   GROUP   1: simd style, a work-item copies a plane; otherwise simt style, a work-item copies an element
#include "math.clh"

struct Pad {
    long planes;        // source planes: images * channels
    long plane;         // stride between copied planes, including phases and the gap
    long total;         // elements of the copy: planes, and the tail that vectors may read
    int height, width;  // of a source plane
    int rows, pitch;    // of one phase of the copy
    int stride_h, stride_w, phases_h, phases_w, step_h, step_w;  // phase k has the remainder k * step % stride
    int origin_h, origin_w;                                      // source row = row * stride + remainder - origin
};

#if GROUP == 1

// Copies one row of a phase: elements `first`, first + stride, ... of a source row, zeros outside.
static void pad_row(__global const REAL* restrict source, __global REAL* restrict to, const int pitch, const int first,
                    const int stride, const int width) {
    const int before = first >= 0 ? 0 : min(pitch, (-first + stride - 1) / stride);
    const int end = first >= width ? before : clamp((width - first + stride - 1) / stride, before, pitch);
    for (int j = 0; j < before; ++j) to[j] = 0;
    if (stride == 1)
        for (int j = before; j < end; ++j) to[j] = source[first + j];
    else
        for (int j = before; j < end; ++j) to[j] = source[first + j * stride];
    for (int j = end; j < pitch; ++j) to[j] = 0;
}

// A work-item copies one plane; the last one also clears the tail.
__kernel void conv2d_tiled_pad(const struct Pad pad, __global const REAL* restrict source, const long source_offset,
                               __global REAL* restrict copy, const long copy_offset) {
    const long plane = get_global_id(0);
    __global const REAL* from = source + source_offset + plane * pad.height * pad.width;
    __global REAL* to = copy + copy_offset + plane * pad.plane;
    __global REAL* plane_end = plane + 1 == pad.planes ? copy + copy_offset + pad.total : to + pad.plane;
    for (int phase_h = 0; phase_h < pad.phases_h; ++phase_h)
        for (int phase_w = 0; phase_w < pad.phases_w; ++phase_w) {
            const int first_h = phase_h * pad.step_h % pad.stride_h - pad.origin_h;
            const int first_w = phase_w * pad.step_w % pad.stride_w - pad.origin_w;
            for (int row = 0; row < pad.rows; ++row, to += pad.pitch) {
                const int h = first_h + row * pad.stride_h;
                const bool inside = h >= 0 && h < pad.height;
                pad_row(from + (inside ? (long)h * pad.width : 0), to, pad.pitch, first_w, pad.stride_w,
                        inside ? pad.width : 0);
            }
        }
    for (; to < plane_end; ++to) *to = 0;
}

#else

// A work-item copies one element.
__kernel void conv2d_tiled_pad(const struct Pad pad, __global const REAL* restrict source, const long source_offset,
                               __global REAL* restrict copy, const long copy_offset) {
    const long i = get_global_id(0);
    if (i >= pad.total) return;
    const long plane = i / pad.plane;
    const int rest = (int)(i - plane * pad.plane);
    const int phase = rest / (pad.rows * pad.pitch);
    const int in_phase = rest - phase * pad.rows * pad.pitch;
    const int row = in_phase / pad.pitch;
    const int phase_h = phase / pad.phases_w;
    const int h = phase_h * pad.step_h % pad.stride_h - pad.origin_h + row * pad.stride_h;
    const int w = (phase - phase_h * pad.phases_w) * pad.step_w % pad.stride_w - pad.origin_w +
                  (in_phase - row * pad.pitch) * pad.stride_w;
    const bool inside =
        plane < pad.planes && phase_h < pad.phases_h && h >= 0 && h < pad.height && w >= 0 && w < pad.width;
    copy[copy_offset + i] = inside ? source[source_offset + (plane * pad.height + h) * pad.width + w] : (REAL)0;
}

#endif
