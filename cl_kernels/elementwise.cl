// out[index] = expression(in0[index], in1[index], ...) over an index space of RANK merged axes.
//
// The innermost axis are the columns, all others together the rows. A work-item computes `chunk` columns of
// `rows_each` rows: many columns on CPU-like devices, where the inner loop becomes vector instructions, one on GPU-like
// devices, where neighbouring work-items touch neighbouring elements.
//
//   global size   (ceil(columns / chunk), ceil(rows / rows_each)), rounded up to the local size
//   RANK          number of merged axes
//   OPERANDS      output and inputs
//   OUT           type of the output
//   STEP_OUT, STEPk   distance between columns: 0, 1, or a stride read from the layout
//   VECTORISE     a pragma for the loop over columns, or nothing
//   INPUT_PARAMETERS, INPUT_ROWS, BODY, RESULT   made from the expression (src/ops/elementwise.cpp)
//   HALVES        operands are f16 or bf16
#include "math.clh"
#ifdef HALVES
#include "storage.clh"
#endif

// Literals by type: C_int(0.5) is 0. By way of float, since without fp64 there are no literals of type double.
#define C_float(v) v##f
#define C_double(v) v
#define C_char(v) ((char)v##f)
#define C_uchar(v) ((uchar)v##f)
#define C_int(v) ((int)v##f)
#define C_long(v) ((long)v##f)

#define MAX_RANK 8

struct Layout {
    long size[MAX_RANK];
    long stride[OPERANDS][MAX_RANK];
};

#if RANK == 1
#define ROW_OFFSET(operand) (column * layout.stride[operand][0])
#else
#define ROW_OFFSET(operand) (row_offset[operand] + column * layout.stride[operand][RANK - 1])
#endif

__kernel void elementwise(const struct Layout layout, const long rows, const long columns, const long rows_each, const int chunk,
                          __global OUT* restrict out_base, const long out_offset INPUT_PARAMETERS) {
    const long column = get_global_id(0) * (long)chunk;
    const int count = (int)min((long)chunk, columns - column);  // not positive behind the end
    const long row_end = min(rows, ((long)get_global_id(1) + 1) * rows_each);
    long row = get_global_id(1) * rows_each;
#if RANK > 1
    // Divided once; from row to row the indices count on like an odometer.
    long index[RANK - 1], row_offset[OPERANDS], rest = row;
    for (int operand = 0; operand < OPERANDS; ++operand) row_offset[operand] = 0;
    for (int axis = RANK - 2; axis >= 0; --axis) {
        index[axis] = axis > 0 ? rest % layout.size[axis] : rest;
        rest /= layout.size[axis];
        for (int operand = 0; operand < OPERANDS; ++operand) row_offset[operand] += index[axis] * layout.stride[operand][axis];
    }
#endif
    for (; row < row_end; ++row) {
        __global OUT* out = out_base + out_offset + ROW_OFFSET(0);
        INPUT_ROWS
        VECTORISE
        for (int i = 0; i < count; ++i) {
            BODY
            out[i * STEP_OUT] = RESULT;
        }
#if RANK > 1
        for (int axis = RANK - 2; axis >= 0; --axis) {
            const bool wraps = axis > 0 && index[axis] + 1 == layout.size[axis];
            const long steps = wraps ? -index[axis] : 1;
            index[axis] += steps;
            for (int operand = 0; operand < OPERANDS; ++operand) row_offset[operand] += steps * layout.stride[operand][axis];
            if (!wraps) break;
        }
#endif
    }
}
