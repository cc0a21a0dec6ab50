// Flash attention and its gradients in tiles of TILE rows and TILE keys (T. Dao, FlashAttention-2, 2023). simt style.
// With f_ij the dropout factors, and g the gradient of y,
//
//   w_ij = softmax over j of (scale q_i k_j + bias_ij), y_i = sum over j of f_ij w_ij v_j,
//   s_ij = w_ij (f_ij g_i v_j - sum over c of g_ic y_ic), q_gradient_i = scale sum over j of s_ij k_j,
//   k_gradient_j = scale sum over i of s_ij q_i, v_gradient_j = sum over i of f_ij w_ij g_i
//
// A work-group has SIDE * SIDE work-items, SIDE = TILE / 4. In a tile of scores each has 4 contiguous rows and every
// SIDE-th key; in a tile of results the same rows and every SIDE-th vector of 4 columns. Operands are staged in local
// memory: CHUNK columns at a time for products of rows, whole rows when they are weighted and summed. Rows in local
// memory are padded so that vectors read at the same time are in different banks.
//
//   attention_tiles       y and log_sums; global (tiles of rows, heads, B) groups
//   attention_tiles_rows  gradient of q; the same
//   attention_tiles_keys  gradients of k and v; global (tiles of keys, heads, B) groups
//   attention_backward_dot       inner[row] = sum over c of g_c y_c, needed by both; global (B rows of all heads)
//
// `shared` is local memory of STAGED_ELEMENTS + TILE TILE_ROW + TILE SIDE elements.
//
//   REAL     float or double
//   D, E     elements of a query and a key, of a value
//   TILE     16, 32 or 64
//   CHUNK    columns staged at a time, a multiple of 4
//   GROUPED_QUERIES  0: one query head per key head
//   LOG_SUMS 1: log_sums is written
#include "math.clh"
#include "attention.clh"

#define SIDE (TILE / 4)
#define ITEMS (SIDE * SIDE)
#define CHUNK_ROW (CHUNK + 4)
#define TILE_ROW (TILE + 4)
#define PADDED_ROW(width) (((width) + 3) / 4 * 4)
#define VECTORS_PER_ITEM(width) (((width) + 4 * SIDE - 1) / (4 * SIDE))  // vectors of 4 columns per work-item
#define MAX_WIDTH (D > E ? D : E)
#define MAX_VECTORS VECTORS_PER_ITEM(MAX_WIDTH)
#define STAGED_ELEMENTS (TILE * (2 * CHUNK_ROW > PADDED_ROW(MAX_WIDTH) ? 2 * CHUNK_ROW : PADDED_ROW(MAX_WIDTH)))
#define FIXED_GROUP_SIZE __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#define INLINE static inline __attribute__((always_inline))
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define REAL4 PASTE(REAL, 4)
#define VECTOR_AT(from, at) (*(__local const REAL4*)((from) + (at)))

// ---- location of work

// A work-item's part of its group's tile: rows [first, first + count) of key head h of sample b, and TILE keys from
// keys_at. Of the scores it has rows 4 ty + a and keys tx + SIDE c, a, c < 4.
struct Tile {
    int item, tx, ty;
    int first, count, keys_at;
    long h, b;
};

static inline struct Tile own_tile(const int first, const int count, const int keys_at) {
    struct Tile tile;
    tile.item = (int)get_local_id(0);
    tile.tx = tile.item % SIDE;
    tile.ty = tile.item / SIDE;
    tile.first = first;
    tile.count = count;
    tile.keys_at = keys_at;
    tile.h = get_group_id(1);
    tile.b = get_group_id(2);
    return tile;
}

// The work-item's part of a tile of weights: its score a, c is element a TILE_ROW + SIDE c from here.
static inline __local REAL* own_weights(__local REAL* weights, const struct Tile tile) {
    return weights + 4 * tile.ty * TILE_ROW + tile.tx;
}

// Position and head of a query.
struct Query {
    int position, head;
};

// The query in row `number` of a tile.
static inline struct Query query_at(const int number, const struct Attention s, const struct Tile tile) {
    const int row = tile.first + number;
    struct Query query;
#if GROUPED_QUERIES
    query.position = row / s.group;
    query.head = (int)tile.h * s.group + (row - query.position * s.group);
#else
    query.position = row;
    query.head = (int)tile.h;
#endif
    return query;
}

// Index of a query in log_sums and inner; its row in y.
static inline long query_index(const struct Query query, const struct Attention s, const struct Tile tile) {
    return (tile.b * s.heads * s.group + query.head) * s.queries + query.position;
}
static inline long result_row(const struct Query query, const struct Attention s, const struct Tile tile) {
    return (tile.b * s.queries + query.position) * s.heads * s.group + query.head;
}

// Keys [begin, end) that the rows of a tile attend to, begin rounded down to a tile.
static inline int begin_of_keys(const struct Attention s, const struct Tile tile) {
    return (int)(max(0l, tile.first / s.group + (long)s.low) / TILE * TILE);
}
static inline int end_of_keys(const struct Attention s, const struct Tile tile) {
    return (int)min((long)s.keys, (tile.first + tile.count - 1) / s.group + (long)s.high + 1);
}

// ---- staging

// Matrices of all heads and samples, with the distances of their samples, heads and rows.
struct Operand {
    __global const REAL* data;
    long batch, head, row;
};

// Column c of the tile's row r, or key r, in an operand of `width` columns; 0 past the ends.
INLINE REAL query_element(const struct Operand from, const int r, const int c, const int width,
                          const struct Attention s, const struct Tile tile) {
    if (r >= tile.count || c >= width) return 0;
    const struct Query query = query_at(r, s, tile);
    return from.data[tile.b * from.batch + query.head * from.head + query.position * from.row + c];
}
INLINE REAL key_element(const struct Operand from, const int r, const int c, const int width, const struct Attention s,
                        const struct Tile tile) {
    if (tile.keys_at + r >= s.keys || c >= width) return 0;
    return from.data[tile.b * from.batch + tile.h * from.head + (tile.keys_at + r) * from.row + c];
}

// Copies CHUNK columns from `at` of all rows of the tile, or keys, to rows of CHUNK_ROW.
INLINE void stage_query_columns(__local REAL* to, const struct Operand from, const int at, const int width,
                                const struct Attention s, const struct Tile tile) {
    for (int e = tile.item; e < TILE * CHUNK; e += ITEMS) {
        const int r = e / CHUNK, c = e - r * CHUNK;
        to[r * CHUNK_ROW + c] = query_element(from, r, at + c, width, s, tile);
    }
}
INLINE void stage_key_columns(__local REAL* to, const struct Operand from, const int at, const int width,
                              const struct Attention s, const struct Tile tile) {
    for (int e = tile.item; e < TILE * CHUNK; e += ITEMS) {
        const int r = e / CHUNK, c = e - r * CHUNK;
        to[r * CHUNK_ROW + c] = key_element(from, r, at + c, width, s, tile);
    }
}

// Copies all columns of all rows of the tile, or keys.
INLINE void stage_queries(__local REAL* to, const struct Operand from, const int width, const struct Attention s,
                          const struct Tile tile) {
    for (int e = tile.item; e < TILE * PADDED_ROW(width); e += ITEMS) {
        const int r = e / PADDED_ROW(width), c = e - r * PADDED_ROW(width);
        to[e] = query_element(from, r, c, width, s, tile);
    }
}
INLINE void stage_keys(__local REAL* to, const struct Operand from, const int width, const struct Attention s,
                       const struct Tile tile) {
    for (int e = tile.item; e < TILE * PADDED_ROW(width); e += ITEMS) {
        const int r = e / PADDED_ROW(width), c = e - r * PADDED_ROW(width);
        to[e] = key_element(from, r, c, width, s, tile);
    }
}

// ---- products of rows

// score[a][c] += sum over a chunk of left[4 ty + a][.] right[tx + SIDE c][.]. Loops over local memory are not unrolled:
// on AMD GPUs the additional registers would halve the number of resident groups.
INLINE void multiply_chunk(REAL score[4][4], __local const REAL* left, __local const REAL* right,
                           const struct Tile tile) {
#pragma unroll 1
    for (int l = 0; l < CHUNK; l += 4) {
        REAL4 x[4], z[4];
#pragma unroll
        for (int a = 0; a < 4; ++a) x[a] = VECTOR_AT(left + 4 * tile.ty * CHUNK_ROW + l, a * CHUNK_ROW);
#pragma unroll
        for (int c = 0; c < 4; ++c) z[c] = VECTOR_AT(right + tile.tx * CHUNK_ROW + l, c * SIDE * CHUNK_ROW);
#pragma unroll
        for (int a = 0; a < 4; ++a) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                score[a][c] += x[a].x * z[c].x;
                score[a][c] += x[a].y * z[c].y;
                score[a][c] += x[a].z * z[c].z;
                score[a][c] += x[a].w * z[c].w;
            }
        }
    }
}

// score[a][c] = sum over `width` columns of queries[4 ty + a][.] keys[tx + SIDE c][.].
INLINE void multiply(REAL score[4][4], const struct Operand queries, const struct Operand keys, const int width,
                     __local REAL* staged, const struct Attention s, const struct Tile tile) {
    __local REAL *left = staged, *right = staged + TILE * CHUNK_ROW;
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int c = 0; c < 4; ++c) score[a][c] = 0;
#pragma unroll 1
    for (int at = 0; at < width; at += CHUNK) {
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_query_columns(left, queries, at, width, s, tile);
        stage_key_columns(right, keys, at, width, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_chunk(score, left, right, tile);
    }
}

// ---- mask and dropout

// True if row `number` of a tile, at `position`, attends to key j.
static inline bool attends(const int number, const int position, const int j, const struct Attention s,
                           const struct Tile tile) {
    return number < tile.count && j < s.keys && j - position >= s.low && j - position <= s.high;
}

// Applies scale, mask and slopes to the scores; minus infinity for masked keys. The bias is computed in a loop, into
// the tile of weights: evaluating 16 conditions at once takes too many registers.
INLINE void apply_mask(REAL score[4][4], const REAL scale, __global const MASK_TYPE* mask, __global const REAL* slopes,
                       __local REAL* weights, const struct Attention s, const struct Tile tile) {
#if MASK != MASK_NONE || ALIBI
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = tile.item; e < TILE * TILE; e += ITEMS) {
        const int r = e / TILE, c = e - r * TILE, j = tile.keys_at + c;
        const struct Query query = query_at(min(r, tile.count - 1), s, tile);
        REAL bias = MINUS_INFINITY;
        if (attends(r, query.position, j, s, tile))
            bias = attention_bias(s, mask, slopes, tile.b, query.head, query.position, j);
        weights[r * TILE_ROW + c] = bias;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local const REAL* own = own_weights(weights, tile);
#pragma unroll
    for (int a = 0; a < 4; ++a) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL product = score[a][c], bias = own[a * TILE_ROW + SIDE * c];
            score[a][c] = bias == MINUS_INFINITY ? bias : scale * product + bias;
        }
    }
#else
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const int number = 4 * tile.ty + a;
        const struct Query query = query_at(min(number, tile.count - 1), s, tile);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const int j = tile.keys_at + tile.tx + SIDE * c;
            const REAL product = score[a][c];
            score[a][c] = attends(number, query.position, j, s, tile) ? scale * product : MINUS_INFINITY;
        }
    }
#endif
}

#if DROPOUT
// Copies the two numbers of the seed. From local memory, its round keys are not scalars, which compilers would compute
// all at once.
static inline void load_seed(__local long* seed, __global const long* random) {
    if (get_local_id(0) < 2) seed[get_local_id(0)] = random[(long)get_local_id(0)];
}

// Dropout factors, 1 / (1 - p) or 0, in the tile of weights. They are computed in a loop, since all at once take too
// many registers.
INLINE void compute_dropout_factors(__local REAL* weights, __local const long* seed, const long random_first,
                                    const long random_index, const REAL dropout, const struct Attention s,
                                    const struct Tile tile) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = tile.item; e < TILE * TILE; e += ITEMS) {
        const int r = e / TILE, c = e - r * TILE;
        const struct Query query = query_at(min(r, tile.count - 1), s, tile);
        const long number = query_index(query, s, tile) * s.keys + tile.keys_at + c + random_index;
        weights[r * TILE_ROW + c] =
            random_bernoulli((ulong)(seed[1] + random_first), (ulong)seed[0], number, dropout, (REAL)0, (REAL)1) == 0
                ? 1 / (1 - dropout)
                : (REAL)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

// The dropout factor of a score, from the tile of weights.
static inline REAL dropout_factor(__local const REAL* weight) {
#if DROPOUT
    return *weight;
#else
    return 1;
#endif
}

// ---- weighted sums of rows

// sums[c][a] += weight a times vector tx + SIDE c of a staged row of `width` columns.
INLINE void add_weighted_row(REAL4 sums[MAX_VECTORS][4], const REAL4 weight, __local const REAL* row, const int width,
                             const struct Tile tile) {
#pragma unroll
    for (int c = 0; c < MAX_VECTORS; ++c) {
        const int at = 4 * (tile.tx + SIDE * c);
        if (c < VECTORS_PER_ITEM(width) && at < PADDED_ROW(width)) {
            const REAL4 z = VECTOR_AT(row + 4 * tile.tx, 4 * SIDE * c);
            sums[c][0] += weight.x * z;
            sums[c][1] += weight.y * z;
            sums[c][2] += weight.z * z;
            sums[c][3] += weight.w * z;
        }
    }
}

// sums[c][a] += sum over l of weights[4 ty + a][l] staged[l][tx + SIDE c].
INLINE void add_staged_keys(REAL4 sums[MAX_VECTORS][4], __local const REAL* weights, __local const REAL* staged,
                            const int width, const struct Tile tile) {
#pragma unroll 1
    for (int l = 0; l < TILE; l += 4) {
        REAL4 x[4];
#pragma unroll
        for (int a = 0; a < 4; ++a) x[a] = VECTOR_AT(weights + 4 * tile.ty * TILE_ROW + l, a * TILE_ROW);
        __local const REAL* row = staged + l * PADDED_ROW(width);
        add_weighted_row(sums, (REAL4)(x[0].x, x[1].x, x[2].x, x[3].x), row, width, tile);
        add_weighted_row(sums, (REAL4)(x[0].y, x[1].y, x[2].y, x[3].y), row + PADDED_ROW(width), width, tile);
        add_weighted_row(sums, (REAL4)(x[0].z, x[1].z, x[2].z, x[3].z), row + 2 * PADDED_ROW(width), width, tile);
        add_weighted_row(sums, (REAL4)(x[0].w, x[1].w, x[2].w, x[3].w), row + 3 * PADDED_ROW(width), width, tile);
    }
}

// sums[c][a] += sum over l of weights[l][4 ty + a] staged[l][tx + SIDE c].
INLINE void add_staged_queries(REAL4 sums[MAX_VECTORS][4], __local const REAL* weights, __local const REAL* staged,
                               const int width, const struct Tile tile) {
#pragma unroll 1
    for (int l = 0; l < TILE; ++l)
        add_weighted_row(sums, VECTOR_AT(weights, l * TILE_ROW + 4 * tile.ty), staged + l * PADDED_ROW(width), width,
                         tile);
}

INLINE void clear_sums(REAL4 sums[MAX_VECTORS][4]) {
#pragma unroll
    for (int c = 0; c < MAX_VECTORS; ++c)
#pragma unroll
        for (int a = 0; a < 4; ++a) sums[c][a] = 0;
}

// Stores the work-item's vector c to a row of results of `width` columns.
INLINE void store_columns(__global REAL* row, const REAL4 value, const int c, const int width, const struct Tile tile) {
    const REAL x = value.x, y = value.y, z = value.z, w = value.w;
    __global REAL* to = row + 4 * tile.tx + 4 * SIDE * c;
    const int room = width - 4 * (tile.tx + SIDE * c);
    if (room > 0) to[0] = x;
    if (room > 1) to[1] = y;
    if (room > 2) to[2] = z;
    if (room > 3) to[3] = w;
}

// ---- forward

// Updates the running maximum and the running sum of exponentials of each row, whose partial maxima are in `parts`,
// scales the sums of values to the new maximum, and stores the tile's weights times their dropout factors.
INLINE void update_softmax(const REAL score[4][4], REAL max_score[4], REAL total[4], REAL4 sums[MAX_VECTORS][4],
                           __local REAL* own, __local const REAL* parts, const struct Tile tile) {
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const REAL previous_max = max_score[a];
        for (int c = 0; c < SIDE; c += 4) {
            const REAL4 part = VECTOR_AT(parts, (4 * tile.ty + a) * SIDE + c);
            max_score[a] = max(max_score[a], max(max(part.x, part.y), max(part.z, part.w)));
        }
        const REAL base = max_score[a] == MINUS_INFINITY ? (REAL)0 : max_score[a];
        const REAL alpha = d_exp(previous_max - base);
        total[a] *= alpha;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL weight = d_exp(score[a][c] - base);
            total[a] += weight;
            __local REAL* to = own + a * TILE_ROW + SIDE * c;
            *to = dropout_factor(to) * weight;
        }
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) sums[c][a] *= alpha;
    }
}

// Sum of the partial sums of a row.
static inline REAL sum_of_parts(__local const REAL* parts) {
    REAL sum = 0;
    for (int c = 0; c < SIDE; c += 4) {
        const REAL4 part = VECTOR_AT(parts, c);
        sum += part.x + part.y + (part.z + part.w);
    }
    return sum;
}

__kernel FIXED_GROUP_SIZE void attention_tiles(ATTENTION_OPERANDS, __global REAL* restrict y, const long y_offset,
                                               __global REAL* restrict log_sums, const long log_sums_offset,
                                               __local REAL4* restrict shared) {
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS;
    __local REAL* parts = weights + TILE * TILE_ROW;  // of reductions of rows, SIDE for each
#if DROPOUT
    __local long seed[2];
    load_seed(seed, random + random_offset);
#endif
    const struct Operand queries = {q + q_offset, s.q_batch, s.q_head, s.q_row};
    const struct Operand keys = {k + k_offset, s.k_batch, s.k_head, s.k_row};
    const struct Operand values = {v + v_offset, s.v_batch, s.v_head, s.v_row};
    const int first = (int)get_group_id(0) * TILE;
    struct Tile tile = own_tile(first, min(TILE, s.queries * s.group - first), 0);
    __local REAL* own = own_weights(weights, tile);
    REAL4 sums[MAX_VECTORS][4];
    REAL max_score[4], total[4], score[4][4];
    clear_sums(sums);
#pragma unroll
    for (int a = 0; a < 4; ++a) max_score[a] = MINUS_INFINITY, total[a] = 0;
    const int end = end_of_keys(s, tile);
    for (tile.keys_at = begin_of_keys(s, tile); tile.keys_at < end; tile.keys_at += TILE) {
        multiply(score, queries, keys, D, staged, s, tile);
        apply_mask(score, scale, mask + mask_offset, slopes + slopes_offset, weights, s, tile);
#pragma unroll
        for (int a = 0; a < 4; ++a)
            parts[(4 * tile.ty + a) * SIDE + tile.tx] =
                max(max(score[a][0], score[a][1]), max(score[a][2], score[a][3]));
        barrier(CLK_LOCAL_MEM_FENCE);
#if DROPOUT
        compute_dropout_factors(weights, seed, random_first, random_index, dropout, s, tile);
#endif
        update_softmax(score, max_score, total, sums, own, parts, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the staged keys are no longer read
        stage_keys(staged, values, E, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_keys(sums, weights, staged, E, tile);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) parts[(4 * tile.ty + a) * SIDE + tile.tx] = total[a];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (4 * tile.ty + a >= tile.count) continue;
        const REAL sum_of_weights = sum_of_parts(parts + (4 * tile.ty + a) * SIDE);
        const struct Query query = query_at(4 * tile.ty + a, s, tile);
        __global REAL* to = y + y_offset + result_row(query, s, tile) * E;
        const REAL factor = sum_of_weights == 0 ? (REAL)0 : 1 / sum_of_weights;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) store_columns(to, factor * sums[c][a], c, E, tile);
#if LOG_SUMS
        if (tile.tx == 0)
            log_sums[log_sums_offset + query_index(query, s, tile)] =
                max_score[a] == MINUS_INFINITY ? (REAL)INFINITY : max_score[a] + d_log(sum_of_weights);
#endif
    }
}

// ---- gradients

#define GRADIENT_OPERANDS                                                                                    \
    ATTENTION_OPERANDS, __global const REAL *restrict inner, const long inner_offset,                        \
        __global const REAL *restrict log_sums, const long log_sums_offset, __global const REAL *restrict g, \
        const long g_offset, const long g_batch, const long g_head, const long g_row

// From masked scores and dropout factors, and products g_i v_j: weight = f_ij w_ij and score = s_ij. `inner` and
// `log_sums` begin at the first query.
INLINE void compute_score_gradients(REAL weight[4][4], REAL score[4][4], __global const REAL* inner,
                                    __global const REAL* log_sums, __local const REAL* own, const struct Attention s,
                                    const struct Tile tile) {
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const long at = query_index(query_at(min(4 * tile.ty + a, tile.count - 1), s, tile), s, tile);
        const REAL log_sum = log_sums[at], row_dot = inner[at];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL probability = d_exp(weight[a][c] - log_sum);
            const REAL factor = dropout_factor(own + a * TILE_ROW + SIDE * c);
            score[a][c] = probability * (factor * score[a][c] - row_dot);
            weight[a][c] = factor * probability;
        }
    }
}

__kernel FIXED_GROUP_SIZE void attention_tiles_rows(GRADIENT_OPERANDS, __global REAL* restrict q_gradient,
                                                    const long q_gradient_offset, __local REAL4* restrict shared) {
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS;
#if DROPOUT
    __local long seed[2];
    load_seed(seed, random + random_offset);
#endif
    const struct Operand queries = {q + q_offset, s.q_batch, s.q_head, s.q_row};
    const struct Operand keys = {k + k_offset, s.k_batch, s.k_head, s.k_row};
    const struct Operand values = {v + v_offset, s.v_batch, s.v_head, s.v_row};
    const struct Operand gradients = {g + g_offset, g_batch, g_head, g_row};
    const int first = (int)get_group_id(0) * TILE;
    struct Tile tile = own_tile(first, min(TILE, s.queries * s.group - first), 0);
    __local REAL* own = own_weights(weights, tile);
    REAL4 sums[MAX_VECTORS][4];
    REAL weight[4][4], score[4][4];
    clear_sums(sums);
    const int end = end_of_keys(s, tile);
    for (tile.keys_at = begin_of_keys(s, tile); tile.keys_at < end; tile.keys_at += TILE) {
        multiply(weight, queries, keys, D, staged, s, tile);
        multiply(score, gradients, values, E, staged, s, tile);
        apply_mask(weight, scale, mask + mask_offset, slopes + slopes_offset, weights, s, tile);
#if DROPOUT
        compute_dropout_factors(weights, seed, random_first, random_index, dropout, s, tile);
#endif
        compute_score_gradients(weight, score, inner + inner_offset, log_sums + log_sums_offset, own, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the previous contents of the tile of weights are no longer read
#pragma unroll
        for (int a = 0; a < 4; ++a)
#pragma unroll
            for (int c = 0; c < 4; ++c) own[a * TILE_ROW + SIDE * c] = score[a][c];
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_keys(staged, keys, D, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_keys(sums, weights, staged, D, tile);
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (4 * tile.ty + a >= tile.count) continue;
        const struct Query query = query_at(4 * tile.ty + a, s, tile);
        __global REAL* to = q_gradient + q_gradient_offset + result_row(query, s, tile) * D;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) store_columns(to, scale * sums[c][a], c, D, tile);
    }
}

__kernel FIXED_GROUP_SIZE void attention_tiles_keys(GRADIENT_OPERANDS, __global REAL* restrict k_gradient,
                                                    const long k_gradient_offset, __global REAL* restrict v_gradient,
                                                    const long v_gradient_offset, __local REAL4* restrict shared) {
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS;
#if DROPOUT
    __local long seed[2];
    load_seed(seed, random + random_offset);
#endif
    const struct Operand queries = {q + q_offset, s.q_batch, s.q_head, s.q_row};
    const struct Operand keys = {k + k_offset, s.k_batch, s.k_head, s.k_row};
    const struct Operand values = {v + v_offset, s.v_batch, s.v_head, s.v_row};
    const struct Operand gradients = {g + g_offset, g_batch, g_head, g_row};
    const int rows = s.queries * s.group;
    struct Tile tile = own_tile(0, 0, (int)get_group_id(0) * TILE);
    __local REAL* own = own_weights(weights, tile);
    REAL4 k_sums[MAX_VECTORS][4], v_sums[MAX_VECTORS][4];
    REAL weight[4][4], score[4][4];
    clear_sums(k_sums);
    clear_sums(v_sums);
    // Rows that attend to a key of this tile.
    const int begin = (int)min((long)rows, max(0l, tile.keys_at - (long)s.high) * s.group / TILE * TILE),
              end = (int)clamp((tile.keys_at + TILE - (long)s.low) * s.group, 0l, (long)rows);
    for (tile.first = begin; tile.first < end; tile.first += TILE) {
        tile.count = min(TILE, rows - tile.first);
        multiply(weight, queries, keys, D, staged, s, tile);
        multiply(score, gradients, values, E, staged, s, tile);
        apply_mask(weight, scale, mask + mask_offset, slopes + slopes_offset, weights, s, tile);
#if DROPOUT
        compute_dropout_factors(weights, seed, random_first, random_index, dropout, s, tile);
#endif
        compute_score_gradients(weight, score, inner + inner_offset, log_sums + log_sums_offset, own, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the previous contents of the tile of weights are no longer read
#pragma unroll
        for (int a = 0; a < 4; ++a)
#pragma unroll
            for (int c = 0; c < 4; ++c) own[a * TILE_ROW + SIDE * c] = weight[a][c];
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_queries(staged, gradients, E, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_queries(v_sums, weights, staged, E, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the weights are no longer read
#pragma unroll
        for (int a = 0; a < 4; ++a)
#pragma unroll
            for (int c = 0; c < 4; ++c) own[a * TILE_ROW + SIDE * c] = score[a][c];
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_queries(staged, queries, D, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_queries(k_sums, weights, staged, D, tile);
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const int j = tile.keys_at + 4 * tile.ty + a;
        if (j >= s.keys) continue;
        const long row = (tile.b * s.keys + j) * s.heads + tile.h;
        __global REAL *to_k = k_gradient + k_gradient_offset + row * D,
                      *to_v = v_gradient + v_gradient_offset + row * E;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) store_columns(to_k, scale * k_sums[c][a], c, D, tile);
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) store_columns(to_v, v_sums[c][a], c, E, tile);
    }
}

__kernel void attention_backward_dot(const struct Attention s, const long rows, __global const REAL* restrict g,
                                     const long g_offset, const long g_batch, const long g_head, const long g_row,
                                     __global const REAL* restrict y, const long y_offset,
                                     __global REAL* restrict inner, const long inner_offset) {
    const long row = get_global_id(0), heads = s.heads * s.group;
    if (row >= rows) return;
    const long i = row % s.queries, head = row / s.queries % heads, b = row / s.queries / heads;
    __global const REAL* left = g + g_offset + b * g_batch + head * g_head + i * g_row;
    __global const REAL* right = y + y_offset + ((b * s.queries + i) * heads + head) * E;
    REAL sum = 0;
    for (int c = 0; c < E; ++c) sum += left[c] * right[c];
    inner[inner_offset + row] = sum;
}
