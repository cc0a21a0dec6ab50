// out[o] = combine over r of x[o, r], for every output o and all reduced positions r.
//
// The host merges and orders the axes (src/ops/reduction/reduce.cpp): the kept axes enumerate the outputs
// 0 .. outputs - 1, the reduced ones the positions 0 .. elements - 1, innermost axis last. Positions may be split into
// chunks: chunk s covers `chunk` positions from s * chunk and writes its result to out + s * split_stride, for a second
// pass over the chunks.
//
//   SIMD          reduce_rows  simd style, reduced axis contiguous: vectors along it. global (output groups, chunks)
//   SIMD_COLUMNS  reduce_columns  simd style, kept axis contiguous: vectors across outputs. global (column blocks,
//                 row groups, chunks)
//                 reduce_wide_columns  the same for many columns, along whole rows of x
//                 extent: elements of x from its first to its last, which vectors may read even if they are not reduced
//   SIMT          reduce_groups  simt style: several work-items per output. global (output groups * local size, chunks)
//   T, ACC        type of x; type of accumulation and result
//   STORED_AS     x is f16 or bf16 (storage.clh)
//   COMBINE, FLOATING_SUM  reduction.clh
//   IDENTITY      neutral element of the reduction
//   KEPT_RANK, REDUCED_RANK  SIMT: numbers of axes, so that the layout is never read at a variable index: GPUs would
//                            keep a copy of it in memory
//   CONTIGUOUS    defined if elements along the vector's axis (kept in SIMD_COLUMNS, reduced otherwise) are contiguous
//                 in x
//   BLOCK         positions per partial sum
//   LANES         SIMD and SIMD_COLUMNS: elements per vector, 8 or 16
//   VECTORS, UNROLL  reduce_columns: vectors across outputs, and positions at a time
//   WIDE_COLUMNS  reduce_wide_columns: maximum number of columns per work-item, whose sums stay in the L1 cache
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#include "noinline.clh"
#include "unaligned.clh"
#ifdef STORED_AS
#include "storage.clh"
#define TO_ACC(v) LOADED(v)
#else
#define TO_ACC(v) (ACC)(v)
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define MAX_RANK 8
// Loops over axes are unrolled in simt style, so that the layout is read at constant indices only.
#ifdef SIMT
#define UNROLL_AXES _Pragma("unroll")
#else
#define UNROLL_AXES
#endif

#ifdef SIMT
struct Layout {
    long kept_size[KEPT_RANK], kept_x[KEPT_RANK], kept_out[KEPT_RANK];
    long reduced_size[REDUCED_RANK], reduced_x[REDUCED_RANK];
};
#else
struct Layout {
    long kept_size[MAX_RANK], kept_x[MAX_RANK], kept_out[MAX_RANK];
    long reduced_size[MAX_RANK], reduced_x[MAX_RANK];
    long kept_rank, reduced_rank;
};
#endif

#include "reduction.clh"

#ifdef CONTIGUOUS
#define STEP(stride) 1
#else
#define STEP(stride) stride
#endif

// Offset in x of a position of all reduced axes except the innermost.
static inline long reduced_row(const struct Layout* layout, long row) {
#ifdef SIMT
    const int rank = REDUCED_RANK;
#else
    const int rank = (int)layout->reduced_rank;
#endif
    long at = 0;
    UNROLL_AXES
    for (int axis = rank - 2; axis >= 0; --axis) {
        at += (axis > 0 ? row % layout->reduced_size[axis] : row) * layout->reduced_x[axis];
        if (axis > 0) row /= layout->reduced_size[axis];
    }
    return at;
}

// Offsets in x and out of a position of the first `rank` kept axes; in SIMT of all.
static inline long2 kept_position(const struct Layout* layout, long position, int rank) {
#ifdef SIMT
    rank = KEPT_RANK;
#endif
    long2 at = (long2)(0);
    UNROLL_AXES
    for (int axis = rank - 1; axis >= 0; --axis) {
        const long index = axis > 0 ? position % layout->kept_size[axis] : position;
        if (axis > 0) position /= layout->kept_size[axis];
        at += index * (long2)(layout->kept_x[axis], layout->kept_out[axis]);
    }
    return at;
}

#ifndef SIMT
#define VEC PASTE(ACC, LANES)
#ifdef STORED_AS
#define CONVERT(width, v) LOADED(v)
#else
#define CONVERT(width, v) PASTE(PASTE(convert_, ACC), width)(v)
#endif
// ELEMENT(p, step, valid, i) of 2, 4, ... elements from i, as a list.
#define LIST2(ELEMENT, p, step, valid, i) ELEMENT(p, step, valid, i), ELEMENT(p, step, valid, i + 1)
#define LIST4(ELEMENT, p, step, valid, i) LIST2(ELEMENT, p, step, valid, i), LIST2(ELEMENT, p, step, valid, i + 2)
#define LIST8(ELEMENT, p, step, valid, i) LIST4(ELEMENT, p, step, valid, i), LIST4(ELEMENT, p, step, valid, i + 4)
#define LIST16(ELEMENT, p, step, valid, i) LIST8(ELEMENT, p, step, valid, i), LIST8(ELEMENT, p, step, valid, i + 8)

// Vectors of elements that are `step` apart.
#ifdef CONTIGUOUS
UNALIGNED(x, T, LANES)
static inline PASTE(ACC, 4) load4(__global const T* p, const long step) { return CONVERT(4, vload4(0, p)); }
static inline PASTE(ACC, 8) load8(__global const T* p, const long step) { return CONVERT(8, vload8(0, p)); }
static inline VEC load_vector(__global const T* p, const long step) { return CONVERT(LANES, x_load(p)); }
#else
#define STRIDED_ELEMENT(p, step, valid, i) TO_ACC((p)[(i) * (step)])
static inline PASTE(ACC, 4) load4(__global const T* p, const long step) {
    return (PASTE(ACC, 4))(LIST4(STRIDED_ELEMENT, p, step, 4, 0));
}
static inline PASTE(ACC, 8) load8(__global const T* p, const long step) {
    return (PASTE(ACC, 8))(LIST8(STRIDED_ELEMENT, p, step, 8, 0));
}
static inline VEC load_vector(__global const T* p, const long step) {
    return (VEC)(PASTE(LIST, LANES)(STRIDED_ELEMENT, p, step, LANES, 0));
}
#endif
#endif

#ifdef SIMD

#include "horizontal.clh"
HORIZONTAL(across, ACC, LANES, COMBINED)
HORIZONTAL(across8, ACC, 8, COMBINED)
HORIZONTAL(across4, ACC, 4, COMBINED)
HORIZONTAL_ROWS(across_rows, ACC, LANES, COMBINED)

// Combines `count` elements: vectors with the four of `sums`, the elements after the last whole vector with `tail`.
static inline __attribute__((always_inline)) void reduce_run(__global const T* p, const long count, const long step,
                                                             VEC* sums, ACC* tail) {
    long i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        sums[0] = COMBINED(sums[0], load_vector(p + i * step, step));
        sums[1] = COMBINED(sums[1], load_vector(p + (i + LANES) * step, step));
        sums[2] = COMBINED(sums[2], load_vector(p + (i + 2 * LANES) * step, step));
        sums[3] = COMBINED(sums[3], load_vector(p + (i + 3 * LANES) * step, step));
    }
    for (; i + LANES <= count; i += LANES) sums[0] = COMBINED(sums[0], load_vector(p + i * step, step));
    const long rest = count - i;
#if LANES == 16
    if (rest & 8) {
        const ACC part = across8(load8(p + i * step, step));
        *tail = COMBINED(*tail, part);
        i += 8;
    }
#endif
    if (rest & 4) {
        const ACC part = across4(load4(p + i * step, step));
        *tail = COMBINED(*tail, part);
        i += 4;
    }
    for (; i < count; ++i) {
        const ACC element = TO_ACC(p[i * step]);
        *tail = COMBINED(*tail, element);
    }
}

// Reduces positions [position, end) of one output, in partial results of BLOCK positions.
static inline ACC reduce_positions(const struct Layout* layout, __global const T* x, long position, const long end) {
    const int axis = (int)layout->reduced_rank - 1;
    const long length = layout->reduced_size[axis], step = STEP(layout->reduced_x[axis]);
    VEC total = (VEC)(IDENTITY), low = (VEC)(0);
    VEC sums[4] = {total, total, total, total};
    ACC tail = IDENTITY;
    long in_block = 0;
    while (position < end) {
        const long row = axis > 0 ? position / length : 0;
        const long column = position - row * length;
        const long count = min(length - column, min(end - position, BLOCK - in_block));
        reduce_run(x + reduced_row(layout, row) + column * step, count, step, sums, &tail);
        position += count;
        in_block += count;
        if (in_block == BLOCK || position == end) {
            VEC block = COMBINED(sums[0], sums[1]);
            const VEC others = COMBINED(sums[2], sums[3]);
            block = COMBINED(block, others);
            block.s0 = COMBINED(block.s0, tail);
            add_block(&total, &low, block);
            sums[0] = sums[1] = sums[2] = sums[3] = (VEC)(IDENTITY);
            tail = IDENTITY;
            in_block = 0;
        }
    }
    const ACC sum = across(total);
    return WITH_ERRORS(sum, across(low));
}

#if LANES == 16
#define LANE_INDICES ((VEC)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#else
#define LANE_INDICES ((VEC)(0, 1, 2, 3, 4, 5, 6, 7))
#endif

// Reduces one row of at most BLOCK / 4 elements.
static inline ACC reduce_short_row(__global const T* p, const long count, const long step) {
    VEC a = (VEC)(IDENTITY);
    long i = 0;
    for (; i + LANES <= count; i += LANES) a = COMBINED(a, load_vector(p + i * step, step));
    ACC combined = across(a);
    for (; i < count; ++i) {
        const ACC element = TO_ACC(p[i * step]);
        combined = COMBINED(combined, element);
    }
    return combined;
}

// Reduces LANES such rows, which may be read up to LANES elements past their ends.
static inline VEC reduce_short_rows(__global const T* p, const long count, const long step, const long row_step) {
    ACC columns[LANES * LANES];
    const long full_count = count / LANES * LANES;
    const VEC rest = (VEC)(count - full_count);
    for (int r = 0; r < LANES; ++r, p += row_step) {
        VEC a = LANE_INDICES < rest ? load_vector(p + full_count * step, step) : (VEC)(IDENTITY);
        for (long i = 0; i < full_count; i += LANES) a = COMBINED(a, load_vector(p + i * step, step));
        across_rows_rows_store(a, columns + r * LANES);
    }
    return across_rows(columns);
}

// Short rows: one vector of sums is accurate enough. Reduces `count` elements at p + k x_step for each of `outputs`
// results k, as long as possible LANES of them at once. `room` elements of x may be read from p.
static inline void reduce_short_outputs(__global const T* p, const long count, const long step, const long x_step,
                                        const long room, __global ACC* to, const long out_step, const long outputs,
                                        const long divisor) {
    long k = 0;
    for (; k + LANES <= outputs && (k + LANES - 1) * x_step + (count + LANES) * step <= room; k += LANES) {
        const VEC values = FINALIZE(reduce_short_rows(p + k * x_step, count, step, x_step));
        ACC scalars[LANES];
        PASTE(vstore, LANES)(values, 0, scalars);
        if (out_step == 1) across_rows_rows_store(values, to + k);
        else
            for (int i = 0; i < LANES; ++i) to[(k + i) * out_step] = scalars[i];
    }
    for (; k < outputs; ++k) {
        const ACC value = reduce_short_row(p + k * x_step, count, step);
        to[k * out_step] = FINALIZE(value);
    }
}

NOINLINE void reduce_rows_part(const size_t id0, const size_t id1, const struct Layout layout, const long outputs,
                               const long outputs_each, const long elements, const long chunk, const long split_stride,
                               const long divisor, const long extent, __global const T* restrict x, const long x_offset,
                               __global ACC* restrict out, const long out_offset) {
    const long split = id1;
    const long begin = split * chunk, end = min(elements, (split + 1) * chunk);
    const long last = min(outputs, ((long)id0 + 1) * outputs_each);
    long output = id0 * outputs_each;
    if (layout.reduced_rank == 1 && end - begin <= BLOCK / 4) {
        // Offsets are computed for a run of outputs along the innermost axis.
        const int axis = (int)layout.kept_rank - 1;
        const long length = layout.kept_size[axis], step = STEP(layout.reduced_x[0]);
        while (output < last) {
            const long2 at = kept_position(&layout, output, (int)layout.kept_rank);
            const long run = min(last - output, axis == 0 ? outputs : length - output % length);
            const long first = at.x + begin * step;
            reduce_short_outputs(x + x_offset + first, end - begin, step, layout.kept_x[axis], extent - first,
                                 out + out_offset + at.y + split * split_stride, layout.kept_out[axis], run, divisor);
            output += run;
        }
        return;
    }
    for (; output < last; ++output) {
        const long2 at = kept_position(&layout, output, (int)layout.kept_rank);
        const ACC value = reduce_positions(&layout, x + x_offset + at.x, begin, end);
        out[out_offset + at.y + split * split_stride] = FINALIZE(value);
    }
}

__kernel void reduce_rows(const struct Layout layout, const long outputs, const long outputs_each, const long elements,
                          const long chunk, const long split_stride, const long divisor, const long extent,
                          __global const T* restrict x, const long x_offset, __global ACC* restrict out,
                          const long out_offset) {
    reduce_rows_part(get_global_id(0), get_global_id(1), layout, outputs, outputs_each, elements, chunk, split_stride,
                     divisor, extent, x, x_offset, out, out_offset);
}

#elif defined(SIMD_COLUMNS)

#define STORE PASTE(vstore, LANES)

// The first `valid` elements of a vector; the remaining lanes repeat the last of them.
#define VALID_ELEMENT(p, step, valid, i) TO_ACC((p)[min(i, (valid)-1) * (step)])
static inline VEC load_first(__global const T* p, const long step, const int valid) {
    return (VEC)(PASTE(LIST, LANES)(VALID_ELEMENT, p, step, valid, 0));
}

#ifdef WIDE_COLUMNS

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
            STORE(WITH_ERRORS(total[v], low[v]), 0, values);
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

#else

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
        for (int v = 0; v < VECTORS; ++v) STORE(WITH_ERRORS(total[v], low[v]), v, values);
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

#endif

#else

#include "row_group.clh"

ROW_GROUP_COMBINE(group_combined, ACC, COMBINED)

// Reduces the positions of a work-item, every lanes-th from `position`, of a single axis.
static inline void reduce_axis(__global const T* x, long position, const long end, const long step, const int lanes,
                               ACC* total, ACC* low) {
    while (position < end) {
        // Four loads in flight at a time.
        ACC a = IDENTITY, b = a, c = a, d = a;
        int k = 0;
        for (; k < BLOCK && position + 3 * lanes < end; k += 4, position += 4 * lanes) {
            a = COMBINED(a, TO_ACC(x[position * step]));
            b = COMBINED(b, TO_ACC(x[(position + lanes) * step]));
            c = COMBINED(c, TO_ACC(x[(position + 2 * lanes) * step]));
            d = COMBINED(d, TO_ACC(x[(position + 3 * lanes) * step]));
        }
        for (; k < BLOCK && position < end; ++k, position += lanes) a = COMBINED(a, TO_ACC(x[position * step]));
        a = COMBINED(a, b);
        c = COMBINED(c, d);
        const ACC block = COMBINED(a, c);
        add_block(total, low, block);
    }
}

// The same of several axes. Column and row offset are updated incrementally, since a division per step would cost more
// than the memory access.
static inline void reduce_axes(const struct Layout* layout, __global const T* x, long position, const long end,
                               const long step, const int lanes, ACC* total, ACC* low) {
    const int axis = REDUCED_RANK - 1;
    const long length = layout->reduced_size[axis];
    const long row_step = lanes / length, column_step = lanes % length;
    long row = position / length;
    long column = position - row * length;
    long row_offset = reduced_row(layout, row);
    while (position < end) {
        ACC part = IDENTITY;
        for (int k = 0; k < BLOCK && position < end; ++k, position += lanes) {
            part = COMBINED(part, TO_ACC(x[row_offset + column * step]));
            column += column_step;
            long rows = row_step;
            if (column >= length) {
                column -= length;
                ++rows;
            }
            row += rows;
            if (axis == 1) row_offset += rows * layout->reduced_x[0];
            else if (rows > 0) row_offset = reduced_row(layout, row);
        }
        add_block(total, low, part);
    }
}

__kernel void reduce_groups(const struct Layout layout_in, const long outputs, const long elements, const long chunk,
                            const long split_stride, const long divisor, const int lanes, const int lane_stride,
                            __local ACC* shared, __global const T* restrict x_base, const long x_offset,
                            __global ACC* restrict out, const long out_offset) {
    const struct Layout* layout = &layout_in;
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long step = STEP(layout->reduced_x[REDUCED_RANK - 1]);
    const long split = get_group_id(1);
    const long end = group.row < outputs ? min(elements, (split + 1) * chunk) : 0;
    const long2 at = kept_position(layout, min(group.row, outputs - 1), KEPT_RANK);
    __global const T* x = x_base + x_offset + at.x;
    const long position = split * chunk + group.lane;
    ACC total = IDENTITY, low = 0;
#if REDUCED_RANK == 1
    reduce_axis(x, position, end, step, lanes, &total, &low);
#else
    reduce_axes(layout, x, position, end, step, lanes, &total, &low);
#endif
    const ACC value = group_combined(shared, group, WITH_ERRORS(total, low));
    if (group.lane == 0 && group.row < outputs) out[out_offset + at.y + split * split_stride] = FINALIZE(value);
}

#endif
