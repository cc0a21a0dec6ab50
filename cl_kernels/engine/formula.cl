// One formula over all elements of many tensors, such as an optimizer's step (src/ops/engine/formula.hpp). Nothing is
// written while guard[0] is not 0.
//
//   FORMULA_ROLES, FORMULA_POINTERS    where this piece of each role that is used lies: parameters and arguments
//   FORMULA_NUMBERS, FORMULA_GIVEN     numbers of the formula: parameters and arguments
//   FORMULA_ONCE                       what is made of numbers alone: given[n], or given[n + tensor] for a number of
//                                      the tensor
//   FORMULA_BODY                       element i of each role that is written
//   FORMULA_VECTORISE                  a pragma for the loop, or nothing
#include "math.clh"
#ifdef HALVES
#include "storage.clh"
#endif
#include "elementwise_rows.clh"
#ifdef SPECIAL
#include "special.clh"
#endif
#ifdef DIVISION
#include "division.clh"
#endif
#include "multi_tensor.clh"

// A function of its own, so that the compiler knows that no two roles overlap.
static inline void formula_of_piece(const int first, const int count, const long tensor,
                                    __global const REAL* restrict given FORMULA_ROLES FORMULA_NUMBERS) {
    FORMULA_ONCE
    FORMULA_VECTORISE
    for (int i = first; i < count; i += GROUP) {
        FORMULA_BODY
    }
}

__kernel void formula(MULTI_TENSOR_PARAMETERS, __global const REAL* restrict given_base, const long given_offset,
                      __global const int* restrict guard_base, const long guard_offset FORMULA_NUMBERS) {
    if (guard_base[guard_offset] != 0) return;
#if GROUP == 1
    const int first = 0;
#else
    const int first = get_local_id(0);
#endif
    formula_of_piece(first, (int)MULTI_TENSOR_ENTRY[ROLES], MULTI_TENSOR_NUMBER,
                     given_base + given_offset FORMULA_POINTERS FORMULA_GIVEN);
}
