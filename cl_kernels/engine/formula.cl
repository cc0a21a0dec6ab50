// One formula over all elements of many tensors, such as an optimizer step (src/ops/engine/formula.hpp). Nothing is
// written if guard[0] is not 0.
//
// The macros are text that formula_specification() (src/ops/engine/elementwise_source.cpp) generates from the formula.
// A name in ..._CODE stands for statements.
//
//   FORMULA_ROLES, FORMULA_POINTERS    pointers to this piece in each role that is used: parameters and arguments
//   FORMULA_CONSTANTS, FORMULA_CONSTANT_ARGUMENTS  numbers of the formula: parameters and arguments
//   FORMULA_SCALAR_CODE                computes values from numbers alone: scalars[n], or scalars[n + tensor] for
//                                      numbers per tensor
//   FORMULA_ELEMENT_CODE               computes and stores element i of each role that is written
//   FORMULA_VECTORISE_PRAGMA           a pragma for the loop, or nothing
#include "math.clh"
#ifdef REDUCED_PRECISION
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

// A separate function, so that the compiler may assume that roles do not overlap.
static inline void formula_of_piece(const int first, const int count, const long tensor,
                                    __global const REAL* restrict scalars FORMULA_ROLES FORMULA_CONSTANTS) {
    FORMULA_SCALAR_CODE
    FORMULA_VECTORISE_PRAGMA
    for (int i = first; i < count; i += GROUP) {
        FORMULA_ELEMENT_CODE
    }
}

__kernel void formula(MULTI_TENSOR_PARAMETERS, __global const REAL* restrict scalars_base, const long scalars_offset,
                      __global const int* restrict guard_base, const long guard_offset FORMULA_CONSTANTS) {
    if (guard_base[guard_offset] != 0) return;
#if GROUP == 1
    const int first = 0;
#else
    const int first = get_local_id(0);
#endif
    formula_of_piece(first, (int)MULTI_TENSOR_ENTRY[ROLES], MULTI_TENSOR_INDEX,
                     scalars_base + scalars_offset FORMULA_POINTERS FORMULA_CONSTANT_ARGUMENTS);
}
