// kernel: another
// options: -cl-std=CL1.2
__kernel void misnamed(__global float* x) { x[get_global_id(0)] = 0; }
