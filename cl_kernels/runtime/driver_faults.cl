// Correct kernels that some driver rejects or computes incorrectly (include/declivity/runtime/driver_faults.hpp). They
// deliberately use what the library's own kernels avoid.

// out[(4 * row + r) * 32 + 4 * column] = id + 1 for r in {0, 1}: global and local size 64
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void wide_work_item_ids(__global float* out) {
    const int row = get_local_id(0) / 8, column = get_local_id(0) % 8;
    for (int r = 0; r < 2; ++r) out[(4 * row + r) * 32 + 4 * column] = get_local_id(0) + 1;
}

struct Padded {
    long a;
    int b;
};

__kernel void padded_struct_argument(const struct Padded given, __global int* out) { out[0] = (int)given.a + given.b; }

struct Nested {
    long a[3][4];
};

__kernel void array_of_arrays_argument(const struct Nested given, __global int* out) { out[0] = (int)given.a[2][3]; }

struct Indexed {
    int a[8];
};

// out[i] = a[i]: global size 8
__kernel void indexed_struct_argument(const struct Indexed given, __global int* out) {
    out[get_global_id(0)] = given.a[get_global_id(0)];
}

// Run time proportional to `steps`: global size 1
__kernel void idle_event_clock(const int steps, __global int* out) {
    uint state = 1;
    for (int i = 0; i < steps; ++i) state = (state ^ (state >> 7)) * 1664525u + (uint)i;
    out[0] = (int)state;
}

// out[i] = 64 - i, through local memory: global and local size 64
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void understated_work_group(__global int* out) {
    __local int numbers[64];
    numbers[get_local_id(0)] = (int)get_local_id(0) + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_local_id(0)] = numbers[63 - get_local_id(0)];
}

// out[i] = i - 32, or 0 if that is negative: global size 64, out is initialised to zeros
__kernel void byte_constant_select(__global char* out) {
    const char x = (char)(out[get_global_id(0)] + (char)get_global_id(0) - (char)32);
    out[get_global_id(0)] = x < (char)0 ? (char)0 : x;
}

// out[i] = 1 if i - 32 < 0, otherwise 0: global size 64, out is initialised to zeros
__kernel void extended_constant_compare(__global int* out) {
    const int number = out[get_global_id(0)] + (int)get_global_id(0) - 32;
    const long x = number;
    out[get_global_id(0)] = x < 0;
}

// out[0] = 200000, by two loops: global size 1, out is initialised to zeros
__kernel void limited_loops(__global int* out) {
    const int seen = out[0];
    int passes = 0;
    for (int i = 0; i < 100000; ++i) passes += (i ^ seen) == -1 ? 2 : 1;
    for (int i = 0; i < 100000; ++i) passes += (i ^ passes) == -1 ? 2 : 1;
    out[0] = passes;
}
