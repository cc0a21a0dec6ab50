// Convolution by register tiles over bands of rows, for CPU-like devices. Serves forward and backward_input: both are sums
//
//   out[n, o, p, q] = bias[o] + sum over c, i, j of  weight[o][c, i, j] * x[n, c, p * step_h + i * hop_h - above, q * step_w + j * hop_w - left]
//
// with zeros outside of x. A work-group copies the rows of all channels that a band of rows of out meets into local memory (bands.clh)
// and multiplies them where they are: position (p, q) of a band is the number p * pitch + q, a tap is an offset, and vectors of positions
// run on over the ends of rows; what they hold there is not stored. So an element is copied once, and not once for each tap as by
// conv2d_gemm.cl, which pays where few filters share the copies.
//
// For backward_input x is the gradient of the output, and the filters are read flipped and transposed. A stride of forward then is one
// sum for each phase of the result, which are zipped as they are stored.
//
//   ROWS, COLUMNS  of a register tile: filters, and positions
//   TAPS_H, TAPS_W elements of the filter
//   UP_H, UP_W     phases of the result; BACK  1: backward_input
//   BLOCK          elements of local memory
//   REAL, VW       (vectors.clh)
#define GROUP 1
#include "bands.clh"

#define VECTORS (COLUMNS / VW)
#define UP (UP_H * UP_W)
#define TAPS (TAPS_H * TAPS_W)

struct Banded {
    long x_image, x_channel, x_count;      // elements from one image and channel of x to the next; all
    long out_image, out_channel;           // the same of out
    long a_group, a_row, a_channel;        // elements from one group of weights, filter o, and channel c to the next
    int channels, filters;                 // c and o of a group
    int height, width;                     // of x
    int rows, columns;                     // of out
    int step_h, step_w, above, left, hop_h, hop_w, padding_h, padding_w;
    int pitch, band, bands;                // elements of a copied row; rows of a phase of out of a work-group; work-groups of an image
    int reach;                             // rows of a phase of x that the last row of out meets behind its first
    int phase_size, copy_size;             // elements of a copied phase of x, and of a channel
    int made, made_size;                   // where the sums of a panel of filters go, and elements of a row of them
    int row_panels, row_panels_each;       // panels of ROWS filters: all, and of a work-group
    int has_bias;                          // 0: `bias` is any buffer, and not read
};

// The taps of a phase of out: how many, their elements of the filter, and where in the copies they lie.
struct Taps {
    int count;
    int element[TAPS], offset[TAPS];
};

static void find_taps(const struct Banded* d, const int b, const int a, struct Taps* taps) {
    taps->count = 0;
    for (int i = 0; i < TAPS_H; ++i) {
        // Positions p of forward meet row p * step + i * hop - padding: of backward, where a stride divides, p = (h + padding - i * hop) / step.
        const int k = BACK ? b + d->padding_h - i * d->hop_h : i * d->hop_h, step_h = BACK ? UP_H : d->step_h;
        const int row = BACK ? (k + step_h * d->above) / step_h : k / step_h;
        if (BACK && (row - d->above) * step_h != k) continue;
        for (int j = 0; j < TAPS_W; ++j) {
            const int m = BACK ? a + d->padding_w - j * d->hop_w : j * d->hop_w, step_w = BACK ? UP_W : d->step_w;
            const int column = BACK ? (m + step_w * d->left) / step_w : m / step_w;
            if (BACK && (column - d->left) * step_w != m) continue;
            const int phase = BACK ? 0 : (k - row * step_h) * step_w + (m - column * step_w);
            taps->element[taps->count] = i * TAPS_W + j;
            taps->offset[taps->count++] = phase * d->phase_size + row * d->pitch + column;
        }
    }
}

// Rows [0, rows) of one filter's out from the sums of its phases, `apart` elements from one another; `end` is where what may be
// Adds to the first `vectors` vectors of a tile what all channels and taps give.
#define ADD_CHANNELS(vectors)                                                                          \
    for (int c = 0; c < d.channels; ++c, plane += d.copy_size)                                         \
        for (int t = 0; t < taps[phase].count; ++t) {                                                  \
            __local const REAL* right = plane + taps[phase].offset[t];                                 \
            const long position = c * d.a_channel + taps[phase].element[t];                            \
            VEC values[vectors];                                                                       \
            _Pragma("unroll") for (int v = 0; v < vectors; ++v) values[v] = VLOAD(right + v * VW);     \
            _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                         \
                const VEC factor = (VEC)(left[i][position]);                                           \
                _Pragma("unroll") for (int v = 0; v < vectors; ++v) sum[i][v] = fma(factor, values[v], sum[i][v]); \
            }                                                                                          \
        }

// global size (images * bands, ceil(row_panels / row_panels_each), groups)
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_banded(const struct Banded args, __global const REAL* restrict x, const long x_offset,
                   __global const REAL* restrict a, const long a_offset, __global REAL* restrict out, const long out_offset,
                   __global const REAL* restrict bias, const long bias_offset) {
    const struct Banded d = args;
    __local REAL block[BLOCK];
    struct Taps taps[UP];
    for (int phase = 0; phase < UP; ++phase) find_taps(&d, phase / UP_W, phase % UP_W, taps + phase);
    const struct Band shape = {d.height, d.width, d.step_h, d.step_w, d.above, d.left, d.pitch, d.phase_size};
    const int group = get_global_id(2), n = get_global_id(0) / d.bands, first = (get_global_id(0) - n * d.bands) * d.band;
    const int phase_rows = (d.rows + UP_H - 1) / UP_H, count = min(d.band, phase_rows - first);
    const int out_rows = min(count * UP_H, d.rows - first * UP_H), size = count * d.pitch;
    const long from = n * d.x_image + (long)group * d.channels * d.x_channel;
    const int copied = (count + d.reach) * d.pitch;
    for (int c = 0; c < d.channels; ++c) {
        // What lies behind the rows is read, and not stored.
        for (int e = c * d.copy_size; e < (c + 1) * d.copy_size; e += d.phase_size) clear(block + e + copied, d.phase_size - copied);
        copy_band(&shape, x + x_offset + from + c * d.x_channel, d.x_count - from - c * d.x_channel, first, count + d.reach, block + c * d.copy_size);
    }
    clear(block + d.channels * d.copy_size, d.made - d.channels * d.copy_size);
    const int first_panel = get_global_id(1) * d.row_panels_each, end_panel = min(first_panel + d.row_panels_each, d.row_panels);
    for (int panel = first_panel; panel < end_panel; ++panel) {
        const int height = min(ROWS, d.filters - panel * ROWS);
        __global const REAL* left[ROWS];
        // Behind the last filter the last one is multiplied again, and not stored.
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) left[i] = a + a_offset + group * d.a_group + (panel * ROWS + min(i, height - 1)) * d.a_row;
        for (int phase = 0; phase < UP; ++phase)
            for (int f = 0; f < size; f += COLUMNS) {
                VEC sum[ROWS][VECTORS];
                #pragma unroll
                for (int i = 0; i < ROWS; ++i) {
                    const VEC begin = (VEC)(d.has_bias ? bias[bias_offset + group * d.filters + panel * ROWS + min(i, height - 1)] : (REAL)0);
                    #pragma unroll
                    for (int v = 0; v < VECTORS; ++v) sum[i][v] = begin;
                }
                __local const REAL* plane = block + f;
                if (size - f > VW) ADD_CHANNELS(VECTORS)
                else ADD_CHANNELS(1)  // what is left often fills but one vector
                #pragma unroll
                for (int i = 0; i < ROWS; ++i)
                    #pragma unroll
                    for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], block + d.made + (i * UP + phase) * d.made_size + f + v * VW);
            }
        __global REAL* to = out + out_offset + n * d.out_image + (long)(group * d.filters + panel * ROWS) * d.out_channel + (long)first * UP_H * d.columns;
        for (int i = 0; i < height; ++i, to += d.out_channel)
            store_rows(block + d.made + i * UP * d.made_size, d.made_size, d.pitch, d.columns, out_rows, to, to + (long)out_rows * d.columns);
    }
}
