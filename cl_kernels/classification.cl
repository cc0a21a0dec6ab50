// totals[0] += loss * N; totals[1] += number of rows n with argmax over c of scores[n][c] == labels[n].
//
// One work-group, so that the sums have one order; its items take every GROUP-th row.
//   REAL   type of the scores
//   LABEL  int or long
//   GROUP  work-items, a power of two (CPU 1, GPU up to 256)
#include "math.clh"

__kernel void add_classification(const long N, const long C, __global const REAL* restrict scores_base, const long scores_offset,
                                 __global const LABEL* restrict labels_base, const long labels_offset,
                                 __global const REAL* restrict loss_base, const long loss_offset, __global float* restrict totals_base,
                                 const long totals_offset) {
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
    }
}
