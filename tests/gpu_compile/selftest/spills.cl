// kernel: spills
// options: -cl-std=CL1.2
// More sums than a work-item of a group of 1024 has registers.
#define SUMS 128
__kernel __attribute__((reqd_work_group_size(1024, 1, 1))) void spills(__global float* x, const int n) {
    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = x[i * 1024 + get_local_id(0)];
    for (int k = 0; k < n; ++k) {
        const float factor = x[k];
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sum[i] = fma(sum[i], factor, sum[(i + 1) % SUMS]);
    }
#pragma unroll
    for (int i = 0; i < SUMS; ++i) x[i * 1024 + get_local_id(0)] = sum[i];
}
