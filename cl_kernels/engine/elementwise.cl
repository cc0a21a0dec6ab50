// out[index] = expression(in0[index], in1[index], ...) over an index space of RANK merged axes.
//
// The innermost axis is called the columns, all others together the rows. In simd style a work-item computes `chunk`
// columns of `rows_each` rows, and the inner loop is vectorised; in simt style (SIMT) it computes one element, and
// neighbouring work-items access neighbouring elements.
//
//   global size   (ceil(columns / chunk), ceil(rows / rows_each)), rounded up to the local size. With SIMT: (columns,
//                 a, b) with rows up to a * b
//   SIMT          defined in simt style: `chunk` and `rows_each` are not used
//   RANK          number of merged axes
//   OPERANDS      number of operands, the output and the inputs
//   OUT           type of the output
//   STEP_OUT, STEPk  distance between columns: 0, 1, or a stride read from the layout
//   STEP_EXTRAk   the same for additional outputs, which ELEMENT_CODE stores
//   REDUCED_PRECISION  defined if operands are f16 or bf16
//   RANDOM        defined if there are random numbers among the inputs
//   TILE          if defined: columns whose random numbers RANDOM_TILE_CODE generates at a time
//
// The following are text that elementwise_specification() generates from the expression, with operand_defines()
// (src/ops/engine/elementwise_source.cpp). A name in ..._CODE stands for statements.
//
//   INPUT_PARAMETERS  parameters of the kernel for the inputs
//   INPUT_ROWS_CODE   declares pointers to the rows of the inputs at `column`
//   RANDOM_TILE_CODE  generates the random numbers of `tile_columns` columns, from column `from` on, before they are
//                     used, so that each block serves all its elements
//   ELEMENT_CODE      computes element `i`
//   RESULT            expression: the value of element `i`
//   VECTORISE_PRAGMA  a pragma for the loop over columns, or nothing

// 1, since a chunk has at least one column: a 1 that is not a constant to the compiler, as math.clh asks for.
#ifndef SIMT
#define D_TRUE (uchar) min(chunk, 1)
#endif
#include "math.clh"
#ifdef REDUCED_PRECISION
#include "storage.clh"
#endif
#ifdef RANDOM
#include "random_numbers.clh"
#endif
#include "elementwise_rows.clh"
#ifdef SPECIAL
#include "special.clh"
#endif
#ifdef DIVISION
#include "division.clh"
#endif

__kernel void elementwise(const struct Layout layout, const long rows, const long columns, const long rows_each,
                          const int chunk, __global OUT* restrict out_base, const long out_offset INPUT_PARAMETERS) {
#ifdef SIMT
    // No loop: the sizes and strides needed to step to the next row would take all available scalar registers.
    const long column = get_global_id(0), row = get_global_id(1) + get_global_id(2) * (long)get_global_size(1);
    if (column >= columns || row >= rows) return;
    const struct RowCursor cursor = row_cursor(layout, row);
    __global OUT* out = out_base + out_offset + ROW_OFFSET(0);
    INPUT_ROWS_CODE
    const int i = 0;
    ELEMENT_CODE out[i * STEP_OUT] = RESULT;
#else
    const long column = get_global_id(0) * (long)chunk;
    const int count = (int)min((long)chunk, columns - column);  // not positive past the end
    const long begin = get_global_id(1) * rows_each, end = min(rows, begin + rows_each);
    struct RowCursor cursor = row_cursor(layout, begin);
    for (long row = begin; row < end; ++row, cursor = next_row(layout, cursor)) {
        __global OUT* out = out_base + out_offset + ROW_OFFSET(0);
        INPUT_ROWS_CODE
#ifdef TILE
        for (int from = 0; from < count; from += TILE) {
            const int tile_columns = min(TILE, count - from), to = from + tile_columns;
            RANDOM_TILE_CODE
#else
        {
            const int from = 0, to = count;
#endif
            VECTORISE_PRAGMA
            for (int i = from; i < to; ++i) {
                ELEMENT_CODE out[i * STEP_OUT] = RESULT;
            }
        }
    }
#endif
}
