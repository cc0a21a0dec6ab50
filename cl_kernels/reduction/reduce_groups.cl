// Reductions (formula and macros in reduce.clh). simt style: several work-items per output. global (output groups *
// local size, chunks)
#include "reduce.clh"
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
