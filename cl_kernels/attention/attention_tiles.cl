// Attention and its gradients in tiles of TILE rows and TILE keys (attention.cl and attention_backward.cl say of what),
// for GPU-like devices. A work-group has SIDE * SIDE work-items, SIDE = TILE / 4; each has 4 x 4 elements of a tile of
// scores, and of a tile of results 4 rows and each SIDE-th column. Operands pass through local memory: of products of
// their rows CHUNK columns at a time, and whole rows where they are weighted.
//
//   attention_tiles       y and the logarithms of sums; global (tiles of rows, heads, B) groups
//   attention_tiles_rows  the gradient of q; the same
//   attention_tiles_keys  the gradients of k and v; global (tiles of keys, heads, B) groups
//   attention_inner       inner[row] = sum over c of g_c y_c, which both gradients want; global (B rows of all heads)
//
// `shared` has room for STAGED + TILE TILE_ROW + TILE SIDE elements.
//
//   REAL    float or double
//   D, E    elements of a query and a key, of a value
//   TILE    16, 32 or 64; CHUNK
//   LOG_SUMS 1: they are wanted
#include "math.clh"
#include "attention.clh"

#define SIDE (TILE / 4)
#define ITEMS (SIDE * SIDE)
#define CHUNK_ROW (CHUNK + 1)
#define TILE_ROW (TILE + 1)
#define SHARE(width) (((width) + SIDE - 1) / SIDE)  // columns of a work-item
#define WIDEST (D > E ? D : E)
#define STAGED (TILE * (2 * CHUNK_ROW > WIDEST + 1 ? 2 * CHUNK_ROW : WIDEST + 1))
#define TILED __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

// A block of rows: position and head of row `number`.
#define ROW_AT(number) \
    const long row_ = first + (number), i = row_ / s.group, head = h * s.group + (row_ - i * s.group);

// to[r][c] = columns from `at` on of row r of a block, or of a key; 0 behind the ends.
#define STAGE_ROWS(to, from, from_batch, from_head, from_row, at, width, columns)    \
    for (int e = item; e < TILE * (columns); e += ITEMS) {                           \
        const int r = e / (columns), c = e - r * (columns);                          \
        REAL one = 0;                                                                \
        if (r < count && (at) + c < (width)) {                                       \
            ROW_AT(r)                                                                \
            one = from[b * from_batch + head * from_head + i * from_row + (at) + c]; \
        }                                                                            \
        to[r * ((columns) + 1) + c] = one;                                           \
    }
#define STAGE_KEYS(to, from, from_batch, from_head, from_row, at, width, columns)             \
    for (int e = item; e < TILE * (columns); e += ITEMS) {                                    \
        const int r = e / (columns), c = e - r * (columns);                                   \
        REAL one = 0;                                                                         \
        if (keys_at + r < s.keys && (at) + c < (width))                                       \
            one = from[b * from_batch + h * from_head + (keys_at + r) * from_row + (at) + c]; \
        to[r * ((columns) + 1) + c] = one;                                                    \
    }
#define Q_CHUNK STAGE_ROWS(left, q, s.q_batch, s.q_head, s.q_row, at, D, CHUNK)
#define K_CHUNK STAGE_KEYS(right, k, s.k_batch, s.k_head, s.k_row, at, D, CHUNK)
#define V_CHUNK STAGE_KEYS(right, v, s.v_batch, s.v_head, s.v_row, at, E, CHUNK)
#define G_CHUNK STAGE_ROWS(left, g, g_batch, g_head, g_row, at, E, CHUNK)
#define Q_ROWS STAGE_ROWS(staged, q, s.q_batch, s.q_head, s.q_row, 0, D, D)
#define K_ROWS STAGE_KEYS(staged, k, s.k_batch, s.k_head, s.k_row, 0, D, D)
#define V_ROWS STAGE_KEYS(staged, v, s.v_batch, s.v_head, s.v_row, 0, E, E)
#define G_ROWS STAGE_ROWS(staged, g, g_batch, g_head, g_row, 0, E, E)

// score[a][c] += sum over a chunk of left[ty + SIDE a][.] right[tx + SIDE c][.].
#define MULTIPLY(score)                                                                                            \
    for (int l = 0; l < CHUNK; ++l) {                                                                              \
        REAL x[4], z[4];                                                                                           \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) x[a] = left[(ty + SIDE * a) * CHUNK_ROW + l];                \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) z[a] = right[(tx + SIDE * a) * CHUNK_ROW + l];               \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) score[a][c] += \
            x[a] * z[c];                                                                                           \
    }

// A tile of scores of what is staged by LEFT and RIGHT, `width` deep.
#define PRODUCTS(score, LEFT, RIGHT, width)                                                                      \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) score[a][c] = 0; \
    for (int at = 0; at < (width); at += CHUNK) {                                                                \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
        LEFT;                                                                                                    \
        RIGHT;                                                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
        MULTIPLY(score)                                                                                          \
    }

// sums[a][c] += sum over l of WEIGHT(ty + SIDE a, l) times column tx + SIDE c of row l, of what ROWS stages.
#define ADD_PRODUCTS(sums, WEIGHT, ROWS, width)                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                         \
    ROWS;                                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                         \
    for (int l = 0; l < TILE; ++l) {                                                                      \
        REAL x[4];                                                                                        \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) x[a] = WEIGHT(ty + SIDE * a, l);                    \
        _Pragma("unroll") for (int c = 0; c < SHARE(width); ++c) {                                        \
            const REAL z = tx + SIDE * c < (width) ? staged[l * ((width) + 1) + tx + SIDE * c] : (REAL)0; \
            _Pragma("unroll") for (int a = 0; a < 4; ++a) sums[a][c] += x[a] * z;                         \
        }                                                                                                 \
    }
#define OF_ROW(a, l) weights[(a)*TILE_ROW + (l)]
#define OF_KEY(a, l) weights[(l)*TILE_ROW + (a)]

// Scores as they count: scaled, with what the mask and the slopes add; minus infinity for what is not seen. What is
// added is made in a loop, in the tile of weights: so many conditions at once would take too many registers.
#define IS_SEEN(number, i, j) ((number) < count && (j) < s.keys && (j) >= (i) + s.low && (j) <= (i) + s.high)
#if MASK || ALIBI
#define SEEN(score)                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                 \
    for (int e = item; e < TILE * TILE; e += ITEMS) {                                             \
        const int r = e / TILE, c = e - r * TILE;                                                 \
        ROW_AT(min(r, count - 1))                                                                 \
        const long j = keys_at + c;                                                               \
        REAL bias = MINUS_INFINITY;                                                               \
        if (IS_SEEN(r, i, j)) bias = attention_bias(s, mask, slopes, b, head, i, j);              \
        weights[r * TILE_ROW + c] = bias;                                                         \
    }                                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                 \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) { \
        const REAL bias = weights[(ty + SIDE * a) * TILE_ROW + tx + SIDE * c];                    \
        score[a][c] = bias == MINUS_INFINITY ? bias : scale * score[a][c] + bias;                 \
    }
#else
#define SEEN(score)                                                                     \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) {                                     \
        const int number = ty + SIDE * a;                                               \
        ROW_AT(min(number, count - 1))                                                  \
        _Pragma("unroll") for (int c = 0; c < 4; ++c) {                                 \
            const long j = keys_at + tx + SIDE * c;                                     \
            score[a][c] = IS_SEEN(number, i, j) ? scale * score[a][c] : MINUS_INFINITY; \
        }                                                                               \
    }
#endif

// Of weights that are not dropped 1 / (1 - p), else 0: made in a loop, since so many at once would take too many
// registers, in the tile of weights. The seed comes from local memory, so that its round keys are no scalars, which
// compilers would make all at once.
#if DROPOUT
#define MAKE_KEPT                                                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                     \
    for (int e = item; e < TILE * TILE; e += ITEMS) {                                                                 \
        const int r = e / TILE, c = e - r * TILE;                                                                     \
        ROW_AT(min(r, count - 1))                                                                                     \
        const long number = ((b * s.heads * s.group + head) * s.queries + i) * s.keys + keys_at + c + random_skip;    \
        weights[r * TILE_ROW + c] =                                                                                   \
            random_bernoulli((ulong)(seed[1] + random_first), (ulong)seed[0], number, dropped, (REAL)0, (REAL)1) == 0 \
                ? 1 / (1 - dropped)                                                                                   \
                : (REAL)0;                                                                                            \
    }                                                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);
#define KEPT(factor, a, c) const REAL factor = weights[(ty + SIDE * (a)) * TILE_ROW + tx + SIDE * (c)];
#else
#define MAKE_KEPT
#define KEPT(factor, a, c) const REAL factor = 1;
#endif

#if DROPOUT
#define SEED              \
    __local long seed[2]; \
    if (get_local_id(0) < 2) seed[get_local_id(0)] = random[random_offset + (long)get_local_id(0)];
#else
#define SEED
#endif
#define LOCALS                                                                 \
    __local REAL *staged = shared, *weights = shared + STAGED;                 \
    __local REAL *left = staged, *right = staged + TILE * CHUNK_ROW;           \
    const int item = (int)get_local_id(0), tx = item % SIDE, ty = item / SIDE; \
    const long h = get_group_id(1), b = get_group_id(2);                       \
    SEED
#define MOVED            \
    q += q_offset;       \
    k += k_offset;       \
    v += v_offset;       \
    mask += mask_offset; \
    slopes += slopes_offset;

__kernel TILED void attention_tiles(ATTENTION_OPERANDS, __global REAL* restrict y, const long y_offset,
                                    __global REAL* restrict log_sums, const long log_sums_offset,
                                    __local REAL* restrict shared) {
    LOCALS
    __local REAL* parts = weights + TILE * TILE_ROW;
    MOVED
    const long first = get_group_id(0) * (long)TILE;
    const int count = (int)min((long)TILE, s.queries * s.group - first);
    REAL sums[4][SHARE(E)], most[4], total[4], alpha[4], score[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        most[a] = MINUS_INFINITY;
        total[a] = 0;
#pragma unroll
        for (int c = 0; c < SHARE(E); ++c) sums[a][c] = 0;
    }
    const long begin = max(0l, first / s.group + s.low) / TILE * TILE,
               end = min((long)s.keys, (first + count - 1) / s.group + s.high + 1);
    for (long keys_at = begin; keys_at < end; keys_at += TILE) {
        PRODUCTS(score, Q_CHUNK, K_CHUNK, D)
        SEEN(score)
#pragma unroll
        for (int a = 0; a < 4; ++a)
            parts[(ty + SIDE * a) * SIDE + tx] = max(max(score[a][0], score[a][1]), max(score[a][2], score[a][3]));
        barrier(CLK_LOCAL_MEM_FENCE);
        MAKE_KEPT
#pragma unroll
        for (int a = 0; a < 4; ++a) {
            const REAL old = most[a];
            for (int c = 0; c < SIDE; ++c) most[a] = max(most[a], parts[(ty + SIDE * a) * SIDE + c]);
            const REAL base = most[a] == MINUS_INFINITY ? (REAL)0 : most[a];
            alpha[a] = d_exp(old - base);
            total[a] *= alpha[a];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const REAL weight = d_exp(score[a][c] - base);
                total[a] += weight;
                KEPT(factor, a, c)
                weights[(ty + SIDE * a) * TILE_ROW + tx + SIDE * c] = factor * weight;
            }
#pragma unroll
            for (int c = 0; c < SHARE(E); ++c) sums[a][c] *= alpha[a];
        }
        ADD_PRODUCTS(sums, OF_ROW, V_ROWS, E)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) parts[(ty + SIDE * a) * SIDE + tx] = total[a];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (ty + SIDE * a >= count) continue;
        REAL all = 0;
        for (int c = 0; c < SIDE; ++c) all += parts[(ty + SIDE * a) * SIDE + c];
        ROW_AT(ty + SIDE * a)
        __global REAL* to = y + y_offset + ((b * s.queries + i) * s.heads * s.group + head) * E;
        const REAL factor = all == 0 ? (REAL)0 : 1 / all;
#pragma unroll
        for (int c = 0; c < SHARE(E); ++c)
            if (tx + SIDE * c < E) to[tx + SIDE * c] = factor * sums[a][c];
#if LOG_SUMS
        if (tx == 0)
            log_sums[log_sums_offset + (b * s.heads * s.group + head) * s.queries + i] =
                most[a] == MINUS_INFINITY ? (REAL)INFINITY : most[a] + d_log(all);
#endif
    }
}

// ---- gradients

#define GRADIENT_OPERANDS                                                                                    \
    ATTENTION_OPERANDS, __global const REAL *restrict inner, const long inner_offset,                        \
        __global const REAL *restrict log_sums, const long log_sums_offset, __global const REAL *restrict g, \
        const long g_offset, const long g_batch, const long g_head, const long g_row

// weight = w_ij, and score = s_ij, from tiles of products.
#define GRADIENTS(weight, score)                                                                   \
    {                                                                                              \
        SEEN(weight)                                                                               \
        MAKE_KEPT                                                                                  \
        _Pragma("unroll") for (int a = 0; a < 4; ++a) {                                            \
            ROW_AT(min(ty + SIDE * a, count - 1))                                                  \
            const long at = (b * s.heads * s.group + head) * s.queries + i;                        \
            const REAL log_sum = log_sums[log_sums_offset + at], whole = inner[inner_offset + at]; \
            _Pragma("unroll") for (int c = 0; c < 4; ++c) {                                        \
                const REAL one = d_exp(weight[a][c] - log_sum);                                    \
                KEPT(factor, a, c)                                                                 \
                score[a][c] = one * (factor * score[a][c] - whole);                                \
                weight[a][c] = factor * one;                                                       \
            }                                                                                      \
        }                                                                                          \
    }
#define SHOWN(tile)                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    _Pragma("unroll") for (int a = 0; a < 4; ++a) _Pragma("unroll") for (int c = 0; c < 4; ++c) \
        weights[(ty + SIDE * a) * TILE_ROW + tx + SIDE * c] = tile[a][c];

__kernel TILED void attention_tiles_rows(GRADIENT_OPERANDS, __global REAL* restrict q_gradient,
                                         const long q_gradient_offset, __local REAL* restrict shared) {
    LOCALS
    MOVED
    g += g_offset;
    const long first = get_group_id(0) * (long)TILE;
    const int count = (int)min((long)TILE, s.queries * s.group - first);
    REAL sums[4][SHARE(D)], weight[4][4], score[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int c = 0; c < SHARE(D); ++c) sums[a][c] = 0;
    const long begin = max(0l, first / s.group + s.low) / TILE * TILE,
               end = min((long)s.keys, (first + count - 1) / s.group + s.high + 1);
    for (long keys_at = begin; keys_at < end; keys_at += TILE) {
        PRODUCTS(weight, Q_CHUNK, K_CHUNK, D)
        PRODUCTS(score, G_CHUNK, V_CHUNK, E)
        GRADIENTS(weight, score)
        SHOWN(score)
        ADD_PRODUCTS(sums, OF_ROW, K_ROWS, D)
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (ty + SIDE * a >= count) continue;
        ROW_AT(ty + SIDE * a)
        __global REAL* to = q_gradient + q_gradient_offset + ((b * s.queries + i) * s.heads * s.group + head) * D;
#pragma unroll
        for (int c = 0; c < SHARE(D); ++c)
            if (tx + SIDE * c < D) to[tx + SIDE * c] = scale * sums[a][c];
    }
}

__kernel TILED void attention_tiles_keys(GRADIENT_OPERANDS, __global REAL* restrict k_gradient,
                                         const long k_gradient_offset, __global REAL* restrict v_gradient,
                                         const long v_gradient_offset, __local REAL* restrict shared) {
    LOCALS
    MOVED
    g += g_offset;
    const long keys_at = get_group_id(0) * (long)TILE, rows = (long)s.queries * s.group;
    REAL of_k[4][SHARE(D)], of_v[4][SHARE(E)], weight[4][4], score[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
#pragma unroll
        for (int c = 0; c < SHARE(D); ++c) of_k[a][c] = 0;
#pragma unroll
        for (int c = 0; c < SHARE(E); ++c) of_v[a][c] = 0;
    }
    // Positions that see a key of this tile.
    const long begin = max(0l, keys_at - s.high) * s.group / TILE * TILE,
               end = min(rows, (keys_at + TILE - s.low) * s.group);
    for (long first = begin; first < end; first += TILE) {
        const int count = (int)min((long)TILE, rows - first);
        PRODUCTS(weight, Q_CHUNK, K_CHUNK, D)
        PRODUCTS(score, G_CHUNK, V_CHUNK, E)
        GRADIENTS(weight, score)
        SHOWN(weight)
        ADD_PRODUCTS(of_v, OF_KEY, G_ROWS, E)
        SHOWN(score)
        ADD_PRODUCTS(of_k, OF_KEY, Q_ROWS, D)
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const long j = keys_at + ty + SIDE * a;
        if (j >= s.keys) continue;
        __global REAL* to = k_gradient + k_gradient_offset + ((b * s.keys + j) * s.heads + h) * D;
#pragma unroll
        for (int c = 0; c < SHARE(D); ++c)
            if (tx + SIDE * c < D) to[tx + SIDE * c] = scale * of_k[a][c];
        to = v_gradient + v_gradient_offset + ((b * s.keys + j) * s.heads + h) * E;
#pragma unroll
        for (int c = 0; c < SHARE(E); ++c)
            if (tx + SIDE * c < E) to[tx + SIDE * c] = of_v[a][c];
    }
}

__kernel void attention_inner(const struct Attention s, const long rows, __global const REAL* restrict g,
                              const long g_offset, const long g_batch, const long g_head, const long g_row,
                              __global const REAL* restrict y, const long y_offset, __global REAL* restrict inner,
                              const long inner_offset) {
    const long row = get_global_id(0), heads = s.heads * s.group;
    if (row >= rows) return;
    const long i = row % s.queries, head = row / s.queries % heads, b = row / s.queries / heads;
    __global const REAL* left = g + g_offset + b * g_batch + head * g_head + i * g_row;
    __global const REAL* right = y + y_offset + ((b * s.queries + i) * heads + head) * E;
    REAL sum = 0;
    for (int c = 0; c < E; ++c) sum += left[c] * right[c];
    inner[inner_offset + row] = sum;
}
