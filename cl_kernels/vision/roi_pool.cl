// RoI max pooling: the index of the largest pixel in each of P x Q bins of box k, for each channel c of its image,
//
//   out[k][c][p][q] = h * W + w of the first of the largest x[images[k]][c][h][w], or -1 if the bin has no pixel
//
// A box with corners round(scale * x1), ..., inclusive at both ends, has bins from floor(p height / P) to
// ceil((p + 1) height / P), clipped to the image. NaN is the largest.
//
//   global (elements of out, rounded up to the local size)
//   SIMD, SIMT  simd or simt style
//   REAL        float or double
#include "noinline.clh"
#include "math.clh"

struct RoiPool {
    long total, images;
    int channels, H, W, P, Q;
    int unused;  // avoids padding of the struct
};

// Rounds to the nearest integer, halfway cases away from 0.
static inline int rounded(const REAL v) {
    const REAL integer = floor(fabs(v)), up = fabs(v) - integer >= (REAL)0.5 ? integer + 1 : integer;
    return (int)(v < 0 ? -up : up);
}

// One end of a bin, clipped to the image. Integer arithmetic: a quotient in REAL may round across an integer.
static inline int bin_end(const long end, const int start, const int size) {
    return (int)clamp(end + start, 0l, (long)size);
}

#ifdef SIMD
#define MAYBE_NOINLINE NOINLINE
#else
#define MAYBE_NOINLINE static inline
#endif

MAYBE_NOINLINE int index_of_largest(__global const REAL* x, __global const REAL* box, const REAL scale, const int p,
                                    const int q, const int H, const int W, const int P, const int Q) {
    const int x1 = rounded(box[0] * scale), y1 = rounded(box[1] * scale);
    const int x2 = rounded(box[2] * scale), y2 = rounded(box[3] * scale);
    const long height = max((long)y2 - y1 + 1, 1l), width = max((long)x2 - x1 + 1, 1l);
    const int first_h = bin_end(p * height / P, y1, H), last_h = bin_end(((p + 1) * height + P - 1) / P, y1, H);
    const int first_w = bin_end(q * width / Q, x1, W), last_w = bin_end(((q + 1) * width + Q - 1) / Q, x1, W);
    int index = -1;
    REAL largest = 0;
    for (int h = first_h; h < last_h; ++h)
        for (int w = first_w; w < last_w; ++w) {
            const REAL value = x[h * W + w];
            const int better = index < 0 || value > largest || (value != value && largest == largest);
            largest = better ? value : largest;
            index = better ? h * W + w : index;
        }
    return index;
}

__kernel void roi_pool(const struct RoiPool s, __global const REAL* restrict x, const long x_offset,
                       __global const REAL* restrict boxes, const long boxes_offset,
                       __global const long* restrict images, const long images_offset, const REAL scale,
                       __global int* restrict out, const long out_offset) {
    const long at = get_global_id(0);
    if (at >= s.total) return;
    const long plane = at / (s.P * s.Q), k = plane / s.channels;
    const int inner = (int)(at - plane * (s.P * s.Q)), p = inner / s.Q, q = inner - p * s.Q;
    const long image = images[images_offset + k];
    const int is_valid = image >= 0 && image < s.images;
    const long channel = (is_valid ? image : 0) * s.channels + (plane - k * s.channels);
    const int index = index_of_largest(x + x_offset + channel * (s.H * s.W), boxes + boxes_offset + k * 4, scale, p, q,
                                       s.H, s.W, s.P, s.Q);
    out[out_offset + at] = is_valid ? index : -1;
}
