// kernel: broken
// options: -cl-std=CL1.2
__kernel void broken(__global float* x) { x[get_global_id(0)] = no_such_function(); }
