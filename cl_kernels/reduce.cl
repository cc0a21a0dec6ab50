// out[o] = combine over r of x[o, r], for every output o and all reduced positions r.
//
// The host merges and orders the axes (src/ops/reduce.cpp): the kept ones enumerate the outputs 0 .. outputs - 1, the
// reduced ones the positions 0 .. elements - 1, innermost axis last. Positions may be cut into chunks: chunk number s
// covers positions s * chunk .. and writes its result to out + s * split_stride, for a second pass over the chunks.
//
//   FORM      0 reduce_rows     CPU-like, reduced axis contiguous: vectors along it. global (output groups, chunks)
//             1 reduce_columns  CPU-like, kept axis contiguous: vectors across outputs. global (column blocks, row groups, chunks)
//             2 reduce_groups   GPU-like: LANES work-items share an output. global (output groups * GROUP, chunks)
//   T, ACC    type of x; type of accumulation and result
//   COMBINE   0 sum, 1 max, 2 min;  IDENTITY its neutral element;  MEAN divides by `divisor` at the end
//   KEPT_RANK, REDUCED_RANK   numbers of merged axes
//   STEP      distance in x along the vector's axis (reduced in form 0, kept in form 1, reduced in form 2): 1, or
//             strided (undefined)
//   BLOCK     terms that one partial sum takes up, so that sums of many floats stay exact enough
//   LANES     forms 0 and 1: elements of a vector, 8 or 16. Form 2: work-items an output, a power of two
//   VECTORS, UNROLL  form 1: vectors across, and positions at a time
//   OUTPUTS, LANE_STRIDE  form 2: outputs of a group; distance between the work-items of an output: 1 when neighbours
//             read along the reduced axis, OUTPUTS when they read along the kept one
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define MAX_RANK 8

struct Layout {
    long kept_size[MAX_RANK], kept_x[MAX_RANK], kept_out[MAX_RANK];
    long reduced_size[MAX_RANK], reduced_x[MAX_RANK];
};

// For scalars and vectors. A NaN wins wherever it stands.
#if COMBINE == 0
#define JOINED(a, b) ((a) + (b))
#elif COMBINE == 1
#define JOINED(a, b) ((((a) > (b)) | ((a) != (a))) ? (a) : (b))
#else
#define JOINED(a, b) ((((a) < (b)) | ((a) != (a))) ? (a) : (b))
#endif
#ifdef MEAN
#define FINISH(v) ((v) / (ACC)divisor)
#else
#define FINISH(v) (v)
#endif

#ifdef CONTIGUOUS
#define STEP 1
#elif FORM == 1
#define STEP layout->kept_x[KEPT_RANK - 1]
#else
#define STEP layout->reduced_x[REDUCED_RANK - 1]
#endif

// Offset in x of a position of all reduced axes but the innermost.
static inline long reduced_row(const struct Layout* layout, long row) {
    long at = 0;
#if REDUCED_RANK > 1
    for (int axis = REDUCED_RANK - 2; axis > 0; --axis) {
        at += row % layout->reduced_size[axis] * layout->reduced_x[axis];
        row /= layout->reduced_size[axis];
    }
    at += row * layout->reduced_x[0];
#endif
    return at;
}

// Offsets in x and out of a position of the first `rank` kept axes.
static inline long2 kept_position(const struct Layout* layout, long position, const int rank) {
    long2 at = (long2)(0);
    for (int axis = rank - 1; axis > 0; --axis) {
        const long index = position % layout->kept_size[axis];
        position /= layout->kept_size[axis];
        at += index * (long2)(layout->kept_x[axis], layout->kept_out[axis]);
    }
    if (rank > 0) at += position * (long2)(layout->kept_x[0], layout->kept_out[0]);
    return at;
}

#if FORM != 2
#define VEC JOIN(ACC, LANES)
#define CONVERT(width, v) JOIN(JOIN(convert_, ACC), width)(v)
#define LIST2(f, i) f(i), f(i + 1)
#define LIST4(f, i) LIST2(f, i), LIST2(f, i + 2)
#define LIST8(f, i) LIST4(f, i), LIST4(f, i + 4)
#define LIST16(f, i) LIST8(f, i), LIST8(f, i + 8)
#ifdef CONTIGUOUS
#define LOAD(width, p) CONVERT(width, JOIN(vload, width)(0, p))
#else
#define LOAD_AT(i) (ACC)source[(i) * step]
#define LOAD(width, p) load##width(p, STEP)
static inline JOIN(ACC, 2) load2(__global const T* source, const long step) { return (JOIN(ACC, 2))(LIST2(LOAD_AT, 0)); }
static inline JOIN(ACC, 4) load4(__global const T* source, const long step) { return (JOIN(ACC, 4))(LIST4(LOAD_AT, 0)); }
static inline JOIN(ACC, 8) load8(__global const T* source, const long step) { return (JOIN(ACC, 8))(LIST8(LOAD_AT, 0)); }
static inline JOIN(ACC, 16) load16(__global const T* source, const long step) { return (JOIN(ACC, 16))(LIST16(LOAD_AT, 0)); }
#endif
#define LOAD_VEC(p) JOIN(LOAD_VEC_, LANES)(p)
#define LOAD_VEC_8(p) LOAD(8, p)
#define LOAD_VEC_16(p) LOAD(16, p)
#endif

#if FORM == 0

static inline ACC across(const VEC v) {
#if LANES == 16
    const JOIN(ACC, 8) half = JOINED(v.lo, v.hi);
#else
    const VEC half = v;
#endif
    const JOIN(ACC, 4) quarter = JOINED(half.lo, half.hi);
    const JOIN(ACC, 2) pair = JOINED(quarter.lo, quarter.hi);
    return JOINED(pair.x, pair.y);
}

static inline ACC reduce_positions(const struct Layout* layout, __global const T* x, long position, const long end) {
    const long length = layout->reduced_size[REDUCED_RANK - 1];
    ACC total = IDENTITY;
    VEC a = (VEC)(IDENTITY), b = a, c = a, d = a;
    long in_block = 0;
    while (position < end) {
#if REDUCED_RANK > 1
        const long row = position / length;
        const long column = position - row * length;
#else
        const long row = 0, column = position;
#endif
        const long count = min(length - column, min(end - position, BLOCK - in_block));
        __global const T* p = x + reduced_row(layout, row) + column * STEP;
        long i = 0;
        for (; i + 4 * LANES <= count; i += 4 * LANES) {
            a = JOINED(a, LOAD_VEC(p + i * STEP));
            b = JOINED(b, LOAD_VEC(p + (i + LANES) * STEP));
            c = JOINED(c, LOAD_VEC(p + (i + 2 * LANES) * STEP));
            d = JOINED(d, LOAD_VEC(p + (i + 3 * LANES) * STEP));
        }
        for (; i + LANES <= count; i += LANES) a = JOINED(a, LOAD_VEC(p + i * STEP));
        const long rest = count - i;
#if LANES == 16
        if (rest & 8) {
            b.lo = JOINED(b.lo, LOAD(8, p + i * STEP));
            i += 8;
        }
#endif
        if (rest & 4) {
            c.lo.lo = JOINED(c.lo.lo, LOAD(4, p + i * STEP));
            i += 4;
        }
        if (rest & 2) {
            d.s01 = JOINED(d.s01, LOAD(2, p + i * STEP));
            i += 2;
        }
        if (rest & 1) a.s0 = JOINED(a.s0, (ACC)p[i * STEP]);
        position += count;
        in_block += count;
        if (in_block == BLOCK) {
            const VEC block = JOINED(JOINED(a, b), JOINED(c, d));
            total = JOINED(total, across(block));
            a = b = c = d = (VEC)(IDENTITY);
            in_block = 0;
        }
    }
    const VEC block = JOINED(JOINED(a, b), JOINED(c, d));
    return JOINED(total, across(block));
}

__kernel void reduce_rows(const struct Layout layout, const long outputs, const long outputs_each, const long elements, const long chunk,
                          const long split_stride, const long divisor, __global const T* restrict x, const long x_offset,
                          __global ACC* restrict out, const long out_offset) {
    const long split = get_global_id(1);
    const long end = min(elements, (split + 1) * chunk);
    const long last = min(outputs, ((long)get_global_id(0) + 1) * outputs_each);
    for (long output = get_global_id(0) * outputs_each; output < last; ++output) {
        const long2 at = kept_position(&layout, output, KEPT_RANK);
        const ACC value = reduce_positions(&layout, x + x_offset + at.x, split * chunk, end);
        out[out_offset + at.y + split * split_stride] = FINISH(value);
    }
}

#elif FORM == 1

#define WIDTH (VECTORS * LANES)
#define STORE JOIN(vstore, LANES)

// The first `valid` elements of a vector; the others repeat the last of them.
static inline VEC load_first(__global const T* p, const long step, const int valid) {
#define LOAD_FIRST(i) (ACC)p[min(i, valid - 1) * step]
    return (VEC)(JOIN(LIST, LANES)(LOAD_FIRST, 0));
}

// reach: elements of x from its first to its last. A vector at the right edge reads beyond its columns, into the
// next row, wherever there is one.
__kernel void reduce_columns(const struct Layout layout_in, const long rows, const long rows_each, const long elements, const long chunk,
                             const long split_stride, const long divisor, const long reach, __global const T* restrict x_base,
                             const long x_offset, __global ACC* restrict out, const long out_offset) {
    const struct Layout* layout = &layout_in;
    __global const T* x = x_base + x_offset;
    const long columns = layout->kept_size[KEPT_RANK - 1];
    const long first = get_global_id(0) * (long)WIDTH;
    const int valid = (int)min((long)WIDTH, columns - first);
    const long length = layout->reduced_size[REDUCED_RANK - 1], stride = layout->reduced_x[REDUCED_RANK - 1];
    const long split = get_global_id(2);
    const long end = min(elements, (split + 1) * chunk);
    const long last_row = min(rows, ((long)get_global_id(1) + 1) * rows_each);
    for (long kept_row = get_global_id(1) * rows_each; kept_row < last_row; ++kept_row) {
        const long2 at = kept_position(layout, kept_row, KEPT_RANK - 1);
        const long x_at = at.x + first * STEP;
        VEC total[VECTORS];
        for (int v = 0; v < VECTORS; ++v) total[v] = (VEC)(IDENTITY);
        long position = split * chunk;
        while (position < end) {
#if REDUCED_RANK > 1
            const long row = position / length;
            const long start = position - row * length;
#else
            const long row = 0, start = position;
#endif
            const long count = min(length - start, min(end - position, (long)BLOCK));
            const long p_at = x_at + reduced_row(layout, row) + start * stride;
            __global const T* p = x + p_at;
            VEC part[UNROLL][VECTORS];
            for (int u = 0; u < UNROLL; ++u)
                for (int v = 0; v < VECTORS; ++v) part[u][v] = (VEC)(IDENTITY);
            long whole = count;
            if (valid < WIDTH) {
                const long room = reach - p_at - (WIDTH - 1) * STEP;  // whole vectors start in front of it
                whole = room <= 0 ? 0 : stride == 0 ? count : min(count, (room - 1) / stride + 1);
            }
            long r = 0;
            for (; r + UNROLL <= whole; r += UNROLL)
                for (int u = 0; u < UNROLL; ++u)
                    for (int v = 0; v < VECTORS; ++v)
                        part[u][v] = JOINED(part[u][v], LOAD_VEC(p + (r + u) * stride + v * LANES * STEP));
            for (; r < whole; ++r)
                for (int v = 0; v < VECTORS; ++v) part[0][v] = JOINED(part[0][v], LOAD_VEC(p + r * stride + v * LANES * STEP));
            for (; r < count; ++r)
                for (int v = 0; v < VECTORS; ++v)
                    if (v * LANES < valid)
                        part[0][v] = JOINED(part[0][v], load_first(p + r * stride + v * LANES * STEP, STEP, valid - v * LANES));
            for (int u = 0; u < UNROLL; ++u)
                for (int v = 0; v < VECTORS; ++v) total[v] = JOINED(total[v], part[u][v]);
            position += count;
        }
        const long out_at = out_offset + at.y + split * split_stride, out_step = layout->kept_out[KEPT_RANK - 1];
        ACC values[WIDTH];
        for (int v = 0; v < VECTORS; ++v) STORE(total[v], v, values);
        for (int i = 0; i < valid; ++i) out[out_at + (first + i) * out_step] = FINISH(values[i]);
    }
}

#else

__kernel void reduce_groups(const struct Layout layout_in, const long outputs, const long elements, const long chunk, const long split_stride,
                            const long divisor, __global const T* restrict x_base, const long x_offset, __global ACC* restrict out,
                            const long out_offset) {
    __local ACC shared[LANES * OUTPUTS];
    const struct Layout* layout = &layout_in;
    const int item = get_local_id(0);
#if LANE_STRIDE == 1
    const int lane = item % LANES, slot = item / LANES;
#else
    const int lane = item / OUTPUTS, slot = item % OUTPUTS;
#endif
    const long output = get_group_id(0) * (long)OUTPUTS + slot;
    const long split = get_group_id(1);
    const long end = output < outputs ? min(elements, (split + 1) * chunk) : 0;
    const long2 at = kept_position(layout, min(output, outputs - 1), KEPT_RANK);
    __global const T* x = x_base + x_offset + at.x;
    ACC total = IDENTITY;
    long position = split * chunk + lane;
#if REDUCED_RANK > 1
    // Column and offset of the row go along, since a division a step would cost more than the memory.
    const long length = layout->reduced_size[REDUCED_RANK - 1];
    const long rows_on = LANES / length, columns_on = LANES % length;
    long row = position / length;
    long column = position - row * length;
    long row_at = reduced_row(layout, row);
#endif
    while (position < end) {
        ACC part = IDENTITY;
#if REDUCED_RANK > 1
        for (int k = 0; k < BLOCK && position < end; ++k, position += LANES) {
            part = JOINED(part, (ACC)x[row_at + column * STEP]);
            column += columns_on;
            long rows = rows_on;
            if (column >= length) {
                column -= length;
                ++rows;
            }
#if REDUCED_RANK == 2
            row_at += rows * layout->reduced_x[0];
#else
            if (rows > 0) {
                row += rows;
                row_at = reduced_row(layout, row);
            }
#endif
        }
#else
        // Four loads under way at a time.
        ACC b = IDENTITY, c = IDENTITY, d = IDENTITY;
        int k = 0;
        for (; k + 4 <= BLOCK && position + 3 * LANES < end; k += 4, position += 4 * LANES) {
            part = JOINED(part, (ACC)x[position * STEP]);
            b = JOINED(b, (ACC)x[(position + LANES) * STEP]);
            c = JOINED(c, (ACC)x[(position + 2 * LANES) * STEP]);
            d = JOINED(d, (ACC)x[(position + 3 * LANES) * STEP]);
        }
        for (; k < BLOCK && position < end; ++k, position += LANES) part = JOINED(part, (ACC)x[position * STEP]);
        b = JOINED(b, c);
        part = JOINED(part, d);
        part = JOINED(part, b);
#endif
        total = JOINED(total, part);
    }
    shared[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
        if (lane < half_lanes) shared[item] = JOINED(shared[item], shared[item + half_lanes * LANE_STRIDE]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && output < outputs) out[out_offset + at.y + split * split_stride] = FINISH(shared[item]);
}

#endif
