// check_tensors: guard[0] = max(guard[1], 1) if some element is infinite or NaN and guard[0] == 0. Each work-group
//                looks at one piece; those that find one write the same value.
// save_tensors:  role 1 = role 0, word by word, unless guard[0] > 0.
//   REAL      unsigned integer as wide as an element (ushort, uint, ulong)
//   EXPONENT  of check_tensors: the bits that are all set in what is infinite or NaN
#include "multi_tensor.clh"

#ifdef EXPONENT
__kernel void check_tensors(MULTI_TENSOR_PARAMETERS, __global int* guard_base, const long guard_offset) {
    __global const REAL* x = MULTI_TENSOR_POINTER(0);
    __global int* guard = guard_base + guard_offset;
    int bad = 0;
    MULTI_TENSOR_LOOP bad |= (x[i] & (REAL)EXPONENT) == (REAL)EXPONENT;
    if (bad) atomic_cmpxchg((volatile __global int*)guard, 0, max(guard[1], 1));
}
#else
__kernel void save_tensors(MULTI_TENSOR_PARAMETERS, __global const int* guard_base, const long guard_offset) {
    __global const REAL* from = MULTI_TENSOR_POINTER(0);
    __global REAL* to = MULTI_TENSOR_POINTER(1);
    if (guard_base[guard_offset] > 0) return;
    MULTI_TENSOR_LOOP to[i] = from[i];
}
#endif
