// Training metrics of a classification batch, accumulated on the device.
//
//   totals[0] += loss * w and totals[2] += w, unless w is 0; w is weight[0] if `has_weight`, otherwise
//                `constant_weight`. With `is_sum` the loss is added unscaled
//   totals[1] += number of rows n with argmax over c of scores[n][c] == labels[n]
//   totals[3] += number of rows whose label is not ignored
//   label_errors[0] += 1. If the loss is infinite or NaN, w is not 0, some label that is not ignored is outside [0, C),
//               and label_errors[1] == 0: label_errors[1] = label_errors[0], label_errors[2] = the first such label,
//               label_errors[3] = the first such label that differs from it, or the same label again
//
// One work-group, so that sums have a fixed order; its work-items process every GROUP-th row.
//
//   REAL   type of the scores
//   LABEL  int or long
//   GROUP  work-items, a power of two: 1 in simd style, up to 256 in simt style
#include "math.clh"
#include "not_finite.clh"

// Index of the first largest of C scores. NaN is not larger than any other.
static inline long argmax_of_row(__global const REAL* row, const long C) {
    REAL best = row[0];
    long at = 0;
    for (long c = 1; c < C; ++c)
        if (row[c] > best) {
            best = row[c];
            at = c;
        }
    return at;
}

// Sums over the work-items, to element 0 of each array.
static inline void sum_over_items(__local int* a, __local int* b) {
    const int item = get_local_id(0);
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < distance) {
            a[item] += a[item + distance];
            b[item] += b[item + distance];
        }
    }
}

// Writes the first label that is neither ignored nor a class, and the first one that differs from it.
static inline void find_invalid_labels(__global const LABEL* labels, const long N, const long C,
                                       const long ignore_index, const int has_ignore_index, const long calls,
                                       __global long* label_errors) {
    for (long n = 0; n < N; ++n) {
        const LABEL label = labels[n];
        if ((label >= 0 && label < C) || (has_ignore_index && (long)label == ignore_index)) continue;
        if (label_errors[1] == 0) {
            label_errors[1] = calls;
            label_errors[2] = label;
            label_errors[3] = label;
        } else if (label != label_errors[2]) {
            label_errors[3] = label;
            break;
        }
    }
}

__kernel void add_classification(const long N, const long C, __global const REAL* restrict scores_base,
                                 const long scores_offset, __global const LABEL* restrict labels_base,
                                 const long labels_offset, __global const REAL* restrict loss_base,
                                 const long loss_offset, __global const float* weight_base, const long weight_offset,
                                 const int has_weight, const float constant_weight, const int is_sum,
                                 const long ignore_index, const int has_ignore_index, __global float* totals_base,
                                 const long totals_offset, __global long* restrict label_errors_base,
                                 const long label_errors_offset) {
    __local int correct_rows[GROUP], counted_rows[GROUP];
    const int item = get_local_id(0);
    __global const LABEL* labels = labels_base + labels_offset;
    int correct = 0, counted = 0;
    for (long n = item; n < N; n += GROUP) {
        if (has_ignore_index && (long)labels[n] == ignore_index) continue;
        ++counted;
        correct += argmax_of_row(scores_base + scores_offset + n * C, C) == (long)labels[n];
    }
    correct_rows[item] = correct;
    counted_rows[item] = counted;
    sum_over_items(correct_rows, counted_rows);
    if (item > 0) return;
    __global float* totals = totals_base + totals_offset;
    const REAL loss = loss_base[loss_offset];
    const float w = has_weight ? weight_base[weight_offset] : constant_weight;
    if (w != 0) {
        totals[0] += (float)(is_sum ? loss : loss * (REAL)w);
        totals[2] += w;
    }
    totals[1] += (float)correct_rows[0];
    totals[3] += (float)counted_rows[0];
    __global long* label_errors = label_errors_base + label_errors_offset;
    const long calls = label_errors[0] + 1;
    label_errors[0] = calls;
    if (w != 0 && NOT_FINITE(loss) && label_errors[1] == 0)
        find_invalid_labels(labels, N, C, ignore_index, has_ignore_index, calls, label_errors);
}
