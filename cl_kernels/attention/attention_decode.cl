// Attention of few queries with a KV cache whose length is in device memory, as in text generation (decoding):
// y = softmax(scale q k) v over the keys that a query attends to; others are not read. simd style.
//
// A work-item processes the keys of its split in blocks of one vector: partial products of a query with each key are
// summed by rows of vectors, so that the scores of a block are one vector; then the weighted values are added. global
// (splits, pieces of ROWS rows x heads, B). Macros: attention_decode.clh and
//
//   REAL, VW     type and vector width (vectors.clh)
//   STORED_AS    type of keys and values (storage.clh)
#define GROUP 1
#include "vectors.clh"
#undef D_WIDTH
#define D_WIDTH VW
#include "math.clh"
#include "noinline.clh"
#include "stored_vectors.clh"
#include "vector_rows.clh"
#include "attention_decode.clh"

#define D_IN_VECTORS (D / VW * VW)
#define E_IN_VECTORS (E / VW * VW)
// Elements of private rows, padded to whole vectors.
#define D_PADDED ((D + VW - 1) / VW * VW)
#define E_PADDED ((E + VW - 1) / VW * VW)

static inline void load_queries(REAL* query, const REAL scale, __global const REAL* q, const struct Decode s,
                                const struct Piece piece) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        __global const REAL* from = q + query_offset(s, piece, piece.first + min(r, piece.count - 1));
        for (int d = 0; d < D; ++d) query[r * D_PADDED + d] = scale * from[d];
    }
}

// parts[row VW + j]: a vector of partial products of a query with a key.
static inline void multiply_key(REAL* parts, const int j, const REAL* query, __global const STORED* key) {
    VEC part[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) part[r] = (VEC)(0);
#pragma unroll
    for (int d = 0; d < D_IN_VECTORS; d += VW) {
        const VEC x = STORED_VLOAD(key + d);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) part[r] = fma(VLOAD(query + r * D_PADDED + d), x, part[r]);
    }
#if D % VW
    REAL rest[ROWS];
    for (int r = 0; r < ROWS; ++r) rest[r] = 0;
    for (int d = D_IN_VECTORS; d < D; ++d) {
        const REAL x = LOADED(key[d]);
        for (int r = 0; r < ROWS; ++r) rest[r] = fma(query[r * D_PADDED + d], x, rest[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) part[r].s0 += rest[r];
#endif
#pragma unroll
    for (int r = 0; r < ROWS; ++r) VSTORE(part[r], parts + (r * VW + j) * VW);
}

// Adds the partial products, masks the scores of keys from key `at`, updates the running maximum and sum of
// exponentials of each row, scales the sums of values to a new maximum, and computes the weights of the block.
static inline void update_softmax(REAL* weights, const REAL* parts, REAL* max_score, VEC* total, REAL* sums,
                                  const int at, const struct Decode s, const struct Piece piece) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = piece.first + min(r, piece.count - 1);
        const LANES lane = LANE_NUMBERS + (LANES)(at);
        const LANES attended = (lane >= (LANES)(decode_low(s, piece.length, row))) &
                               (lane < (LANES)(min(piece.end, decode_high(s, piece.length, row))));
        const VEC score = attended ? rows_sum(parts + r * VW * VW) : (VEC)(DECODE_MINUS_INFINITY);
        const REAL new_max = max(max_score[r], vector_max(score)),
                   base = new_max == DECODE_MINUS_INFINITY ? (REAL)0 : new_max;
        if (new_max > max_score[r]) {
            const REAL alpha = d_exp(max_score[r] - base);
            total[r] *= alpha;
            for (int e = 0; e < E_PADDED; e += VW)
                VSTORE(VLOAD(sums + r * E_PADDED + e) * alpha, sums + r * E_PADDED + e);
            max_score[r] = new_max;
        }
        const VEC weight = d_exp(score - base);
        total[r] += weight;
        VSTORE(weight, weights + r * VW);
    }
}

// sums[row][e] += sum over j < n of the row's weight of key j times element e of its value.
static inline void add_values(REAL* sums, const REAL* weights, __global const STORED* const value[VW], const int n) {
    for (int e = 0; e < E_IN_VECTORS; e += VW) {
        VEC sum[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sum[r] = VLOAD(sums + r * E_PADDED + e);
#pragma unroll
        for (int j = 0; j < VW; ++j) {
            if (j == n) break;  // a constant bound, so that the loop is unrolled
            const VEC x = STORED_VLOAD(value[j] + e);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sum[r] = fma((VEC)(weights[r * VW + j]), x, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) VSTORE(sum[r], sums + r * E_PADDED + e);
    }
#if E % VW
    for (int j = 0; j < n; ++j)
        for (int e = E_IN_VECTORS; e < E; ++e) {
            const REAL x = LOADED(value[j][e]);
            for (int r = 0; r < ROWS; ++r) sums[r * E_PADDED + e] = fma(weights[r * VW + j], x, sums[r * E_PADDED + e]);
        }
#endif
}

static inline void store_results(__global REAL* y, const REAL* sums, const REAL* max_score, const VEC* total,
                                 const int split, const struct Decode s, const struct Piece piece) {
    REAL totals[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) totals[r] = vector_sum(total[r]);
    for (int r = 0; r < piece.count; ++r) {
#if SPLIT_KEYS
        __global REAL* to = y + partial_offset(s, piece, split, (long)get_global_size(2), piece.first + r);
        for (int e = 0; e < E; ++e) to[e] = sums[r * E_PADDED + e];
        to[E] = max_score[r];
        to[E + 1] = totals[r];
#else
        __global REAL* to = y + result_offset(s, piece, piece.first + r);
        const REAL factor = totals[r] == 0 ? (REAL)0 : 1 / totals[r];
        for (int e = 0; e < E; ++e) to[e] = factor * sums[r * E_PADDED + e];
#endif
    }
}

NOINLINE void attention_decode_part(const int split, const int number, const long b, DECODE_OPERANDS) {
    const struct Piece piece = decode_piece(s, lengths, b, number, split, VW);
    REAL query[ROWS * D_PADDED], sums[ROWS * E_PADDED], max_score[ROWS];
    VEC total[ROWS];
    for (int i = 0; i < ROWS * E_PADDED; ++i) sums[i] = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) max_score[r] = DECODE_MINUS_INFINITY, total[r] = (VEC)(0);
    load_queries(query, scale, q, s, piece);
    for (int at = piece.begin; at < piece.end; at += VW) {
        const int n = min(VW, piece.end - at);
        REAL parts[ROWS * VW * VW], weights[ROWS * VW];
        // Keys past the end are not read.
        for (int j = 0; j < VW; ++j) multiply_key(parts, j, query, k + key_offset(s, piece, at + min(j, n - 1), table));
        update_softmax(weights, parts, max_score, total, sums, at, s, piece);
        __global const STORED* value[VW];
        for (int j = 0; j < n; ++j) value[j] = v + value_offset(s, piece, at + j, table);
        add_values(sums, weights, value, n);
    }
    store_results(y, sums, max_score, total, split, s, piece);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_decode(DECODE_OPERANDS) {
    attention_decode_part((int)get_global_id(0), (int)get_global_id(1), get_global_id(2), s, scale, q + q_offset, 0,
                          k + k_offset, 0, v + v_offset, 0, lengths + lengths_offset, 0, table + table_offset, 0,
                          y + y_offset, 0);
}
