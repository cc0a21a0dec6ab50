// kernel: scratch
// options: -cl-std=CL1.2
// An array with a variable index.
__kernel void scratch(__global float* x, __global const int* places) {
    float values[64];
    for (int k = 0; k < 64; ++k) values[places[k]] = x[k];
    x[get_global_id(0)] = values[places[get_global_id(0)]];
}
