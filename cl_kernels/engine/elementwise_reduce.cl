// parts[row, split] = combine over the columns of a split of expression(in0[index], in1[index], ...): a reduction fused
// with the elementwise chain that computes its operand.
//
// The index space is that of elementwise.cl; its innermost axis, the columns, is reduced, in splits of `chunk` columns
// each.
//
//   SIMD      simd style: a work-item takes a split of `rows_each` rows, BLOCK elements at a time. global (splits,
//             ceil(rows / rows_each))
//   SIMT      simt style: a group takes a split of a row. global (splits * local size, rows)
//   ACC       type of accumulation and result
//   COMBINE, FLOATING_SUM  reduction.clh
//   IDENTITY  neutral element of the reduction
//   BLOCK     elements per partial sum; in SIMT those of a work-item
//   LANES     SIMD: elements per vector
//   RANK, OPERANDS, STEPk, RANDOM  as in elementwise.cl; operand 0 of the layout is not used
//   INPUT_PARAMETERS, INPUT_ROWS_CODE, RANDOM_TILE_CODE, ELEMENT_CODE, RESULT, VECTORISE_PRAGMA  text that
//             elementwise_reduce_specification() generates, as in elementwise.cl; a tile is a BLOCK

// 1, since a chunk has at least one column: a 1 that is not a constant to the compiler, as math.clh asks for.
#ifdef SIMD
#define D_TRUE (uchar) min(chunk, 1L)
#endif
#include "math.clh"
#ifdef REDUCED_PRECISION
#include "storage.clh"
#endif
#ifdef RANDOM
#include "random_numbers.clh"
#endif
#ifndef RANDOM_TILE_CODE
#define RANDOM_TILE_CODE
#endif
#include "elementwise_rows.clh"
#ifdef SPECIAL
#include "special.clh"
#endif
#ifdef DIVISION
#include "division.clh"
#endif
#include "reduction.clh"

#ifdef SIMD

#include "horizontal.clh"
#define VEC HORIZONTAL_PASTE(ACC, LANES)
HORIZONTAL(across, ACC, LANES, COMBINED)
UNALIGNED(values, ACC, LANES)

__kernel void elementwise_reduce(const struct Layout layout, const long rows, const long columns, const long rows_each,
                                 const long chunk, const long splits, const long divisor, __global ACC* restrict parts,
                                 const long parts_offset INPUT_PARAMETERS) {
    const long column = get_global_id(0) * chunk, count = min(chunk, columns - column);
    const long begin = get_global_id(1) * rows_each, end = min(rows, begin + rows_each);
    struct RowCursor cursor = row_cursor(layout, begin);
    for (long row = begin; row < end; ++row, cursor = next_row(layout, cursor)) {
        INPUT_ROWS_CODE
        VEC total = (VEC)(IDENTITY), low = (VEC)(0);
        for (long from = 0; from < count; from += BLOCK) {
            ACC elements[BLOCK];
            const int tile_columns = (int)min((long)BLOCK, count - from);
            RANDOM_TILE_CODE
            VECTORISE_PRAGMA
            for (int k = 0; k < tile_columns; ++k) {
                const long i = from + k;
                ELEMENT_CODE elements[k] = RESULT;
            }
            const int padded = (tile_columns + LANES - 1) / LANES * LANES;
            for (int k = tile_columns; k < padded; ++k) elements[k] = IDENTITY;
            VEC a = (VEC)(IDENTITY), b = a, c = a, d = a;
            int k = 0;
            for (; k + 4 * LANES <= padded; k += 4 * LANES) {
                a = COMBINED(a, values_load(elements + k));
                b = COMBINED(b, values_load(elements + k + LANES));
                c = COMBINED(c, values_load(elements + k + 2 * LANES));
                d = COMBINED(d, values_load(elements + k + 3 * LANES));
            }
            for (; k < padded; k += LANES) a = COMBINED(a, values_load(elements + k));
            a = COMBINED(a, b);
            c = COMBINED(c, d);
            a = COMBINED(a, c);
            add_block(&total, &low, a);
        }
        const ACC sum = across(total);
        parts[parts_offset + row * splits + get_global_id(0)] = FINALIZE(WITH_ERRORS(sum, across(low)));
    }
}

#else

#include "row_group.clh"
ROW_GROUP_COMBINE(group_combined, ACC, COMBINED)

__kernel void elementwise_reduce(const struct Layout layout, const long rows, const long columns, const long rows_each,
                                 const long chunk, const long splits, const long divisor, __local ACC* shared,
                                 __global ACC* restrict parts, const long parts_offset INPUT_PARAMETERS) {
    const int lanes = (int)get_local_size(0);
    const struct RowGroup group = row_group(lanes, 1);
    const long column = get_group_id(0) * chunk, count = min(chunk, columns - column), row = get_global_id(1);
    const struct RowCursor cursor = row_cursor(layout, row);
    INPUT_ROWS_CODE
    ACC total = IDENTITY, low = 0;
    long i = group.lane;
    while (i < count) {
        ACC part = IDENTITY;
        for (int k = 0; k < BLOCK && i < count; ++k, i += lanes) {
            ELEMENT_CODE const ACC value = RESULT;
            part = COMBINED(part, value);
        }
        add_block(&total, &low, part);
    }
    const ACC sum = group_combined(shared, group, WITH_ERRORS(total, low));
    if (group.lane == 0) parts[parts_offset + row * splits + get_group_id(0)] = FINALIZE(sum);
}

#endif
