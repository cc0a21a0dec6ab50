// kernel: spills_more
// options: -cl-std=CL1.2
// More sums than a work-item has registers for.
#define SUMS 300
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void spills_more(__global float* x, const int n) {
    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = x[i * 256 + get_local_id(0)];
    for (int k = 0; k < n; ++k) {
        const float factor = x[k];
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sum[i] = fma(sum[i], factor, sum[(i + 1) % SUMS]);
    }
#pragma unroll
    for (int i = 0; i < SUMS; ++i) x[i * 256 + get_local_id(0)] = sum[i];
}
