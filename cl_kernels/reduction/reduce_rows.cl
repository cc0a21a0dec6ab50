// Reductions along a contiguous axis (formula and macros in reduce.clh). simd style: a work-item takes `outputs_each`
// outputs, in vectors along the reduced axis. global (output groups, chunks)
//
//   extent  elements of x from its first to its last, which vectors may read even if they are not reduced
#include "reduce_vectors.clh"
#include "horizontal.clh"

HORIZONTAL(across, ACC, LANES, COMBINED)
HORIZONTAL(across8, ACC, 8, COMBINED)
HORIZONTAL(across4, ACC, 4, COMBINED)
HORIZONTAL_ROWS(across_each, ACC, LANES, COMBINED)
UNALIGNED(acc, ACC, LANES)

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
    ACC row_vectors[LANES * LANES];
    const long full_count = count / LANES * LANES;
    const VEC rest = (VEC)(count - full_count);
    for (int r = 0; r < LANES; ++r, p += row_step) {
        VEC a = LANE_INDICES < rest ? load_vector(p + full_count * step, step) : (VEC)(IDENTITY);
        for (long i = 0; i < full_count; i += LANES) a = COMBINED(a, load_vector(p + i * step, step));
        acc_store(a, row_vectors + r * LANES);
    }
    return across_each(row_vectors);
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
        if (out_step == 1) acc_store(values, to + k);
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
