// Reductions across many outputs that are contiguous in x, columns, along whole rows of x (formula and macros in
// reduce.clh). simd style: vectors across outputs. global (column blocks, row groups, chunks)
//
//   WIDE_COLUMNS  maximum number of columns per work-item, whose sums stay in the L1 cache
//   extent        elements of x from its first to its last, which vectors may read even if they are not reduced
#include "reduce_vectors.clh"

// Adds row by row to the sums of all columns: reads are sequential in memory, whereas going down a narrow column would
// touch another page at each step.
NOINLINE void reduce_wide_columns_part(const size_t id0, const size_t id1, const size_t id2,
                                       const struct Layout layout_in, const long rows, const long rows_each,
                                       const long elements, const long chunk, const long split_stride,
                                       const long divisor, const long extent, const long width,
                                       __global const T* restrict x_base, const long x_offset,
                                       __global ACC* restrict out, const long out_offset) {
    const struct Layout* layout = &layout_in;
    __global const T* x = x_base + x_offset;
    const int kept_axis = (int)layout->kept_rank - 1, reduced_axis = (int)layout->reduced_rank - 1;
    const long first = id0 * width;
    const int valid = (int)min(width, layout->kept_size[kept_axis] - first);
    const int vectors = (valid + LANES - 1) / LANES, full = valid / LANES, rest = valid - full * LANES;
    const long length = layout->reduced_size[reduced_axis], stride = layout->reduced_x[reduced_axis];
    const long split = id2;
    const long end = min(elements, (split + 1) * chunk);
    const long last_row = min(rows, ((long)id1 + 1) * rows_each);
    VEC part[WIDE_COLUMNS / LANES], total[WIDE_COLUMNS / LANES], low[WIDE_COLUMNS / LANES];
    for (long kept_row = id1 * rows_each; kept_row < last_row; ++kept_row) {
        const long2 at = kept_position(layout, kept_row, kept_axis);
        for (int v = 0; v < vectors; ++v) {
            total[v] = (VEC)(IDENTITY);
            low[v] = (VEC)(0);
        }
        long position = split * chunk;
        while (position < end) {
            const long row = reduced_axis > 0 ? position / length : 0;
            const long start = position - row * length;
            const long count = min(length - start, min(end - position, (long)BLOCK));
            const long p_at = at.x + first + reduced_row(layout, row) + start * stride;
            __global const T* p = x + p_at;
            for (int v = 0; v < vectors; ++v) part[v] = (VEC)(IDENTITY);
            for (long r = 0; r < count; ++r) {
                const int n = p_at + r * stride + vectors * LANES <= extent ? vectors : full;
                for (int v = 0; v < n; ++v) part[v] = COMBINED(part[v], load_vector(p + r * stride + v * LANES, 1));
                if (n < vectors) part[full] = COMBINED(part[full], load_first(p + r * stride + full * LANES, 1, rest));
            }
            for (int v = 0; v < vectors; ++v) add_block(&total[v], &low[v], part[v]);
            position += count;
        }
        const long out_at = out_offset + at.y + split * split_stride, out_step = layout->kept_out[kept_axis];
        ACC values[LANES];
        for (int v = 0; v < vectors; ++v) {
            PASTE(vstore, LANES)(WITH_ERRORS(total[v], low[v]), 0, values);
            for (int i = 0; i < min(LANES, valid - v * LANES); ++i)
                out[out_at + (first + v * LANES + i) * out_step] = FINALIZE(values[i]);
        }
    }
}

__kernel void reduce_wide_columns(const struct Layout layout_in, const long rows, const long rows_each,
                                  const long elements, const long chunk, const long split_stride, const long divisor,
                                  const long extent, const long width, __global const T* restrict x_base,
                                  const long x_offset, __global ACC* restrict out, const long out_offset) {
    reduce_wide_columns_part(get_global_id(0), get_global_id(1), get_global_id(2), layout_in, rows, rows_each, elements,
                             chunk, split_stride, divisor, extent, width, x_base, x_offset, out, out_offset);
}
