// Stable LSD radix sort of rows of n numbers, with the source indices (argsort). Keys are unsigned integers in the
// order of the numbers; NaN is the largest, -0 equals 0.
//
// Each pass processes chunks of a row: `radix_count` counts the digits per chunk, then `radix_place` writes the
// elements of each chunk, in order, after those with smaller digits and those with the same digit in previous chunks.
// The first pass makes keys of x; the last one writes the result, the first k of each row. A pass between them that
// finds one digit only leaves its row in place, which is common for integers, as they seldom use the full range of
// their type.
//
//   GROUPED 0   simd style: a work-item per chunk, digits of 8 bits. global (chunks, rows)
//           1   simt style: a group per chunk, with ITEMS contiguous elements for each of its work-items; digits of 4
//               bits. global (chunks * local size, rows). `radix_offsets`, global (rows * local size), computes prefix
//               sums of the counts in between
//   T, KEY      type of x, and the unsigned type of its size, of KEY_BITS bits
//   KIND        of T: 0 unsigned, 1 signed, 2 floating
//   FALLING     1: descending order
//   FIRST, LAST 1 if the pass is the first, or the last
//   counts      (rows, chunks, 256), or (rows, 16, chunks) if GROUPED
//   held        (passes, rows), which of two buffers has a row's keys and indices before a pass
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define DIGIT_BITS (GROUPED ? 4 : 8)
#define DIGITS (1 << DIGIT_BITS)
#define DIGIT(key) ((int)((key) >> shift) & (DIGITS - 1))

#if KIND == 2
static inline KEY key_of(const T x) {
    const KEY sign = (KEY)1 << (KEY_BITS - 1), bits = AS_KEY(x), size = bits & ~sign;
    const KEY risen = bits & sign ? ~bits : bits | sign;
    const KEY key = size == 0 ? sign : size > NAN_ABOVE ? ~(KEY)0 : risen;
#elif KIND == 1
static inline KEY key_of(const T x) {
    const KEY key = (KEY)x ^ ((KEY)1 << (KEY_BITS - 1));
#else
static inline KEY key_of(const T x) {
    const KEY key = (KEY)x;
#endif
    return FALLING ? (KEY)~key : key;
}

#if FIRST
#define INPUT __global const T* restrict
#define KEY_AT(i) key_of(in[i])
#define PLACE_AT(i) ((uint)(i))
#else
#define INPUT __global const KEY* restrict
#define KEY_AT(i) in[i]
#define PLACE_AT(i) from_places[i]
#endif
#define PASS (shift / DIGIT_BITS)

// Writes one element to position `at` of the row.
#if LAST
#define PUT(at, key, place)             \
    if ((long)(at) < k) {               \
        out_values[at] = x[place];      \
        out_places[at] = (long)(place); \
    }
#else
#define PUT(at, key, place)    \
    {                          \
        to_keys[at] = key;     \
        to_places[at] = place; \
    }
#endif

struct Sort {
    long n, k, chunks, each;
};

// Parameters of all kernels; pointers that a pass does not use point to another operand.
#define PARAMETERS                                                                                         \
    const struct Sort sizes, const int shift, __global const T *restrict x_base, const long x_offset,      \
        __global uint *restrict counts_base, const long counts_offset, __global uchar *restrict held_base, \
        const long held_offset, __global KEY *restrict keys0_base, const long keys0_offset,                \
        __global KEY *restrict keys1_base, const long keys1_offset
#define PLACE_PARAMETERS                                                                                               \
    PARAMETERS, __global uint *restrict places0_base, const long places0_offset, __global uint *restrict places1_base, \
        const long places1_offset, __global T *restrict out_values_base, const long out_values_offset,                 \
        __global long *restrict out_places_base, const long out_places_offset

#define ROW                                                                                 \
    const long n = sizes.n, row = get_global_id(1);                                         \
    __global uchar* held = held_base + held_offset + PASS * (long)get_global_size(1) + row; \
    __global const T* x = x_base + x_offset + row * n;                                      \
    __global KEY *keys0 = keys0_base + keys0_offset + row * n, *keys1 = keys1_base + keys1_offset + row * n
#if FIRST
#define HELD 1
#define INPUT_ROW INPUT in = x
#else
#define HELD *held
#define INPUT_ROW INPUT in = HELD ? keys1 : keys0
#endif
#define PLACE_ROW                                                           \
    const int second = HELD;                                                \
    const long k = sizes.k;                                                 \
    __global uint *places0 = places0_base + places0_offset + row * n,       \
                  *places1 = places1_base + places1_offset + row * n;       \
    __global const uint* from_places = second ? places1 : places0;          \
    __global KEY* to_keys = second ? keys0 : keys1;                         \
    __global uint* to_places = second ? places0 : places1;                  \
    __global T* out_values = out_values_base + out_values_offset + row * k; \
    __global long* out_places = out_places_base + out_places_offset + row * k
// Sets the buffer in which the next pass finds the row; `one` is true for one work-item of the row.
#if LAST
#define HOLD(one, where)
#else
#define HOLD(one, where) \
    if (one) held[get_global_size(1)] = where
#endif

#if !GROUPED

#include "noinline.clh"

NOINLINE void count_chunk(INPUT in, __global uint* counts, const long from, const long to, const int shift) {
    uint own[DIGITS];
    for (int d = 0; d < DIGITS; ++d) own[d] = 0;
    for (long i = from; i < to; ++i) own[DIGIT(KEY_AT(i))] += 1;
    for (int d = 0; d < DIGITS; ++d) counts[d] = own[d];
}

__kernel void radix_count(PARAMETERS) {
    ROW;
    INPUT_ROW;
    const long chunk = get_global_id(0);
    count_chunk(in, counts_base + counts_offset + (row * sizes.chunks + chunk) * DIGITS, chunk * sizes.each,
                min(n, (chunk + 1) * sizes.each), shift);
}

__kernel void radix_place(PLACE_PARAMETERS) {
    ROW;
    INPUT_ROW;
    PLACE_ROW;
    const long chunk = get_global_id(0), chunks = sizes.chunks;
    __global const uint* counts = counts_base + counts_offset + row * chunks * DIGITS;
    uint next[DIGITS];
    uint smaller = 0, most = 0;
    for (int d = 0; d < DIGITS; ++d) {
        uint before = 0, all = 0;
        for (long c = 0; c < chunks; ++c) {
            const uint one = counts[c * DIGITS + d];
            before += c < chunk ? one : 0;
            all += one;
        }
        next[d] = smaller + before;
        smaller += all;
        most = max(most, all);
    }
    const int stays = !FIRST && !LAST && most == (uint)n;
    HOLD(chunk == 0, stays ? second : !second);
    if (stays) return;
    const long to = min(n, (chunk + 1) * sizes.each);
    for (long i = chunk * sizes.each; i < to; ++i) {
        const KEY key = KEY_AT(i);
        const uint place = PLACE_AT(i);
        const uint at = next[DIGIT(key)]++;
        PUT(at, key, place)
    }
}

#else

__kernel void radix_count(PARAMETERS, __local uint* shared) {
    ROW;
    INPUT_ROW;
    const long chunk = get_group_id(0), lane = get_local_id(0);
    if (lane < DIGITS) shared[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // The order is irrelevant for counting.
    const long to = min(n, (chunk + 1) * sizes.each);
    for (long i = chunk * sizes.each + lane; i < to; i += get_local_size(0)) atomic_inc(&shared[DIGIT(KEY_AT(i))]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < DIGITS) counts_base[counts_offset + (row * DIGITS + lane) * sizes.chunks + chunk] = shared[lane];
}

// Exclusive prefix sum of `own` over the lanes; all work-items must call it.
static inline uint sum_before(const uint own, __local uint* sums) {
    const int lane = get_local_id(0), lanes = get_local_size(0);
    sums[lane] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < lanes; reach *= 2) {
        const uint other = lane >= reach ? sums[lane - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[lane] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint before = sums[lane] - own;
    barrier(CLK_LOCAL_MEM_FENCE);
    return before;
}

// Replaces counts (rows, 16 * chunks) by their exclusive prefix sums along each row.
__kernel void radix_offsets(const long chunks, __global uint* restrict counts, const long counts_offset,
                            __local uint* sums) {
    const long lane = get_local_id(0), lanes = get_local_size(0), many = chunks * DIGITS;
    __global uint* line = counts + counts_offset + (long)get_group_id(0) * many;
    const long each = (many + lanes - 1) / lanes, from = min(many, lane * each), to = min(many, from + each);
    uint own = 0;
    for (long i = from; i < to; ++i) own += line[i];
    uint before = sum_before(own, sums);
    for (long i = from; i < to; ++i) {
        const uint one = line[i];
        line[i] = before;
        before += one;
    }
}

__kernel void radix_place(PLACE_PARAMETERS, __local uint* own, __local uint* sums) {
    ROW;
    INPUT_ROW;
    PLACE_ROW;
    const int lane = get_local_id(0), lanes = get_local_size(0);
    const long chunk = get_group_id(0);
    // There is only one digit if none of the offsets is between 0 and n. Uniform for the whole group.
    __global const uint* smaller = counts_base + counts_offset + row * DIGITS * sizes.chunks;
    int stays = !FIRST && !LAST;
    for (int d = 1; d < DIGITS; ++d) stays &= smaller[d * sizes.chunks] == 0 || smaller[d * sizes.chunks] == (uint)n;
    HOLD(chunk == 0 && lane == 0, stays ? second : !second);
    if (stays) return;
    // own[digit][lane]: counts of each work-item's digits, then the number of elements of the chunk that come before
    // them.
    for (int d = 0; d < DIGITS; ++d) own[d * lanes + lane] = 0;
    const long from = min(n, chunk * sizes.each + (long)lane * ITEMS), to = min(n, from + ITEMS);
    for (long i = from; i < to; ++i) own[DIGIT(KEY_AT(i)) * lanes + lane] += 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint total = 0;
    for (int j = 0; j < DIGITS; ++j) total += own[lane * DIGITS + j];
    uint before = sum_before(total, sums);
    for (int j = 0; j < DIGITS; ++j) {
        const uint one = own[lane * DIGITS + j];
        own[lane * DIGITS + j] = before;
        before += one;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Position of the first element of each digit, minus the number of elements of the chunk that come before it.
    if (lane < DIGITS)
        sums[lane] = counts_base[counts_offset + (row * DIGITS + lane) * sizes.chunks + chunk] - own[lane * lanes];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long i = from; i < to; ++i) {
        const KEY key = KEY_AT(i);
        const uint place = PLACE_AT(i);
        const int digit = DIGIT(key);
        const uint at = sums[digit] + own[digit * lanes + lane]++;
        PUT(at, key, place)
    }
}

#endif
