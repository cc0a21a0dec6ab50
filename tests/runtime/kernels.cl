// Kernels of tests/runtime/*.cpp.
#include "kernels_helper.clh"
#include "math.clh"

__kernel void scale(const long n, __global const float* restrict in_base, const long in_offset,
                    __global float* restrict out_base, const long out_offset, const float factor) {
    const long i = get_global_id(0);
    if (i < n) out_base[out_offset + i] = HELPED(in_base[in_offset + i]) * factor;
}

// out[i] = the number of work-items in the work-group of work-item i, counted in local memory.
__kernel void group_sizes(__local int* words, __global int* restrict out_base, const long out_offset) {
    const int item = get_local_id(0), items = get_local_size(0);
    words[item] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int i = 0; i < items; ++i) sum += words[i];
    out_base[out_offset + get_global_id(0)] = sum;
}

// Each work-item of a three-dimensional range writes its coordinates.
__kernel void places(__global int* restrict out_base, const long out_offset) {
    const long at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
    out_base[out_offset + at] = (int)(100 * get_global_id(2) + 10 * get_global_id(1) + get_global_id(0));
}

struct Pair {
    long a;
    int b[2];
};

__kernel void add_pair(const struct Pair pair, __global long* restrict out_base, const long out_offset) {
    out_base[out_offset] = pair.a + pair.b[0] - pair.b[1];
}

// A slow kernel: computes a sum of `steps` terms that cannot be simplified, then copies.
__kernel void slow_copy(const int steps, __global const int* restrict in_base, const long in_offset,
                        __global int* restrict out_base, const long out_offset) {
    uint state = 1;
    for (int i = 0; i < steps; ++i) state = state * 1664525u + 1013904223u;
    out_base[out_offset + get_global_id(0)] = in_base[in_offset + get_global_id(0)] + (state == 0u ? 1 : 0);
}

__kernel void count_up(__global int* restrict out_base, const long out_offset, const int by) {
    out_base[out_offset + get_global_id(0)] += by;
}
