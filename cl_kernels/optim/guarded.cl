// Guarded steps over many tensors (multi_tensor.clh).
//
//   check_tensors: guard[0] = max(guard[1], 1) if some element is infinite or NaN and guard[0] == 0. Each work-group
//                  checks one piece; those that find one write the same value
//   save_tensors:  copies role 0 to role 1 unless guard[0] > 0
//
//   REAL      unsigned integer of the size of an element (ushort, uint, ulong)
//   EXPONENT  check_tensors: the exponent bits, all of which are set if an element is infinite or NaN
#include "multi_tensor.clh"

#ifdef EXPONENT
__kernel void check_tensors(MULTI_TENSOR_PARAMETERS, __global int* guard_base, const long guard_offset) {
    __global const REAL* x = MULTI_TENSOR_POINTER(0);
    __global int* guard = guard_base + guard_offset;
    const int count = MULTI_TENSOR_COUNT;
    int bad = 0;
    for (int i = MULTI_TENSOR_FIRST; i < count; i += GROUP) bad |= (x[i] & (REAL)EXPONENT) == (REAL)EXPONENT;
    if (bad) atomic_cmpxchg((volatile __global int*)guard, 0, max(guard[1], 1));
}
#else
__kernel void save_tensors(MULTI_TENSOR_PARAMETERS, __global const int* guard_base, const long guard_offset) {
    __global const REAL* from = MULTI_TENSOR_POINTER(0);
    __global REAL* to = MULTI_TENSOR_POINTER(1);
    if (guard_base[guard_offset] > 0) return;
    const int count = MULTI_TENSOR_COUNT;
    for (int i = MULTI_TENSOR_FIRST; i < count; i += GROUP) to[i] = from[i];
}
#endif
