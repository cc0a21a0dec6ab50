// Top k of each row of x (rows, n) in descending or ascending order: values[row][i], indices[row][i]. NaN is the
// largest; of equal elements the one with the smaller index comes first.
//
//   SIMD     simd style: a work-item takes `each` rows, with a heap of k elements in the results. global (row groups)
//   SIMT     simt style: a group per row, which k times selects the first element after the previous one. global (rows
//            * local size), a power of two
//   LARGEST  1: descending, 0: ascending
//   T        type of x
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#include "combine.clh"

// True if a at index i comes before b at index j.
#if LARGEST
#define PRECEDES(a, b) (((a) > (b)) | (IS_NAN(a) & !IS_NAN(b)))
#else
#define PRECEDES(a, b) (((a) < (b)) | (!IS_NAN(a) & IS_NAN(b)))
#endif
static inline int before(const T a, const long i, const T b, const long j) {
    return PRECEDES(a, b) | (!PRECEDES(b, a) & (i < j));
}

#ifdef SIMD

// Sifts down the element `at` of a heap of `count` elements; its top is the last one in order.
static inline void sift_down(__global T* values, __global long* indices, long at, const long count) {
    const T value = values[at];
    const long index = indices[at];
    for (;;) {
        long child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && before(values[child], indices[child], values[child + 1], indices[child + 1])) ++child;
        if (!before(value, index, values[child], indices[child])) break;
        values[at] = values[child];
        indices[at] = indices[child];
        at = child;
    }
    values[at] = value;
    indices[at] = index;
}

__kernel void topk(const long rows, const long n, const long k, const long each, __global const T* restrict x_base,
                   const long x_offset, __global T* restrict values_base, const long values_offset,
                   __global long* restrict indices_base, const long indices_offset) {
    const long last = min(rows, ((long)get_global_id(0) + 1) * each);
    for (long row = get_global_id(0) * each; row < last; ++row) {
        __global const T* x = x_base + x_offset + row * n;
        __global T* values = values_base + values_offset + row * k;
        __global long* indices = indices_base + indices_offset + row * k;
        for (long i = 0; i < k; ++i) {
            values[i] = x[i];
            indices[i] = i;
        }
        for (long i = k / 2 - 1; i >= 0; --i) sift_down(values, indices, i, k);
        for (long i = k; i < n; ++i) {
            if (!before(x[i], i, values[0], indices[0])) continue;
            values[0] = x[i];
            indices[0] = i;
            sift_down(values, indices, 0, k);
        }
        for (long count = k - 1; count > 0; --count) {
            const T value = values[0];
            const long index = indices[0];
            values[0] = values[count];
            indices[0] = indices[count];
            values[count] = value;
            indices[count] = index;
            sift_down(values, indices, 0, count);
        }
    }
}

#else

__kernel void topk(const long rows, const long n, const long k, __local T* shared, __local long* shared_indices,
                   __global const T* restrict x_base, const long x_offset, __global T* restrict values,
                   const long values_offset, __global long* restrict indices, const long indices_offset) {
    const long row = get_group_id(0);
    const int lane = get_local_id(0), lanes = get_local_size(0);
    __global const T* x = x_base + x_offset + row * n;
    T last = x[0];  // the previous element, from the second iteration on
    long last_index = -1;
    for (long i = 0; i < k; ++i) {
        T best = x[0];
        long index = -1;  // none yet
        for (long c = lane; c < n; c += lanes) {
            const T value = x[c];
            if ((i == 0 || before(last, last_index, value, c)) && (index < 0 || before(value, c, best, index))) {
                best = value;
                index = c;
            }
        }
        shared[lane] = best;
        shared_indices[lane] = index;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = lanes / 2; distance > 0; distance /= 2) {
            if (lane < distance) {
                const T other = shared[lane + distance];
                const long other_index = shared_indices[lane + distance];
                const long own = shared_indices[lane];
                if (other_index >= 0 && (own < 0 || before(other, other_index, shared[lane], own))) {
                    shared[lane] = other;
                    shared_indices[lane] = other_index;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        last = shared[0];
        last_index = shared_indices[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) {
            values[values_offset + row * k + i] = last;
            indices[indices_offset + row * k + i] = last_index;
        }
    }
}

#endif
