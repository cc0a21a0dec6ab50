// Reductions across outputs that are contiguous in x, columns (formula and macros in reduce.clh). simd style: vectors
// across outputs. global (column blocks, row groups, chunks)
//
//   VECTORS  vectors of columns per work-item
//   UNROLL   positions at a time
//   extent   elements of x from its first to its last, which vectors may read even if they are not reduced
#include "reduce_vectors.clh"

#define WIDTH (VECTORS * LANES)

// Number of the `count` positions at which whole vectors are readable: a vector at the right edge reads past its
// columns, into the next row, unless x ends there. `extent` elements of x may be read from the first position.
static inline long readable_positions(const long count, const long extent, const long step, const long stride) {
    const long room = extent - (WIDTH - 1) * step;
    if (room <= 0) return 0;
    return stride == 0 ? count : min(count, (room - 1) / stride + 1);
}

// Reduces `count` positions, `stride` apart, of the columns of a work-item, UNROLL positions at a time; at the first
// `full_count` of them, whole vectors are readable.
static inline __attribute__((always_inline)) void reduce_block(__global const T* p, const long count,
                                                               const long full_count, const long step,
                                                               const long stride, const int valid, VEC* block) {
    VEC part[UNROLL][VECTORS];
    for (int u = 0; u < UNROLL; ++u)
        for (int v = 0; v < VECTORS; ++v) part[u][v] = (VEC)(IDENTITY);
    long r = 0;
    for (; r + UNROLL <= full_count; r += UNROLL)
        for (int u = 0; u < UNROLL; ++u)
            for (int v = 0; v < VECTORS; ++v)
                part[u][v] = COMBINED(part[u][v], load_vector(p + (r + u) * stride + v * LANES * step, step));
    for (; r < full_count; ++r)
        for (int v = 0; v < VECTORS; ++v)
            part[0][v] = COMBINED(part[0][v], load_vector(p + r * stride + v * LANES * step, step));
    for (; r < count; ++r)
        for (int v = 0; v < VECTORS; ++v)
            if (v * LANES < valid)
                part[0][v] =
                    COMBINED(part[0][v], load_first(p + r * stride + v * LANES * step, step, valid - v * LANES));
    for (int v = 0; v < VECTORS; ++v) {
        for (int u = 1; u < UNROLL; ++u) part[0][v] = COMBINED(part[0][v], part[u][v]);
        block[v] = part[0][v];
    }
}

NOINLINE void reduce_columns_part(const size_t id0, const size_t id1, const size_t id2, const struct Layout layout_in,
                                  const long rows, const long rows_each, const long elements, const long chunk,
                                  const long split_stride, const long divisor, const long extent,
                                  __global const T* restrict x_base, const long x_offset, __global ACC* restrict out,
                                  const long out_offset) {
    const struct Layout* layout = &layout_in;
    __global const T* x = x_base + x_offset;
    const int kept_axis = (int)layout->kept_rank - 1, reduced_axis = (int)layout->reduced_rank - 1;
    const long columns = layout->kept_size[kept_axis], step = STEP(layout->kept_x[kept_axis]);
    const long first = id0 * (long)WIDTH;
    const int valid = (int)min((long)WIDTH, columns - first);
    const long length = layout->reduced_size[reduced_axis], stride = layout->reduced_x[reduced_axis];
    const long split = id2;
    const long end = min(elements, (split + 1) * chunk);
    const long last_row = min(rows, ((long)id1 + 1) * rows_each);
    for (long kept_row = id1 * rows_each; kept_row < last_row; ++kept_row) {
        const long2 at = kept_position(layout, kept_row, kept_axis);
        const long x_at = at.x + first * step;
        VEC total[VECTORS], low[VECTORS];
        for (int v = 0; v < VECTORS; ++v) {
            total[v] = (VEC)(IDENTITY);
            low[v] = (VEC)(0);
        }
        long position = split * chunk;
        while (position < end) {
            const long row = reduced_axis > 0 ? position / length : 0;
            const long start = position - row * length;
            const long count = min(length - start, min(end - position, (long)BLOCK));
            const long p_at = x_at + reduced_row(layout, row) + start * stride;
            const long full_count = valid < WIDTH ? readable_positions(count, extent - p_at, step, stride) : count;
            VEC block[VECTORS];
            reduce_block(x + p_at, count, full_count, step, stride, valid, block);
            for (int v = 0; v < VECTORS; ++v) add_block(&total[v], &low[v], block[v]);
            position += count;
        }
        const long out_at = out_offset + at.y + split * split_stride, out_step = layout->kept_out[kept_axis];
        ACC values[WIDTH];
        for (int v = 0; v < VECTORS; ++v) PASTE(vstore, LANES)(WITH_ERRORS(total[v], low[v]), v, values);
        for (int i = 0; i < valid; ++i) out[out_at + (first + i) * out_step] = FINALIZE(values[i]);
    }
}

__kernel void reduce_columns(const struct Layout layout_in, const long rows, const long rows_each, const long elements,
                             const long chunk, const long split_stride, const long divisor, const long extent,
                             __global const T* restrict x_base, const long x_offset, __global ACC* restrict out,
                             const long out_offset) {
    reduce_columns_part(get_global_id(0), get_global_id(1), get_global_id(2), layout_in, rows, rows_each, elements,
                        chunk, split_stride, divisor, extent, x_base, x_offset, out, out_offset);
}
