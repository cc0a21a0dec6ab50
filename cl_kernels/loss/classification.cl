// Training metrics of a classification batch, accumulated on the device.
//
//   totals[0] += loss * w and totals[2] += w, unless w is 0; w is weight[0] if `has_weight`, otherwise `number`. With
//                `is_sum` the loss is added unscaled
//   totals[1] += number of rows n with argmax over c of scores[n][c] == labels[n]
//   totals[3] += number of rows whose label is not ignored
//   noted[0] += 1. If the loss is infinite or NaN, w is not 0, some label that is not ignored is outside [0, C), and
//               noted[1] == 0: noted[1] = noted[0], noted[2] = the first such label, noted[3] = the first such label
//               that differs from it, or the same label again
//
// One work-group, so that sums have a fixed order; its work-items process every GROUP-th row.
//
//   REAL   type of the scores
//   LABEL  int or long
//   GROUP  work-items, a power of two: 1 in simd style, up to 256 in simt style
#include "math.clh"
#include "not_finite.clh"

__kernel void add_classification(const long N, const long C, __global const REAL* restrict scores_base,
                                 const long scores_offset, __global const LABEL* restrict labels_base,
                                 const long labels_offset, __global const REAL* restrict loss_base,
                                 const long loss_offset, __global const float* weight_base, const long weight_offset,
                                 const int has_weight, const float number, const int is_sum, const long ignore_index,
                                 const int ignores, __global float* totals_base, const long totals_offset,
                                 __global long* restrict noted_base, const long noted_offset) {
    __local int counts[GROUP], rows[GROUP];
    const int item = get_local_id(0);
    int right = 0, counted = 0;
    for (long n = item; n < N; n += GROUP) {
        if (ignores && (long)labels_base[labels_offset + n] == ignore_index) continue;
        ++counted;
        __global const REAL* row = scores_base + scores_offset + n * C;
        REAL best = row[0];
        long at = 0;
        for (long c = 1; c < C; ++c)
            if (row[c] > best) {
                best = row[c];
                at = c;
            }
        right += at == (long)labels_base[labels_offset + n];
    }
    counts[item] = right;
    rows[item] = counted;
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) {
            counts[item] += counts[item + reach];
            rows[item] += rows[item + reach];
        }
    }
    if (item == 0) {
        const float w = has_weight ? weight_base[weight_offset] : number;
        if (w != 0) {
            totals_base[totals_offset] += (float)(is_sum ? loss_base[loss_offset] : loss_base[loss_offset] * (REAL)w);
            totals_base[totals_offset + 2] += w;
        }
        totals_base[totals_offset + 1] += (float)counts[0];
        totals_base[totals_offset + 3] += (float)rows[0];
        __global long* noted = noted_base + noted_offset;
        const long call = noted[0] + 1;
        noted[0] = call;
        if (w != 0 && NOT_FINITE(loss_base[loss_offset]) && noted[1] == 0) {
            for (long n = 0; n < N; ++n) {
                const LABEL label = labels_base[labels_offset + n];
                if ((label >= 0 && label < C) || (ignores && (long)label == ignore_index)) continue;
                if (noted[1] == 0) {
                    noted[1] = call;
                    noted[2] = label;
                    noted[3] = label;
                } else if (label != noted[2]) {
                    noted[3] = label;
                    break;
                }
            }
        }
    }
}
