// totals[0] += loss * N; totals[1] += number of rows n with argmax over c of scores[n][c] == labels[n]. noted[0] += 1;
// if the loss is infinite or NaN, some label lies outside [0, C) and noted[1] == 0: noted[1] = noted[0], noted[2] = the
// first such label, noted[3] = the first that differs from it, or the same once more.
//
// One work-group, so that the sums have one order; its items take every GROUP-th row.
//   REAL   type of the scores
//   LABEL  int or long
//   GROUP  work-items, a power of two (CPU 1, GPU up to 256)
#include "math.clh"
#include "not_finite.clh"

__kernel void add_classification(const long N, const long C, __global const REAL* restrict scores_base,
                                 const long scores_offset, __global const LABEL* restrict labels_base,
                                 const long labels_offset, __global const REAL* restrict loss_base,
                                 const long loss_offset, __global float* restrict totals_base, const long totals_offset,
                                 __global long* restrict noted_base, const long noted_offset) {
    __local int counts[GROUP];
    const int item = get_local_id(0);
    int right = 0;
    for (long n = item; n < N; n += GROUP) {
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
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) counts[item] += counts[item + reach];
    }
    if (item == 0) {
        totals_base[totals_offset] += (float)(loss_base[loss_offset] * (REAL)N);
        totals_base[totals_offset + 1] += (float)counts[0];
        __global long* noted = noted_base + noted_offset;
        const long call = noted[0] + 1;
        noted[0] = call;
        if (NOT_FINITE(loss_base[loss_offset]) && noted[1] == 0) {
            for (long n = 0; n < N; ++n) {
                const LABEL label = labels_base[labels_offset + n];
                if (label >= 0 && label < C) continue;
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
