// Detection of non-finite losses and skipped steps through a guard on the device: guard[0] is the first bad step, or
// SKIPPED, or 0; guard[1] counts the steps.
//
//   check_finite:    guard[1] += 1; if some losses[i] is infinite or NaN and guard[0] == 0: guard[0] = guard[1]. Clears
//                    the mark of a skipped step, guard[0] == SKIPPED, first. One work-item
//   check_weighted:  the same for one loss and the weight it was divided by: with a weight of 0 the loss is ignored,
//                    and, if `skips`, guard[0] = SKIPPED
//   skip_weightless: guard[0] = SKIPPED if weights[0] == 0 and guard[0] == 0. One work-item
//   end_skip:        clears SKIPPED
//   count_step:      steps[tensors[i]] += 1 for each i below n, unless guard[0] is set. One work-group of any size
//
//   REAL  type of losses and steps
#include "math.clh"
#include "not_finite.clh"

#define SKIPPED (-1)  // kSkippedStep

__kernel void check_finite(const long n, __global const REAL* restrict losses_base, const long losses_offset,
                           __global int* restrict guard_base, const long guard_offset) {
    __global const REAL* losses = losses_base + losses_offset;
    __global int* guard = guard_base + guard_offset;
    int bad = 0;
    for (long i = 0; i < n; ++i) bad |= NOT_FINITE(losses[i]);
    const int step = guard[1] + 1;
    const int before = guard[0] == SKIPPED ? 0 : guard[0];
    guard[1] = step;
    guard[0] = bad && before == 0 ? step : before;
}

__kernel void check_weighted(__global const REAL* restrict loss_base, const long loss_offset,
                             __global const float* restrict weights_base, const long weights_offset,
                             __global int* restrict guard_base, const long guard_offset, const int skips) {
    __global int* guard = guard_base + guard_offset;
    const float weight = weights_base[weights_offset];
    const int unknown = (as_uint(weight) & 0x7f800000u) == 0x7f800000u;
    const int bad = unknown || (weight != 0 && NOT_FINITE(loss_base[loss_offset]));
    const int step = guard[1] + 1;
    const int before = guard[0] == SKIPPED ? 0 : guard[0];
    guard[1] = step;
    guard[0] = before != 0 ? before : bad ? step : weight == 0 && skips ? SKIPPED : 0;
}

__kernel void skip_weightless(__global const float* restrict weights_base, const long weights_offset,
                              __global int* restrict guard_base, const long guard_offset) {
    if (weights_base[weights_offset] == 0 && guard_base[guard_offset] == 0) guard_base[guard_offset] = SKIPPED;
}

__kernel void end_skip(__global int* restrict guard_base, const long guard_offset) {
    if (guard_base[guard_offset] == SKIPPED) guard_base[guard_offset] = 0;
}

__kernel void count_step(const long n, __global const long* restrict tensors_base, const long tensors_offset,
                         __global REAL* restrict steps_base, const long steps_offset,
                         __global const int* restrict guard_base, const long guard_offset) {
    if (guard_base[guard_offset] != 0) return;
    for (long i = get_local_id(0); i < n; i += get_local_size(0))
        steps_base[steps_offset + tensors_base[tensors_offset + i]] += (REAL)1;
}
