// out[o, k] = the smallest c for which x[o, c, k] is largest; a NaN is larger than all other values.
//
// x[o, c, k] with o in [0, outer), c in [0, n), k in [0, inner), dense; a row is one (o, k).
//
//   SIMD     simd style, inner == 1: a work-item takes `each` rows. global (row groups)
//   SIMD_COLUMNS  simd style, inner > 1: a work-item takes COLUMNS neighbouring k of `each` o. global (column blocks, o
//            groups)
//   SIMT     simt style: several work-items per row. global (row groups * local size)
//   T        type of x
//   LANES    SIMD: elements per vector
//   BLOCK    SIMD: elements whose maximum is found before its index is searched
//   COLUMNS  SIMD_COLUMNS: neighbouring k per work-item
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#include "combine.clh"

#define IS_BETTER(v, best) (((v) > (best)) | (IS_NAN(v) & !IS_NAN(best)))

#ifdef SIMD

#include "row.clh"

__kernel void argmax(const long outer, const long n, const long inner, const long each,
                     __global const T* restrict x_base, const long x_offset, __global long* restrict out,
                     const long out_offset) {
    const long last = min(outer, ((long)get_global_id(0) + 1) * each);
    for (long row = get_global_id(0) * each; row < last; ++row) {
        __global const T* x = x_base + x_offset + row * n;
        T best = x[0];
        long at = 0;
        for (long start = 0; start < n; start += BLOCK) {
            const long end = min(n, start + BLOCK);
            const T largest = row_max(x + start, end - start, (outer - row) * n - start);
            if (!IS_BETTER(largest, best)) continue;
            best = largest;
            at = start;
            while (x[at] != best && !IS_NAN(x[at])) ++at;
        }
        out[out_offset + row] = at;
    }
}

#elif defined(SIMD_COLUMNS)

__kernel void argmax(const long outer, const long n, const long inner, const long each,
                     __global const T* restrict x_base, const long x_offset, __global long* restrict out_base,
                     const long out_offset) {
    T best[COLUMNS];
    long at[COLUMNS];
    const long first = get_global_id(0) * (long)COLUMNS;
    const int count = (int)min((long)COLUMNS, inner - first);
    const long last = min(outer, ((long)get_global_id(1) + 1) * each);
    for (long o = get_global_id(1) * each; o < last; ++o) {
        __global const T* x = x_base + x_offset + o * n * inner + first;
        for (int k = 0; k < count; ++k) {
            best[k] = x[k];
            at[k] = 0;
        }
        for (long c = 1; c < n; ++c)
            for (int k = 0; k < count; ++k) {
                const T v = x[c * inner + k];
                const int better = IS_BETTER(v, best[k]);
                best[k] = better ? v : best[k];
                at[k] = better ? c : at[k];
            }
        __global long* out = out_base + out_offset + o * inner + first;
        for (int k = 0; k < count; ++k) out[k] = at[k];
    }
}

#else

#include "row_group.clh"

__kernel void argmax(const long outer, const long n, const long inner, const int lanes, const int lane_stride,
                     __local T* values, __local long* indices, __global const T* restrict x_base, const long x_offset,
                     __global long* restrict out, const long out_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long rows = outer * inner, row = min(group.row, rows - 1);
    __global const T* x = x_base + x_offset + row / inner * n * inner + row % inner;
    long at = min((long)group.lane, n - 1);
    T best = x[at * inner];
    for (long c = group.lane + lanes; c < n; c += lanes) {
        const T v = x[c * inner];
        if (IS_BETTER(v, best)) {
            best = v;
            at = c;
        }
    }
    values[group.item] = best;
    indices[group.item] = at;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        if (group.lane < distance) {
            const int other = group.item + distance * lane_stride;
            const T own = values[group.item], other_value = values[other];
            const int equal = (own == other_value) | (IS_NAN(own) & IS_NAN(other_value));
            if (IS_BETTER(other_value, own) | (equal & (indices[other] < indices[group.item]))) {
                values[group.item] = other_value;
                indices[group.item] = indices[other];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (group.lane == 0 && group.row < rows) out[out_offset + group.row] = indices[group.item];
}

#endif
