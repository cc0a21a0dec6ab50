// Work-group features that `declivity doctor` checks. Each kernel works with any number of work-items per group,
// `items`; the elements of a group are contiguous.
//
//   STATIC   capacity of static local memory in work-items

// Ids: out[item] = x, y, z of global, local and group ids, 21 bits each.
__kernel void doctor_ids(__global long* restrict out, const long out_offset) {
    const size_t width = get_global_size(0), height = get_global_size(1);
    const size_t item = (get_global_id(2) * height + get_global_id(1)) * width + get_global_id(0);
    __global long* at = out + out_offset + 3 * item;
    at[0] = (long)get_global_id(0) | (long)get_global_id(1) << 21 | (long)get_global_id(2) << 42;
    at[1] = (long)get_local_id(0) | (long)get_local_id(1) << 21 | (long)get_local_id(2) << 42;
    at[2] = (long)get_group_id(0) | (long)get_group_id(1) << 21 | (long)get_group_id(2) << 42;
}

// Reverses each group's elements through static local memory.
__kernel void doctor_static(__global const int* restrict a, const long a_offset, __global int* restrict out,
                            const long out_offset) {
    __local int tile[STATIC];
    const int item = get_local_id(0), items = get_local_size(0);
    tile[item] = a[a_offset + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[out_offset + get_global_id(0)] = tile[items - 1 - item];
}

// The same through two arguments of different types: reversed in `first`, rotated by one in `second`.
__kernel void doctor_local_arguments(__global const int* restrict a, const long a_offset, __local int* first,
                                     __global long* restrict out, const long out_offset, __local long* second) {
    const int item = get_local_id(0), items = get_local_size(0);
    first[item] = a[a_offset + get_global_id(0)];
    second[item] = (long)a[a_offset + get_global_id(0)] << 32;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[out_offset + get_global_id(0)] = (long)first[items - 1 - item] + second[(item + 1) % items];
}

// All elements of a local argument are written by one work-item and read by another.
__kernel void doctor_whole_local(__local int* all, const int count, __global int* restrict out, const long out_offset) {
    const int item = get_local_id(0), items = get_local_size(0);
    for (int i = item; i < count; i += items) all[i] = i * 3 + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    int wrong = 0;
    for (int i = items - 1 - item; i < count; i += items) wrong += all[i] != i * 3 + 1 ? 1 : 0;
    out[out_offset + get_global_id(0)] = wrong;
}

// Sum of all elements of a group, in `steps` slices with double-buffered local memory: one slice is read while the next
// is written.
__kernel void doctor_double_buffer(__global const float* restrict a, const long a_offset, const int steps,
                                   __global float* restrict out, const long out_offset) {
    __local float4 slices[2][STATIC];
    const int item = get_local_id(0), items = get_local_size(0);
    __global const float* from = a + a_offset + (long)get_group_id(0) * items * steps * 4;
    float4 sum = (float4)(0.0f);
    slices[0][item] = vload4(item, from);
    for (int step = 0; step < steps; ++step) {
        const int now = step & 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (step + 1 < steps) slices[1 - now][item] = vload4((long)(step + 1) * items + item, from);
#pragma unroll 2
        for (int i = 0; i < items; ++i) sum = fma(slices[now][i], (float4)(1.0f + (float)((i + item) % 3)), sum);
    }
    out[out_offset + get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}

// Tree reduction of each group's elements, for any number of work-items; each reads the result.
__kernel void doctor_tree(__global const int* restrict a, const long a_offset, __local int* partial,
                          __global int* restrict out, const long out_offset) {
    const int item = get_local_id(0), items = get_local_size(0);
    partial[item] = a[a_offset + get_global_id(0)];
    for (int left = items; left > 1;) {
        const int half_of = (left + 1) / 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item + half_of < left) partial[item] += partial[item + half_of];
        left = half_of;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[out_offset + get_global_id(0)] = partial[0];
}

// Inclusive scan, with two barriers per iteration.
__kernel void doctor_scan(__global const int* restrict a, const long a_offset, __local int* sums,
                          __global int* restrict out, const long out_offset) {
    const int item = get_local_id(0), items = get_local_size(0);
    sums[item] = a[a_offset + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < items; distance *= 2) {
        const int before = item >= distance ? sums[item - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[out_offset + get_global_id(0)] = sums[item];
}

// Barriers in control flow that is uniform within a group but differs between groups.
int doctor_neighbour(__local int* tile, const int item, const int items) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int value = tile[(item + 1) % items];
    barrier(CLK_LOCAL_MEM_FENCE);
    return value;
}
__kernel void doctor_uniform(__global const int* restrict a, const long a_offset, __local int* tile,
                             __global int* restrict out, const long out_offset) {
    const int item = get_local_id(0), items = get_local_size(0);
    int value = a[a_offset + get_global_id(0)];
    for (int round = 0; round < (int)get_group_id(0) % 4; ++round) {
        tile[item] = value;
        value = doctor_neighbour(tile, item, items);
    }
    if (get_group_id(0) % 2 == 1) {
        tile[item] = value;
        value += doctor_neighbour(tile, item, items);
    }
    out[out_offset + get_global_id(0)] = value;
}

// Exchange of elements between the work-items of a group through global memory.
__kernel void doctor_global_fence(__global int* a, const long a_offset, __global int* restrict out,
                                  const long out_offset) {
    const int item = get_local_id(0), items = get_local_size(0);
    __global int* mine = a + a_offset + (long)get_group_id(0) * items;
    const int value = mine[item];
    barrier(CLK_GLOBAL_MEM_FENCE);
    mine[items - 1 - item] = 2 * value;
    barrier(CLK_GLOBAL_MEM_FENCE);
    out[out_offset + get_global_id(0)] = mine[(item + 1) % items];
}

// A private array with indices known at run time only.
__kernel void doctor_private(__global const int* restrict a, const long a_offset, __global int* restrict out,
                             const long out_offset) {
    int sums[13];
    for (int i = 0; i < 13; ++i) sums[i] = i;
    const int value = a[a_offset + get_global_id(0)];
    for (int i = 0; i < 40; ++i) sums[(value + i * i) % 13] += i;
    int all = 0;
    for (int i = 0; i < 13; ++i) all = all * 3 + sums[(i + value) % 13];
    out[out_offset + get_global_id(0)] = all;
}
