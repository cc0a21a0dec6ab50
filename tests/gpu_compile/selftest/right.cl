// kernel: right
// options: -cl-std=CL1.2
__kernel void right(__global float* x) {
    const size_t i = get_global_id(0);
    x[i] = 2 * x[i];
}
