// guard[1] += 1; if some losses[i] is infinite or NaN and guard[0] == 0: guard[0] = guard[1]. One work-item.
// count_step: steps[tensors[i]] += 1 for each i below n, unless guard[0] is set. One work-group of any size.
#include "math.clh"
#include "not_finite.clh"

__kernel void check_finite(const long n, __global const REAL* restrict losses_base, const long losses_offset,
                           __global int* restrict guard_base, const long guard_offset) {
    __global const REAL* losses = losses_base + losses_offset;
    __global int* guard = guard_base + guard_offset;
    int bad = 0;
    for (long i = 0; i < n; ++i) bad |= NOT_FINITE(losses[i]);
    const int step = guard[1] + 1;
    guard[1] = step;
    if (bad && guard[0] == 0) guard[0] = step;
}

__kernel void count_step(const long n, __global const long* restrict tensors_base, const long tensors_offset,
                         __global REAL* restrict steps_base, const long steps_offset,
                         __global const int* restrict guard_base, const long guard_offset) {
    if (guard_base[guard_offset] != 0) return;
    for (long i = get_local_id(0); i < n; i += get_local_size(0))
        steps_base[steps_offset + tensors_base[tensors_offset + i]] += (REAL)1;
}
