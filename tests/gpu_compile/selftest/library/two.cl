// A library of two kernels, for the lists of the self-test.
__kernel void right(__global float* x) { x[get_global_id(0)] = 0; }
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void left_out(__global float* x) { x[get_global_id(0)] = 0; }
