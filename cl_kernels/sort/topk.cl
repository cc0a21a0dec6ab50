// Top k of each row of x (rows, n) in descending or ascending order: values[row][i], places[row][i]. NaN is the
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
#define AHEAD(a, b) (((a) > (b)) | (IS_NAN(a) & !IS_NAN(b)))
#else
#define AHEAD(a, b) (((a) < (b)) | (!IS_NAN(a) & IS_NAN(b)))
#endif
static inline int before(const T a, const long i, const T b, const long j) {
    return AHEAD(a, b) | (!AHEAD(b, a) & (i < j));
}

#ifdef SIMD

// Sifts down the element `at` of a heap of `count` elements; its top is the last one in order.
static inline void sink(__global T* values, __global long* places, long at, const long count) {
    const T value = values[at];
    const long place = places[at];
    for (;;) {
        long child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && before(values[child], places[child], values[child + 1], places[child + 1])) ++child;
        if (!before(value, place, values[child], places[child])) break;
        values[at] = values[child];
        places[at] = places[child];
        at = child;
    }
    values[at] = value;
    places[at] = place;
}

__kernel void topk(const long rows, const long n, const long k, const long each, __global const T* restrict x_base,
                   const long x_offset, __global T* restrict values_base, const long values_offset,
                   __global long* restrict places_base, const long places_offset) {
    const long last = min(rows, ((long)get_global_id(0) + 1) * each);
    for (long row = get_global_id(0) * each; row < last; ++row) {
        __global const T* x = x_base + x_offset + row * n;
        __global T* values = values_base + values_offset + row * k;
        __global long* places = places_base + places_offset + row * k;
        for (long i = 0; i < k; ++i) {
            values[i] = x[i];
            places[i] = i;
        }
        for (long i = k / 2 - 1; i >= 0; --i) sink(values, places, i, k);
        for (long i = k; i < n; ++i) {
            if (!before(x[i], i, values[0], places[0])) continue;
            values[0] = x[i];
            places[0] = i;
            sink(values, places, 0, k);
        }
        for (long count = k - 1; count > 0; --count) {
            const T value = values[0];
            const long place = places[0];
            values[0] = values[count];
            places[0] = places[count];
            values[count] = value;
            places[count] = place;
            sink(values, places, 0, count);
        }
    }
}

#else

__kernel void topk(const long rows, const long n, const long k, __local T* shared, __local long* shared_places,
                   __global const T* restrict x_base, const long x_offset, __global T* restrict values,
                   const long values_offset, __global long* restrict places, const long places_offset) {
    const long row = get_group_id(0);
    const int lane = get_local_id(0), lanes = get_local_size(0);
    __global const T* x = x_base + x_offset + row * n;
    T last = x[0];  // the previous element, from the second iteration on
    long last_place = -1;
    for (long i = 0; i < k; ++i) {
        T best = x[0];
        long place = -1;  // none yet
        for (long c = lane; c < n; c += lanes) {
            const T value = x[c];
            if ((i == 0 || before(last, last_place, value, c)) && (place < 0 || before(value, c, best, place))) {
                best = value;
                place = c;
            }
        }
        shared[lane] = best;
        shared_places[lane] = place;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = lanes / 2; reach > 0; reach /= 2) {
            if (lane < reach) {
                const T other = shared[lane + reach];
                const long other_place = shared_places[lane + reach];
                const long own = shared_places[lane];
                if (other_place >= 0 && (own < 0 || before(other, other_place, shared[lane], own))) {
                    shared[lane] = other;
                    shared_places[lane] = other_place;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        last = shared[0];
        last_place = shared_places[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) {
            values[values_offset + row * k + i] = last;
            places[places_offset + row * k + i] = last_place;
        }
    }
}

#endif
