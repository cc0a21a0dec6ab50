// A kernel of a program that does not use the library (tests/runtime/interop.cpp).
__kernel void add_one(__global int* values, const int first) { values[first + get_global_id(0)] += 1; }
