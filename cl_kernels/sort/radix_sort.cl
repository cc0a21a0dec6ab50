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

static inline KEY key_of(const T x) {
#ifdef FLOATING
    const KEY sign = (KEY)1 << (KEY_BITS - 1), bits = AS_KEY(x), size = bits & ~sign;
    const KEY ordered = bits & sign ? ~bits : bits | sign;
    const KEY key = size == 0 ? sign : size > INFINITY_BITS ? ~(KEY)0 : ordered;
#elif defined(SIGNED)
    const KEY key = (KEY)x ^ ((KEY)1 << (KEY_BITS - 1));
#else
    const KEY key = (KEY)x;
#endif
    return DESCENDING ? (KEY)~key : key;
}

static inline int digit_of(const KEY key, const int shift) { return (int)(key >> shift) & (DIGITS - 1); }

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
#define ARGUMENTS                                                                                           \
    sizes, shift, x_base, x_offset, counts_base, counts_offset, current_buffer_base, current_buffer_offset, \
        keys0_base, keys0_offset, keys1_base, keys1_offset
#define RADIX_PLACE_ARGUMENTS                                                                                      \
    ARGUMENTS, indices0_base, indices0_offset, indices1_base, indices1_offset, out_values_base, out_values_offset, \
        out_indices_base, out_indices_offset

// Type of what the pass reads: x if it is the first, otherwise the keys that the previous pass wrote.
#if FIRST_PASS
#define INPUT T
static inline KEY key_at(__global const INPUT* in, const long i) { return key_of(in[i]); }
#else
#define INPUT KEY
static inline KEY key_at(__global const INPUT* in, const long i) { return in[i]; }
#endif

// The buffer, 0 or 1, that contains the keys and indices of a row before the pass. The first pass writes buffer 0.
static inline int buffer_before(const long row, PARAMETERS) {
    if (FIRST_PASS) return 1;
    return current_buffer_base[current_buffer_offset + shift / DIGIT_BITS * (long)get_global_size(1) + row];
}

// Sets the buffer in which the next pass finds the row.
static inline void set_buffer_after(const int buffer, const long row, PARAMETERS) {
    current_buffer_base[current_buffer_offset + (shift / DIGIT_BITS + 1) * (long)get_global_size(1) + row] = buffer;
}

// The row that the pass reads.
static inline __global const INPUT* input_row(const long row, PARAMETERS) {
#if FIRST_PASS
    return x_base + x_offset + row * sizes.n;
#else
    return (buffer_before(row, ARGUMENTS) ? keys1_base + keys1_offset : keys0_base + keys0_offset) + row * sizes.n;
#endif
}

// The operands of a row in one pass. It writes keys and indices to the other buffer; the last pass writes the result.
struct Row {
    int buffer;
    __global const uint* indices;  // those of the input
    __global KEY* to_keys;
    __global uint* to_indices;
    __global const T* x;
    __global T* out_values;
    __global long* out_indices;
    long k;
};
static inline struct Row operands_of_row(const long row, RADIX_PLACE_PARAMETERS) {
    __global KEY *keys0 = keys0_base + keys0_offset + row * sizes.n, *keys1 = keys1_base + keys1_offset + row * sizes.n;
    __global uint *indices0 = indices0_base + indices0_offset + row * sizes.n,
                  *indices1 = indices1_base + indices1_offset + row * sizes.n;
    struct Row operands;
    operands.buffer = buffer_before(row, ARGUMENTS);
    operands.indices = operands.buffer ? indices1 : indices0;
    operands.to_keys = operands.buffer ? keys0 : keys1;
    operands.to_indices = operands.buffer ? indices0 : indices1;
    operands.x = x_base + x_offset + row * sizes.n;
    operands.out_values = out_values_base + out_values_offset + row * sizes.k;
    operands.out_indices = out_indices_base + out_indices_offset + row * sizes.k;
    operands.k = sizes.k;
    return operands;
}

// Writes element i of the input, with its key, to position `to`.
static inline void place(const struct Row* row, const long i, const KEY key, const uint to) {
    const uint index = FIRST_PASS ? (uint)i : row->indices[i];
#if LAST_PASS
    if ((long)to < row->k) {
        row->out_values[to] = row->x[index];
        row->out_indices[to] = (long)index;
    }
#else
    row->to_keys[to] = key;
    row->to_indices[to] = index;
#endif
}

#ifdef SIMD

#include "noinline.clh"

NOINLINE void count_chunk(__global const INPUT* restrict in, __global uint* counts, const long from, const long to,
                          const int shift) {
    uint own[DIGITS];
    for (int d = 0; d < DIGITS; ++d) own[d] = 0;
    for (long i = from; i < to; ++i) own[digit_of(key_at(in, i), shift)] += 1;
    for (int d = 0; d < DIGITS; ++d) counts[d] = own[d];
}

__kernel void radix_count(PARAMETERS) {
    const long row = get_global_id(1), chunk = get_global_id(0);
    count_chunk(input_row(row, ARGUMENTS), counts_base + counts_offset + (row * sizes.chunks + chunk) * DIGITS,
                chunk * sizes.each, min(sizes.n, (chunk + 1) * sizes.each), shift);
}

// Computes the position of the chunk's first element of each digit in the sorted row. Returns the number of elements
// with the most frequent digit.
static inline uint first_positions(__global const uint* counts, const long chunk, const long chunks, uint* positions) {
    uint smaller = 0, max_count = 0;
    for (int d = 0; d < DIGITS; ++d) {
        uint before = 0, total = 0;
        for (long c = 0; c < chunks; ++c) {
            const uint digit_count = counts[c * DIGITS + d];
            before += c < chunk ? digit_count : 0;
            total += digit_count;
        }
        positions[d] = smaller + before;
        smaller += total;
        max_count = max(max_count, total);
    }
    return max_count;
}

__kernel void radix_place(RADIX_PLACE_PARAMETERS) {
    const long row_number = get_global_id(1), chunk = get_global_id(0);
    __global const INPUT* in = input_row(row_number, ARGUMENTS);
    const struct Row row = operands_of_row(row_number, RADIX_PLACE_ARGUMENTS);
    uint next[DIGITS];  // the position of the next element of each digit
    const uint max_count =
        first_positions(counts_base + counts_offset + row_number * sizes.chunks * DIGITS, chunk, sizes.chunks, next);
    const int single_digit = !FIRST_PASS && !LAST_PASS && max_count == (uint)sizes.n;
    if (!LAST_PASS && chunk == 0) set_buffer_after(single_digit ? row.buffer : !row.buffer, row_number, ARGUMENTS);
    if (single_digit) return;
    const long end = min(sizes.n, (chunk + 1) * sizes.each);
    for (long i = chunk * sizes.each; i < end; ++i) {
        const KEY key = key_at(in, i);
        const uint to = next[digit_of(key, shift)]++;
        place(&row, i, key, to);
    }
}

#else

__kernel void radix_count(PARAMETERS, __local uint* shared) {
    const long row = get_global_id(1), chunk = get_group_id(0), lane = get_local_id(0);
    __global const INPUT* in = input_row(row, ARGUMENTS);
    if (lane < DIGITS) shared[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    // The order is irrelevant for counting.
    const long end = min(sizes.n, (chunk + 1) * sizes.each);
    for (long i = chunk * sizes.each + lane; i < end; i += get_local_size(0))
        atomic_inc(&shared[digit_of(key_at(in, i), shift)]);
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

// True if all elements of a row have the same digit: none of the offsets of the digits is between 0 and n. Uniform for
// the whole group.
static inline int has_single_digit(__global const uint* offsets, const struct Sort* sizes) {
    int single_digit = 1;
    for (int d = 1; d < DIGITS; ++d)
        single_digit &= offsets[d * sizes->chunks] == 0 || offsets[d * sizes->chunks] == (uint)sizes->n;
    return single_digit;
}

// Replaces the counts own[digit][lane] by their exclusive prefix sums: the number of elements of the chunk that come
// before those of the work-item with this digit.
static inline void sum_digits_before(__local uint* own, __local uint* sums) {
    const int lane = get_local_id(0);
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
}

__kernel void radix_place(RADIX_PLACE_PARAMETERS, __local uint* own, __local uint* sums) {
    const long row_number = get_global_id(1), chunk = get_group_id(0);
    const int lane = get_local_id(0), lanes = get_local_size(0);
    __global const INPUT* in = input_row(row_number, ARGUMENTS);
    const struct Row row = operands_of_row(row_number, RADIX_PLACE_ARGUMENTS);
    __global const uint* offsets = counts_base + counts_offset + row_number * DIGITS * sizes.chunks;
    const int single_digit = !FIRST_PASS && !LAST_PASS && has_single_digit(offsets, &sizes);
    if (!LAST_PASS && chunk == 0 && lane == 0)
        set_buffer_after(single_digit ? row.buffer : !row.buffer, row_number, ARGUMENTS);
    if (single_digit) return;
    for (int d = 0; d < DIGITS; ++d) own[d * lanes + lane] = 0;
    const long first = min(sizes.n, chunk * sizes.each + (long)lane * PER_ITEM), end = min(sizes.n, first + PER_ITEM);
    for (long i = first; i < end; ++i) own[digit_of(key_at(in, i), shift) * lanes + lane] += 1;
    sum_digits_before(own, sums);
    // Position of the first element of each digit, minus the number of elements of the chunk that come before it.
    if (lane < DIGITS) sums[lane] = offsets[lane * sizes.chunks + chunk] - own[lane * lanes];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long i = first; i < end; ++i) {
        const KEY key = key_at(in, i);
        const int digit = digit_of(key, shift);
        const uint to = sums[digit] + own[digit * lanes + lane]++;
        place(&row, i, key, to);
    }
}

#endif
