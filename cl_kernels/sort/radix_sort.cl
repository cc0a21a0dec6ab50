// Stable LSD radix sort of rows of n numbers, with the source indices (argsort). Keys are unsigned integers in the
// order of the numbers; NaN is the largest, -0 equals 0.
//
// Each pass processes chunks of a row: `radix_count` counts the digits per chunk, then `radix_place` writes the
// elements of each chunk, in order, after those with smaller digits and those with the same digit in previous chunks.
// The first pass makes keys of x; the last one writes the result, the first k of each row. A pass between them that
// finds only one digit leaves its row in place, which is common for integers, as they seldom use the full range of
// their type.
//
//   SIMD            simd style: a work-item per chunk, digits of 8 bits. global (chunks, rows)
//   SIMT            simt style: a group per chunk, with PER_ITEM contiguous elements for each of its work-items; digits
//                   of 4 bits. global (chunks * local size, rows). `radix_offsets`, global (rows * local size),
//                   computes prefix sums of the counts in between
//   T, KEY          type of x, and the unsigned type of its size, of KEY_BITS bits
//   FLOATING, SIGNED  defined if T is a floating type, or a signed integer type
//   INFINITY_BITS   FLOATING: the bits of infinity; those of NaN, without the sign, are greater
//   DESCENDING      1: descending order
//   FIRST_PASS, LAST_PASS  1 if the pass is the first, or the last
//   counts          (rows, chunks, 256), or (rows, 16, chunks) in simt style
//   current_buffer  (passes, rows), which of two buffers contains a row's keys and indices before a pass
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#ifdef SIMD
#define DIGIT_BITS 8
#else
#define DIGIT_BITS 4
#endif
#define DIGITS (1 << DIGIT_BITS)
#define DIGIT(key) ((int)((key) >> shift) & (DIGITS - 1))

#ifdef FLOATING
static inline KEY key_of(const T x) {
    const KEY sign = (KEY)1 << (KEY_BITS - 1), bits = AS_KEY(x), size = bits & ~sign;
    const KEY ordered = bits & sign ? ~bits : bits | sign;
    const KEY key = size == 0 ? sign : size > INFINITY_BITS ? ~(KEY)0 : ordered;
#elif defined(SIGNED)
static inline KEY key_of(const T x) {
    const KEY key = (KEY)x ^ ((KEY)1 << (KEY_BITS - 1));
#else
static inline KEY key_of(const T x) {
    const KEY key = (KEY)x;
#endif
    return DESCENDING ? (KEY)~key : key;
}

#if FIRST_PASS
#define INPUT __global const T* restrict
#define KEY_AT(i) key_of(in[i])
#define INDEX_AT(i) ((uint)(i))
#else
#define INPUT __global const KEY* restrict
#define KEY_AT(i) in[i]
#define INDEX_AT(i) from_indices[i]
#endif
#define PASS (shift / DIGIT_BITS)

// Writes one element to position `at` of the row.
#if LAST_PASS
#define PUT(at, key, index)              \
    if ((long)(at) < k) {                \
        out_values[at] = x[index];       \
        out_indices[at] = (long)(index); \
    }
#else
#define PUT(at, key, index)     \
    {                           \
        to_keys[at] = key;      \
        to_indices[at] = index; \
    }
#endif

struct Sort {
    long n, k, chunks, each;
};

// Parameters of all kernels; pointers that a pass does not use point to another operand.
#define PARAMETERS                                                                                                   \
    const struct Sort sizes, const int shift, __global const T *restrict x_base, const long x_offset,                \
        __global uint *restrict counts_base, const long counts_offset, __global uchar *restrict current_buffer_base, \
        const long current_buffer_offset, __global KEY *restrict keys0_base, const long keys0_offset,                \
        __global KEY *restrict keys1_base, const long keys1_offset
#define RADIX_PLACE_PARAMETERS                                                                                   \
    PARAMETERS, __global uint *restrict indices0_base, const long indices0_offset,                               \
        __global uint *restrict indices1_base, const long indices1_offset, __global T *restrict out_values_base, \
        const long out_values_offset, __global long *restrict out_indices_base, const long out_indices_offset

#define ROW                                                                                  \
    const long n = sizes.n, row = get_global_id(1);                                          \
    __global uchar* current_buffer =                                                         \
        current_buffer_base + current_buffer_offset + PASS * (long)get_global_size(1) + row; \
    __global const T* x = x_base + x_offset + row * n;                                       \
    __global KEY *keys0 = keys0_base + keys0_offset + row * n, *keys1 = keys1_base + keys1_offset + row * n
#if FIRST_PASS
#define CURRENT_BUFFER 1
#define INPUT_ROW INPUT in = x
#else
#define CURRENT_BUFFER *current_buffer
#define INPUT_ROW INPUT in = CURRENT_BUFFER ? keys1 : keys0
#endif
#define RADIX_PLACE_ROW                                                     \
    const int second = CURRENT_BUFFER;                                      \
    const long k = sizes.k;                                                 \
    __global uint *indices0 = indices0_base + indices0_offset + row * n,    \
                  *indices1 = indices1_base + indices1_offset + row * n;    \
    __global const uint* from_indices = second ? indices1 : indices0;       \
    __global KEY* to_keys = second ? keys0 : keys1;                         \
    __global uint* to_indices = second ? indices0 : indices1;               \
    __global T* out_values = out_values_base + out_values_offset + row * k; \
    __global long* out_indices = out_indices_base + out_indices_offset + row * k
// Sets the buffer in which the next pass finds the row; `is_writer` is true for one work-item of the row.
#if LAST_PASS
#define SET_NEXT_BUFFER(is_writer, buffer_index)
#else
#define SET_NEXT_BUFFER(is_writer, buffer_index) \
    if (is_writer) current_buffer[get_global_size(1)] = buffer_index
#endif

#ifdef SIMD

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

__kernel void radix_place(RADIX_PLACE_PARAMETERS) {
    ROW;
    INPUT_ROW;
    RADIX_PLACE_ROW;
    const long chunk = get_global_id(0), chunks = sizes.chunks;
    __global const uint* counts = counts_base + counts_offset + row * chunks * DIGITS;
    uint next[DIGITS];
    uint smaller = 0, max_count = 0;
    for (int d = 0; d < DIGITS; ++d) {
        uint before = 0, total = 0;
        for (long c = 0; c < chunks; ++c) {
            const uint digit_count = counts[c * DIGITS + d];
            before += c < chunk ? digit_count : 0;
            total += digit_count;
        }
        next[d] = smaller + before;
        smaller += total;
        max_count = max(max_count, total);
    }
    const int single_digit = !FIRST_PASS && !LAST_PASS && max_count == (uint)n;
    SET_NEXT_BUFFER(chunk == 0, single_digit ? second : !second);
    if (single_digit) return;
    const long to = min(n, (chunk + 1) * sizes.each);
    for (long i = chunk * sizes.each; i < to; ++i) {
        const KEY key = KEY_AT(i);
        const uint index = INDEX_AT(i);
        const uint at = next[DIGIT(key)]++;
        PUT(at, key, index)
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
    for (int distance = 1; distance < lanes; distance *= 2) {
        const uint other = lane >= distance ? sums[lane - distance] : 0;
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
    const long lane = get_local_id(0), lanes = get_local_size(0), count = chunks * DIGITS;
    __global uint* line = counts + counts_offset + (long)get_group_id(0) * count;
    const long each = (count + lanes - 1) / lanes, from = min(count, lane * each), to = min(count, from + each);
    uint own = 0;
    for (long i = from; i < to; ++i) own += line[i];
    uint before = sum_before(own, sums);
    for (long i = from; i < to; ++i) {
        const uint digit_count = line[i];
        line[i] = before;
        before += digit_count;
    }
}

__kernel void radix_place(RADIX_PLACE_PARAMETERS, __local uint* own, __local uint* sums) {
    ROW;
    INPUT_ROW;
    RADIX_PLACE_ROW;
    const int lane = get_local_id(0), lanes = get_local_size(0);
    const long chunk = get_group_id(0);
    // There is only one digit if none of the offsets is between 0 and n. Uniform for the whole group.
    __global const uint* smaller = counts_base + counts_offset + row * DIGITS * sizes.chunks;
    int single_digit = !FIRST_PASS && !LAST_PASS;
    for (int d = 1; d < DIGITS; ++d)
        single_digit &= smaller[d * sizes.chunks] == 0 || smaller[d * sizes.chunks] == (uint)n;
    SET_NEXT_BUFFER(chunk == 0 && lane == 0, single_digit ? second : !second);
    if (single_digit) return;
    // own[digit][lane]: counts of each work-item's digits, then the number of elements of the chunk that come before
    // them.
    for (int d = 0; d < DIGITS; ++d) own[d * lanes + lane] = 0;
    const long from = min(n, chunk * sizes.each + (long)lane * PER_ITEM), to = min(n, from + PER_ITEM);
    for (long i = from; i < to; ++i) own[DIGIT(KEY_AT(i)) * lanes + lane] += 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint total = 0;
    for (int j = 0; j < DIGITS; ++j) total += own[lane * DIGITS + j];
    uint before = sum_before(total, sums);
    for (int j = 0; j < DIGITS; ++j) {
        const uint digit_count = own[lane * DIGITS + j];
        own[lane * DIGITS + j] = before;
        before += digit_count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Position of the first element of each digit, minus the number of elements of the chunk that come before it.
    if (lane < DIGITS)
        sums[lane] = counts_base[counts_offset + (row * DIGITS + lane) * sizes.chunks + chunk] - own[lane * lanes];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long i = from; i < to; ++i) {
        const KEY key = KEY_AT(i);
        const uint index = INDEX_AT(i);
        const int digit = DIGIT(key);
        const uint at = sums[digit] + own[digit * lanes + lane]++;
        PUT(at, key, index)
    }
}

#endif
