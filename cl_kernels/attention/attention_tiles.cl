// Flash attention and its gradients in tiles of TILE rows and TILE keys (formulas in attention.cl and
// attention_backward.cl). simt style.
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
#define STAGED_ELEMENTS (TILE * (2 * CHUNK_ROW > PADDED_ROW(MAX_WIDTH) ? 2 * CHUNK_ROW : PADDED_ROW(MAX_WIDTH)))
#define FIXED_GROUP_SIZE __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define REAL4 PASTE(REAL, 4)
#define VECTOR_AT(from, at) (*(__local const REAL4*)((from) + (at)))

// Position i and query head of row `number` of a block.
#if GROUPED_QUERIES
#define ROW_AT(number) \
    const int row_ = first + (number), i = row_ / s.group, head = (int)h * s.group + (row_ - i * s.group);
#else
#define ROW_AT(number) const int i = first + (number), head = (int)h;
#endif

// to[r][c] = columns from `at` of row r of a block, or of a key; 0 past the ends.
#define STAGE_ROWS(to, from, from_batch, from_head, from_row, at, width, columns, pitch)       \
    for (int e = item; e < TILE * (columns); e += ITEMS) {                                     \
        const int r = e / (columns), c = e - r * (columns);                                    \
        REAL element = 0;                                                                      \
        if (r < count && (at) + c < (width)) {                                                 \
            ROW_AT(r)                                                                          \
            element = from[b * from_batch + head * from_head + i * (long)from_row + (at) + c]; \
        }                                                                                      \
        to[r * (pitch) + c] = element;                                                         \
    }
#define STAGE_KEYS(to, from, from_batch, from_head, from_row, at, width, columns, pitch)                \
    for (int e = item; e < TILE * (columns); e += ITEMS) {                                              \
        const int r = e / (columns), c = e - r * (columns);                                             \
        REAL element = 0;                                                                               \
        if (keys_at + r < s.keys && (at) + c < (width))                                                 \
            element = from[b * from_batch + h * from_head + (keys_at + r) * (long)from_row + (at) + c]; \
        to[r * (pitch) + c] = element;                                                                  \
    }
#define Q_CHUNK STAGE_ROWS(left, q, s.q_batch, s.q_head, s.q_row, at, D, CHUNK, CHUNK_ROW)
#define K_CHUNK STAGE_KEYS(right, k, s.k_batch, s.k_head, s.k_row, at, D, CHUNK, CHUNK_ROW)
#define V_CHUNK STAGE_KEYS(right, v, s.v_batch, s.v_head, s.v_row, at, E, CHUNK, CHUNK_ROW)
#define G_CHUNK STAGE_ROWS(left, g, g_batch, g_head, g_row, at, E, CHUNK, CHUNK_ROW)
#define Q_ROWS STAGE_ROWS(staged, q, s.q_batch, s.q_head, s.q_row, 0, D, PADDED_ROW(D), PADDED_ROW(D))
#define K_ROWS STAGE_KEYS(staged, k, s.k_batch, s.k_head, s.k_row, 0, D, PADDED_ROW(D), PADDED_ROW(D))
#define V_ROWS STAGE_KEYS(staged, v, s.v_batch, s.v_head, s.v_row, 0, E, PADDED_ROW(E), PADDED_ROW(E))
#define G_ROWS STAGE_ROWS(staged, g, g_batch, g_head, g_row, 0, E, PADDED_ROW(E), PADDED_ROW(E))

// score[a][c] += sum over a chunk of left[4 ty + a][.] right[tx + SIDE c][.].
#define MULTIPLY(score)                                                                                         \
    for (int l = 0; l < CHUNK; l += 4) {                                                                        \
        REAL4 x[4], z[4];                                                                                       \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) x[a] = VECTOR_AT(left, (4 * ty + a) * CHUNK_ROW + l);     \
        _Pragma("unroll") for (int c = 0; c < 4; ++c) z[c] = VECTOR_AT(right, (tx + SIDE * c) * CHUNK_ROW + l); \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) {           \
            score[a][c] += x[a].x * z[c].x;                                                                     \
            score[a][c] += x[a].y * z[c].y;                                                                     \
            score[a][c] += x[a].z * z[c].z;                                                                     \
            score[a][c] += x[a].w * z[c].w;                                                                     \
        }                                                                                                       \
    }

// A tile of scores: products of the rows staged by LEFT and RIGHT, of `width` elements.
#define PRODUCTS(score, LEFT, RIGHT, width)                                                                      \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) score[a][c] = 0; \
    for (int at = 0; at < (width); at += CHUNK) {                                                                \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
        LEFT;                                                                                                    \
        RIGHT;                                                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
        MULTIPLY(score)                                                                                          \
    }

// sums[a][c] += weight of row 4 ty + a and l, times vector tx + SIDE c of row l staged by ROWS, over all l. Weights are
// contiguous along a row (ADD_PRODUCTS_OF_ROWS), or those of a key are (ADD_PRODUCTS_OF_KEYS).
#define ADD_STAGED(sums, weight, l, width)                                                  \
    _Pragma("unroll") for (int c = 0; c < VECTORS_PER_ITEM(width); ++c) {                   \
        if (4 * (tx + SIDE * c) < PADDED_ROW(width)) {                                      \
            const REAL4 z = VECTOR_AT(staged, (l)*PADDED_ROW(width) + 4 * (tx + SIDE * c)); \
            _Pragma("unroll") for (int a = 0; a < 4; ++a) sums[a][c] += weight(a) * z;      \
        }                                                                                   \
    }
#define FIRST_OF(a) x[a].x
#define SECOND_OF(a) x[a].y
#define THIRD_OF(a) x[a].z
#define FOURTH_OF(a) x[a].w
#define ADD_PRODUCTS_OF_ROWS(sums, ROWS, width)                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
    ROWS;                                                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
    for (int l = 0; l < TILE; l += 4) {                                                                       \
        REAL4 x[4];                                                                                           \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) x[a] = VECTOR_AT(weights, (4 * ty + a) * TILE_ROW + l); \
        ADD_STAGED(sums, FIRST_OF, l, width)                                                                  \
        ADD_STAGED(sums, SECOND_OF, l + 1, width)                                                             \
        ADD_STAGED(sums, THIRD_OF, l + 2, width)                                                              \
        ADD_STAGED(sums, FOURTH_OF, l + 3, width)                                                             \
    }
#define OF_KEY(a) ((a) == 0 ? x.x : (a) == 1 ? x.y : (a) == 2 ? x.z : x.w)
#define ADD_PRODUCTS_OF_KEYS(sums, ROWS, width)                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                  \
    ROWS;                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                  \
    for (int l = 0; l < TILE; ++l) {                               \
        const REAL4 x = VECTOR_AT(weights, l * TILE_ROW + 4 * ty); \
        ADD_STAGED(sums, OF_KEY, l, width)                         \
    }

// Applies scale, mask and slopes to the scores; minus infinity for masked keys. The bias is computed in a loop, into
// the tile of weights: evaluating 16 conditions at once takes too many registers.
#define ATTENDS(number, i, j) ((number) < count && (j) < s.keys && (j) - (i) >= s.low && (j) - (i) <= s.high)
#if MASK != MASK_NONE || ALIBI
#define APPLY_MASK(score)                                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                 \
    for (int e = item; e < TILE * TILE; e += ITEMS) {                                             \
        const int r = e / TILE, c = e - r * TILE;                                                 \
        ROW_AT(min(r, count - 1))                                                                 \
        const int j = keys_at + c;                                                                \
        REAL bias = MINUS_INFINITY;                                                               \
        if (ATTENDS(r, i, j)) bias = attention_bias(s, mask, slopes, b, head, i, j);              \
        weights[r * TILE_ROW + c] = bias;                                                         \
    }                                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                 \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) { \
        const REAL bias = weights[(4 * ty + a) * TILE_ROW + tx + SIDE * c];                       \
        score[a][c] = bias == MINUS_INFINITY ? bias : scale * score[a][c] + bias;                 \
    }
#else
#define APPLY_MASK(score)                                                               \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) {                                     \
        const int number = 4 * ty + a;                                                  \
        ROW_AT(min(number, count - 1))                                                  \
        _Pragma("unroll") for (int c = 0; c < 4; ++c) {                                 \
            const int j = keys_at + tx + SIDE * c;                                      \
            score[a][c] = ATTENDS(number, i, j) ? scale * score[a][c] : MINUS_INFINITY; \
        }                                                                               \
    }
#endif

// Dropout factors, 1 / (1 - p) or 0. They are computed in a loop, since all at once take too many registers, into the
// tile of weights. The seed is read from local memory, so that its round keys are not scalars, which compilers would
// compute all at once.
#if DROPOUT
#define COMPUTE_DROPOUT                                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                     \
    for (int e = item; e < TILE * TILE; e += ITEMS) {                                                                 \
        const int r = e / TILE, c = e - r * TILE;                                                                     \
        ROW_AT(min(r, count - 1))                                                                                     \
        const long number = ((b * s.heads * s.group + head) * s.queries + i) * s.keys + keys_at + c + random_index;   \
        weights[r * TILE_ROW + c] =                                                                                   \
            random_bernoulli((ulong)(seed[1] + random_first), (ulong)seed[0], number, dropout, (REAL)0, (REAL)1) == 0 \
                ? 1 / (1 - dropout)                                                                                   \
                : (REAL)0;                                                                                            \
    }                                                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);
#define DROPOUT_FACTOR(factor, a, c) const REAL factor = weights[(4 * ty + (a)) * TILE_ROW + tx + SIDE * (c)];
#else
#define COMPUTE_DROPOUT
#define DROPOUT_FACTOR(factor, a, c) const REAL factor = 1;
#endif

#if DROPOUT
#define SEED              \
    __local long seed[2]; \
    if (get_local_id(0) < 2) seed[get_local_id(0)] = random[random_offset + (long)get_local_id(0)];
#else
#define SEED
#endif
#define LOCAL_VARIABLES                                                                \
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS; \
    __local REAL *left = staged, *right = staged + TILE * CHUNK_ROW;                   \
    const int item = (int)get_local_id(0), tx = item % SIDE, ty = item / SIDE;         \
    const long h = get_group_id(1), b = get_group_id(2);                               \
    SEED
#define ADD_OFFSETS      \
    q += q_offset;       \
    k += k_offset;       \
    v += v_offset;       \
    mask += mask_offset; \
    slopes += slopes_offset;

// Stores the columns of the work-item's vector c to a row of results of length `width`.
#define STORE_VECTOR(to, width, value)               \
    {                                                \
        const REAL4 all_ = value;                    \
        const int at_ = 4 * (tx + SIDE * c);         \
        if (at_ < (width)) to[at_] = all_.x;         \
        if (at_ + 1 < (width)) to[at_ + 1] = all_.y; \
        if (at_ + 2 < (width)) to[at_ + 2] = all_.z; \
        if (at_ + 3 < (width)) to[at_ + 3] = all_.w; \
    }

__kernel FIXED_GROUP_SIZE void attention_tiles(ATTENTION_OPERANDS, __global REAL* restrict y, const long y_offset,
                                               __global REAL* restrict log_sums, const long log_sums_offset,
                                               __local REAL4* restrict shared) {
    LOCAL_VARIABLES
    __local REAL* parts = weights + TILE * TILE_ROW;
    ADD_OFFSETS
    const int first = (int)get_group_id(0) * TILE, count = min(TILE, s.queries * s.group - first);
    REAL4 sums[4][VECTORS_PER_ITEM(E)];
    REAL max_score[4], total[4], alpha[4], score[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        max_score[a] = MINUS_INFINITY;
        total[a] = 0;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) sums[a][c] = 0;
    }
    const int begin = (int)(max(0l, first / s.group + (long)s.low) / TILE * TILE),
              end = (int)min((long)s.keys, (first + count - 1) / s.group + (long)s.high + 1);
    for (int keys_at = begin; keys_at < end; keys_at += TILE) {
        PRODUCTS(score, Q_CHUNK, K_CHUNK, D)
        APPLY_MASK(score)
#pragma unroll
        for (int a = 0; a < 4; ++a)
            parts[(4 * ty + a) * SIDE + tx] = max(max(score[a][0], score[a][1]), max(score[a][2], score[a][3]));
        barrier(CLK_LOCAL_MEM_FENCE);
        COMPUTE_DROPOUT
#pragma unroll
        for (int a = 0; a < 4; ++a) {
            const REAL previous_max = max_score[a];
            for (int c = 0; c < SIDE; c += 4) {
                const REAL4 part = VECTOR_AT(parts, (4 * ty + a) * SIDE + c);
                max_score[a] = max(max_score[a], max(max(part.x, part.y), max(part.z, part.w)));
            }
            const REAL base = max_score[a] == MINUS_INFINITY ? (REAL)0 : max_score[a];
            alpha[a] = d_exp(previous_max - base);
            total[a] *= alpha[a];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const REAL weight = d_exp(score[a][c] - base);
                total[a] += weight;
                DROPOUT_FACTOR(factor, a, c)
                weights[(4 * ty + a) * TILE_ROW + tx + SIDE * c] = factor * weight;
            }
#pragma unroll
            for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) sums[a][c] *= alpha[a];
        }
        ADD_PRODUCTS_OF_ROWS(sums, V_ROWS, E)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) parts[(4 * ty + a) * SIDE + tx] = total[a];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (4 * ty + a >= count) continue;
        REAL sum_of_weights = 0;
        for (int c = 0; c < SIDE; c += 4) {
            const REAL4 part = VECTOR_AT(parts, (4 * ty + a) * SIDE + c);
            sum_of_weights += part.x + part.y + (part.z + part.w);
        }
        ROW_AT(4 * ty + a)
        __global REAL* to = y + y_offset + ((b * s.queries + i) * s.heads * s.group + head) * E;
        const REAL factor = sum_of_weights == 0 ? (REAL)0 : 1 / sum_of_weights;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) STORE_VECTOR(to, E, factor * sums[a][c])
#if LOG_SUMS
        if (tx == 0)
            log_sums[log_sums_offset + (b * s.heads * s.group + head) * s.queries + i] =
                max_score[a] == MINUS_INFINITY ? (REAL)INFINITY : max_score[a] + d_log(sum_of_weights);
#endif
    }
}

// ---- gradients

#define GRADIENT_OPERANDS                                                                                    \
    ATTENTION_OPERANDS, __global const REAL *restrict inner, const long inner_offset,                        \
        __global const REAL *restrict log_sums, const long log_sums_offset, __global const REAL *restrict g, \
        const long g_offset, const long g_batch, const long g_head, const long g_row

// Computes weight = w_ij and score = s_ij from tiles of products.
#define GRADIENTS(weight, score)                                                                     \
    {                                                                                                \
        APPLY_MASK(weight)                                                                           \
        COMPUTE_DROPOUT                                                                              \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) {                                              \
            ROW_AT(min(4 * ty + a, count - 1))                                                       \
            const long at = (b * s.heads * s.group + head) * s.queries + i;                          \
            const REAL log_sum = log_sums[log_sums_offset + at], row_dot = inner[inner_offset + at]; \
            _Pragma("unroll") for (int c = 0; c < 4; ++c) {                                          \
                const REAL probability = d_exp(weight[a][c] - log_sum);                              \
                DROPOUT_FACTOR(factor, a, c)                                                         \
                score[a][c] = probability * (factor * score[a][c] - row_dot);                        \
                weight[a][c] = factor * probability;                                                 \
            }                                                                                        \
        }                                                                                            \
    }
#define STORE_TILE(tile)                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) \
        weights[(4 * ty + a) * TILE_ROW + tx + SIDE * c] = tile[a][c];

__kernel FIXED_GROUP_SIZE void attention_tiles_rows(GRADIENT_OPERANDS, __global REAL* restrict q_gradient,
                                                    const long q_gradient_offset, __local REAL4* restrict shared) {
    LOCAL_VARIABLES
    ADD_OFFSETS
    g += g_offset;
    const int first = (int)get_group_id(0) * TILE, count = min(TILE, s.queries * s.group - first);
    REAL4 sums[4][VECTORS_PER_ITEM(D)];
    REAL weight[4][4], score[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) sums[a][c] = 0;
    const int begin = (int)(max(0l, first / s.group + (long)s.low) / TILE * TILE),
              end = (int)min((long)s.keys, (first + count - 1) / s.group + (long)s.high + 1);
    for (int keys_at = begin; keys_at < end; keys_at += TILE) {
        PRODUCTS(weight, Q_CHUNK, K_CHUNK, D)
        PRODUCTS(score, G_CHUNK, V_CHUNK, E)
        GRADIENTS(weight, score)
        STORE_TILE(score)
        ADD_PRODUCTS_OF_ROWS(sums, K_ROWS, D)
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (4 * ty + a >= count) continue;
        ROW_AT(4 * ty + a)
        __global REAL* to = q_gradient + q_gradient_offset + ((b * s.queries + i) * s.heads * s.group + head) * D;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) STORE_VECTOR(to, D, scale * sums[a][c])
    }
}

__kernel FIXED_GROUP_SIZE void attention_tiles_keys(GRADIENT_OPERANDS, __global REAL* restrict k_gradient,
                                                    const long k_gradient_offset, __global REAL* restrict v_gradient,
                                                    const long v_gradient_offset, __local REAL4* restrict shared) {
    LOCAL_VARIABLES
    ADD_OFFSETS
    g += g_offset;
    const int keys_at = (int)get_group_id(0) * TILE, rows = s.queries * s.group;
    REAL4 k_sums[4][VECTORS_PER_ITEM(D)], v_sums[4][VECTORS_PER_ITEM(E)];
    REAL weight[4][4], score[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) k_sums[a][c] = 0;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) v_sums[a][c] = 0;
    }
    // Rows that attend to a key of this tile.
    const int begin = (int)min((long)rows, max(0l, keys_at - (long)s.high) * s.group / TILE * TILE),
              end = (int)clamp((keys_at + TILE - (long)s.low) * s.group, 0l, (long)rows);
    for (int first = begin; first < end; first += TILE) {
        const int count = min(TILE, rows - first);
        PRODUCTS(weight, Q_CHUNK, K_CHUNK, D)
        PRODUCTS(score, G_CHUNK, V_CHUNK, E)
        GRADIENTS(weight, score)
        STORE_TILE(weight)
        ADD_PRODUCTS_OF_KEYS(v_sums, G_ROWS, E)
        STORE_TILE(score)
        ADD_PRODUCTS_OF_KEYS(k_sums, Q_ROWS, D)
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const int j = keys_at + 4 * ty + a;
        if (j >= s.keys) continue;
        __global REAL* to = k_gradient + k_gradient_offset + ((b * s.keys + j) * s.heads + h) * D;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) STORE_VECTOR(to, D, scale * k_sums[a][c])
        to = v_gradient + v_gradient_offset + ((b * s.keys + j) * s.heads + h) * E;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) STORE_VECTOR(to, E, v_sums[a][c])
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
