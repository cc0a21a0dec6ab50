// Atomic functions: counters[0..7] in global memory, and counters in local memory, whose values each group writes to
// `groups`.
//
//   WIDE   defined: the counters are long, with cl_khr_int64_base_atomics; otherwise int
#ifdef WIDE
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define INTEGER long
#define ATOMIC(f) atom_##f
#else
#define INTEGER int
#define ATOMIC(f) atomic_##f
#endif

// For n work-items: 0 counts them, 1 adds ids, 2 subtracts, 3 adds by compare-and-swap, 4 is the last of exchanged
// values (id + 1), 5 is the sum of the values that the exchanges of 4 returned.
__kernel void doctor_counters(__global INTEGER* counters, const long offset) {
    __global INTEGER* c = counters + offset;
    const INTEGER id = (INTEGER)get_global_id(0);
    ATOMIC(inc)(&c[0]);
    ATOMIC(add)(&c[1], id);
    ATOMIC(sub)(&c[2], 3);
    INTEGER expected = ATOMIC(add)(&c[3], 0);
    for (;;) {
        const INTEGER before = ATOMIC(cmpxchg)(&c[3], expected, expected + 2 * id);
        if (before == expected) break;
        expected = before;
    }
    ATOMIC(add)(&c[5], ATOMIC(xchg)(&c[4], id + 1));
}

#ifndef WIDE
// 0 minimum, 1 maximum, 2 and, 3 or, 4 xor of a[i]
__kernel void doctor_extrema(__global const int* restrict a, const long a_offset, __global int* counters,
                             const long offset) {
    __global int* c = counters + offset;
    const int value = a[a_offset + get_global_id(0)];
    atomic_min(&c[0], value);
    atomic_max(&c[1], value);
    atomic_and(&c[2], value);
    atomic_or(&c[3], value);
    atomic_xor(&c[4], value);
}
#endif

// groups[g] = the sum of ids within the group, by a counter in local memory
__kernel void doctor_local_counter(__global INTEGER* groups, const long offset) {
    __local INTEGER sum;
    if (get_local_id(0) == 0) sum = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    ATOMIC(add)(&sum, (INTEGER)get_global_id(0));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) groups[offset + get_group_id(0)] = sum;
}
