// KV cache kernels that complement attention_decode: combination of the splits of the keys (attention_combine), and
// appending of new keys and values to the cache (attention_append).
//
//   REAL       type of the arithmetic (math.clh)
//   E          elements of a value
//   APPEND     1: attention_append, with D, PAGED and INDEX_TYPE as in attention_decode.clh, and OUTPUT_AS the type of
//              the cache (storage.clh); 0: attention_combine
#include "math.clh"
#if APPEND
#include "storage.clh"

// Writes the last `count` of the lengths[b] keys and values of each sample.
struct Append {
    long k_batch, k_head, k_row, v_batch, v_head, v_row;  // of the new keys and values
    long to_k_batch, to_k_head, to_k_row, to_v_batch, to_v_head, to_v_row, table_batch;
    int count, heads, keys, page, pages;
    int unused;  // avoids padding of the struct
};

// global (elements of a key and a value, rounded up; count * heads; B)
__kernel void attention_append(const struct Append s, __global const REAL* restrict k, const long k_offset,
                               __global const REAL* restrict v, const long v_offset, __global OUTPUT* restrict to_k,
                               const long to_k_offset, __global OUTPUT* restrict to_v, const long to_v_offset,
                               __global const INDEX_TYPE* restrict lengths, const long lengths_offset,
                               __global const INDEX_TYPE* restrict table, const long table_offset) {
    const int e = (int)get_global_id(0), t = (int)get_global_id(1) / s.heads;
    const long h = (long)get_global_id(1) % s.heads, b = get_global_id(2);
    const long j = (long)lengths[lengths_offset + b] - s.count + t;
    if (e >= D + E || j < 0 || j >= s.keys) return;
#if PAGED
    const long batch = table[table_offset + b * s.table_batch + j / s.page], row = j % s.page;
    if (batch < 0 || batch >= s.pages) return;
#else
    const long batch = b, row = j;
#endif
    if (e < D)
        to_k[to_k_offset + batch * s.to_k_batch + h * s.to_k_head + row * s.to_k_row + e] =
            ROUNDED(k[k_offset + b * s.k_batch + h * s.k_head + t * s.k_row + e]);
    else
        to_v[to_v_offset + batch * s.to_v_batch + h * s.to_v_head + row * s.to_v_row + e - D] =
            ROUNDED(v[v_offset + b * s.v_batch + h * s.v_head + t * s.v_row + e - D]);
}
#else

struct Combine {
    long rows;  // per split: B heads queries group
    int splits, queries, heads, group;
};

// global (E, rounded up; rows)
__kernel void attention_combine(const struct Combine s, __global const REAL* restrict partials,
                                const long partials_offset, __global REAL* restrict y, const long y_offset) {
    const int e = (int)get_global_id(0);
    const long at = get_global_id(1);
    if (e >= E) return;
    __global const REAL* from = partials + partials_offset + at * (E + 2);
    const long step = s.rows * (E + 2);
    REAL max_score = (REAL)-INFINITY;
    for (int i = 0; i < s.splits; ++i) max_score = max(max_score, from[i * step + E]);
    const REAL base = max_score == (REAL)-INFINITY ? (REAL)0 : max_score;
    REAL sum = 0, total = 0;
    for (int i = 0; i < s.splits; ++i) {
        const REAL alpha = d_exp(from[i * step + E] - base);
        sum = fma(alpha, from[i * step + e], sum);
        total = fma(alpha, from[i * step + E + 1], total);
    }
    const long rows = (long)s.queries * s.group, row = at % rows, h = at / rows % s.heads, b = at / rows / s.heads;
    y[y_offset + ((b * s.queries + row / s.group) * s.heads * s.group + h * s.group + row % s.group) * E + e] =
        total == 0 ? (REAL)0 : sum / total;
}
#endif
