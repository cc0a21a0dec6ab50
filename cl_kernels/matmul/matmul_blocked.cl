// out[z][m][n] = epilogue(sum over k of a[z][m][k] * b[z][k][n]) in one launch, with the epilogue of epilogue.clh. simd
// style.
//
// A work-group multiplies a range of panels of ROWS rows with a range of panels of at most COLUMNS columns, one block
// of k after the other. For each block it packs its part of b into local memory, in the order in which the inner loop
// reads it, and then multiplies one panel of a after the other with all of these columns: packed b stays in the L2
// cache, a panel of a in the L1 cache, and only the operands and the result pass through memory (K. Goto and R. van de
// Geijn, Anatomy of high-performance matrix multiplication, 2008). Rows of a with contiguous elements are read in
// place; others are packed, some panels at a time.
//
//   REAL, VW     type of the arithmetic and of packed operands, and vector width (vectors.clh)
//   STORED, OUTPUT  types in memory (storage.clh). If OUTPUT is not REAL, there is one block of k
//   ROWS         rows of a register tile, a multiple of 4
//   COLUMNS      columns of a register tile, a multiple of VW. ROWS * COLUMNS / VW + COLUMNS / VW + 1 vectors must fit
//                in the registers (src/ops/matmul/matmul_blocked.cpp chooses them). Panels of b have VW columns less
//                if that makes their widths more equal
//   A_PACKED     0: a is read in place, and its type is REAL; 1: a is packed
#define GROUP 1
#include "noinline.clh"
#include "vectors.clh"
#include "epilogue_vectors.clh"
#include "stored_vectors.clh"

#define VECTORS (COLUMNS / VW)

// Strides of an operand: from one matrix to the next, from one row of a or column of b to the next, and along k.
struct OperandStrides {
    long batch, across, along;
};

struct GemmShape {
    long M, N, K;
    long last_K;  // K of the last matrix if a batch is the parts of split-K; otherwise K
    struct OperandStrides a, b;
    long out_batch, matrices;
    int row_panels, column_panels;               // of the whole matrices
    int panel_vectors, wider_panels;             // vectors per panel of b; number of first panels with one more vector
    int rows_each, columns_each, matrices_each;  // panels and matrices per work-group
    int packed_panels;                           // panels of a packed at a time, if A_PACKED
    int k_block;
    int has_epilogue;  // 0: results are stored without epilogue
};

// First vector of a panel of b; the widths of panels differ by at most one vector.
static inline int first_vector(const struct GemmShape d, const int panel) {
    return panel * d.panel_vectors + min(panel, d.wider_panels);
}

// to[k][i] = from[i * across + k * along] for i in [0, width) and k in [0, steps), in rows of `pitch` elements. Only
// `valid` of the `width` elements exist: after them the last one is repeated.
static inline __attribute__((always_inline)) void copy_panel(__global const STORED* from,
                                                             const struct OperandStrides strides, const int valid,
                                                             __local REAL* to, const int width, const int pitch,
                                                             const int steps) {
    if (strides.along == 1) {
        for (int i = 0; i < width; i += 4) {
            __global const STORED* r0 = from + min(i, valid - 1) * strides.across;
            __global const STORED* r1 = from + min(i + 1, valid - 1) * strides.across;
            __global const STORED* r2 = from + min(i + 2, valid - 1) * strides.across;
            __global const STORED* r3 = from + min(i + 3, valid - 1) * strides.across;
            __local REAL* block_out = to + i;
            int k = 0;
            for (; k + 4 <= steps; k += 4, block_out += 4 * pitch) {
                const REAL4 p = LOADED(vload4(0, r0 + k)), q = LOADED(vload4(0, r1 + k)), r = LOADED(vload4(0, r2 + k)),
                            s = LOADED(vload4(0, r3 + k));
                vstore4((REAL4)(p.x, q.x, r.x, s.x), 0, block_out);
                vstore4((REAL4)(p.y, q.y, r.y, s.y), 0, block_out + pitch);
                vstore4((REAL4)(p.z, q.z, r.z, s.z), 0, block_out + 2 * pitch);
                vstore4((REAL4)(p.w, q.w, r.w, s.w), 0, block_out + 3 * pitch);
            }
            for (; k < steps; ++k, block_out += pitch)
                vstore4((REAL4)(LOADED(r0[k]), LOADED(r1[k]), LOADED(r2[k]), LOADED(r3[k])), 0, block_out);
        }
    } else {
        for (int k = 0; k < steps; ++k, from += strides.along, to += pitch)
            for (int i = 0; i < width; ++i) to[i] = LOADED(from[min(i, valid - 1) * strides.across]);
    }
}

// Packs the panels of b of a work-group, [panel][k][COLUMNS].
NOINLINE void copy_columns(const struct GemmShape d, __global const STORED* b, __local REAL* to, const int first_panel,
                           const int end_panel, const int steps) {
    const int panel_size = d.k_block * COLUMNS;
    if (d.b.across != 1) {
        for (int panel = first_panel; panel < end_panel; ++panel, to += panel_size) {
            const int first = first_vector(d, panel), end = first_vector(d, panel + 1);
            copy_panel(b + (long)first * VW * d.b.across, d.b, (int)min((long)COLUMNS, d.N - (long)first * VW), to,
                       (end - first) * VW, COLUMNS, steps);
        }
        return;
    }
    // Row by row, since a row spans all panels.
    const long first = first_vector(d, first_panel);
    const int columns = (int)(min((long)first_vector(d, end_panel) * VW, d.N) - first * VW),
              full_vectors = columns / VW;
    b += first * VW;
    for (int k = 0; k < steps; ++k, b += d.b.along, to += COLUMNS) {
        int v = 0;
        __local REAL* row = to;
        for (int panel = first_panel; panel < end_panel; ++panel, row += panel_size) {
            const int end = min(full_vectors, first_vector(d, panel + 1) - (int)first);
            __local REAL* at = row;
            for (; v < end; ++v, at += VW) VSTORE(STORED_VLOAD(b + v * VW), at);
            if (panel == end_panel - 1 && full_vectors * VW < columns) {
                VSTORE((VEC)(0), at);
                for (int i = full_vectors * VW; i < columns; ++i) at[i - full_vectors * VW] = LOADED(b[i]);
            }
        }
    }
}

#if A_PACKED
// Packs some panels of a, [panel][k][ROWS].
NOINLINE void copy_rows(const struct GemmShape d, __global const STORED* a, __local REAL* to, const int first_panel,
                        const int end_panel, const int steps) {
    const int panel_size = d.k_block * ROWS;
    a += (long)first_panel * ROWS * d.a.across;
    const int count = (int)(min((long)end_panel * ROWS, d.M) - (long)first_panel * ROWS);
    if (d.a.across != 1) {
        for (int first = 0; first < count; first += ROWS, a += ROWS * d.a.across, to += panel_size)
            copy_panel(a, d.a, min(ROWS, count - first), to, ROWS, ROWS, steps);
        return;
    }
    for (int k = 0; k < steps; ++k, a += d.a.along, to += ROWS) {
        __local REAL* at = to;
        int first = 0;
        for (; first + ROWS <= count; first += ROWS, at += panel_size)
#pragma unroll
            for (int i = 0; i < ROWS; i += 4) vstore4(LOADED(vload4(0, a + first + i)), 0, at + i);
        if (first < count)
            for (int i = 0; i < ROWS; ++i) at[i] = LOADED(a[min(first + i, count - 1)]);
    }
}
#endif

// Destination of a tile and its epilogue.
struct Tile {
    long pitch;
    int height, width;  // rows and columns of the tile inside the result
    int add;            // 1: add to the sums of previous blocks of k
    int last_block;     // 1: apply the epilogue, after the last block of k
    long column, at;    // of the first element: its column, and its index in the result
};

// Stores partial tiles and tiles with an epilogue.
NOINLINE void store_tile(const struct Tile t, const REAL* tile, __global OUTPUT* out, const struct Epilogue epilogue) {
    long at = t.at;
    for (int i = 0; i < t.height; ++i, out += t.pitch, at += t.pitch, tile += COLUMNS) {
        int j = 0;
        for (; j + VW <= t.width; j += VW) {
            VEC value = VLOAD(tile + j);
#if OUTPUT_AS == AS_REAL
            if (t.add) value += VLOAD(out + j);
#endif
            OUTPUT_VSTORE(t.last_block ? with_epilogue_vector(epilogue, value, t.column + j, at + j) : value, out + j);
        }
        for (; j < t.width; ++j) {
            REAL value = tile[j];
#if OUTPUT_AS == AS_REAL
            if (t.add) value += out[j];
#endif
            out[j] = ROUNDED(t.last_block ? with_epilogue(epilogue, value, t.column + j, at + j) : value);
        }
    }
}

// A panel of rows of a, and its element of row i and step k, which is `at` elements after the first one of its row.
#if A_PACKED
typedef __local const REAL* Left;
static inline REAL left_at(const Left* left, const int i, const int k, const long at) { return (*left)[k * ROWS + i]; }
#else
struct Rows {
    __global const REAL* row[ROWS];
    long along;
};
typedef struct Rows Left;
static inline REAL left_at(const Left* left, const int i, const int k, const long at) { return left->row[i][at]; }
#endif

// Stores a whole tile of `vectors` vectors, or adds it to the sums of previous blocks of k.
static inline __attribute__((always_inline)) void store_whole_tile(const int vectors, VEC (*sum)[VECTORS],
                                                                   const struct Tile t, __global OUTPUT* out) {
#if OUTPUT_AS == AS_REAL
    if (t.add) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v)
                if (v < vectors) sum[i][v] += VLOAD(out + i * t.pitch + v * VW);
    }
#endif
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v)
            if (v < vectors) OUTPUT_VSTORE(sum[i][v], out + i * t.pitch + v * VW);
}

// Multiplies a tile of `vectors` vectors, a constant in each call.
static inline __attribute__((always_inline)) void multiply(const int vectors, const Left a, __local const REAL* right,
                                                           const int steps, const struct Tile t, __global OUTPUT* out,
                                                           const struct Epilogue epilogue) {
    const Left left = a;
    long at = 0;
    VEC sum[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v)
            if (v < vectors) sum[i][v] = (VEC)(0);
#pragma unroll 1  // unrolling doubles the compile time without benefit
    for (int k = 0; k < steps; ++k, right += COLUMNS) {
        VEC values[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v)
            if (v < vectors) values[v] = VLOAD(right + v * VW);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const VEC factor = (VEC)(left_at(&left, i, k, at));
#pragma unroll
            for (int v = 0; v < VECTORS; ++v)
                if (v < vectors) sum[i][v] = fma(factor, values[v], sum[i][v]);
        }
#if !A_PACKED
        at += left.along;
#endif
    }
    // A single vector is left out, since each such place adds 0.1 s of compile time.
    if (vectors > 1 && t.height == ROWS && t.width == vectors * VW && !t.last_block) {
        store_whole_tile(vectors, sum, t, out);
    } else {
        REAL tile[ROWS * COLUMNS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v)
                if (v < vectors) VSTORE(sum[i][v], tile + i * COLUMNS + v * VW);
        store_tile(t, tile, out, epilogue);
    }
}

#define MULTIPLY(NAME, VECTOR_COUNT)                                                                     \
    NOINLINE void NAME(const Left left, __local const REAL* right, const int steps, const struct Tile t, \
                       __global OUTPUT* out, const struct Epilogue epilogue) {                           \
        multiply(VECTOR_COUNT, left, right, steps, t, out, epilogue);                                    \
    }
MULTIPLY(multiply_full, VECTORS)
#if VECTORS > 2
MULTIPLY(multiply_narrower, VECTORS - 1)
#endif
#if VECTORS > 1
MULTIPLY(multiply_single, 1)
#endif

static inline void multiply_tile(const int vectors, const Left left, __local const REAL* right, const int steps,
                                 const struct Tile t, __global OUTPUT* out, const struct Epilogue epilogue) {
    if (vectors == VECTORS) multiply_full(left, right, steps, t, out, epilogue);
#if VECTORS > 2
    else if (vectors == VECTORS - 1) multiply_narrower(left, right, steps, t, out, epilogue);
#endif
#if VECTORS > 1
    else multiply_single(left, right, steps, t, out, epilogue);
#endif
}

#if !A_PACKED
// Rows of a from `a` on, read in place. Past the last row, that row is multiplied again and not stored.
static inline Left rows_of(__global const REAL* a, const struct OperandStrides strides, const int height) {
    Left left;
    left.along = strides.along;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) left.row[i] = a + min(i, height - 1) * strides.across;
    return left;
}
#endif

// global size (ceil(column_panels / columns_each), ceil(row_panels / rows_each), ceil(matrices / matrices_each))
NOINLINE void matmul_blocked_part(const size_t id0, const size_t id1, const size_t id2, const struct GemmShape d,
                                  __local REAL* restrict block, __global const STORED* restrict a_base,
                                  const long a_offset, __global const STORED* restrict b_base, const long b_offset,
                                  __global OUTPUT* restrict out_base, const long out_offset, EPILOGUE_PARAMETERS) {
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    const int first_panel = (int)id0 * d.columns_each, end_panel = min(first_panel + d.columns_each, d.column_panels);
    const int first_row = (int)id1 * d.rows_each, end_row = min(first_row + d.rows_each, d.row_panels);
    const long z_end = min(((long)id2 + 1) * d.matrices_each, d.matrices);
    for (long z = (long)id2 * d.matrices_each; z < z_end; ++z) {
        __global const STORED* a = a_base + a_offset + z * d.a.batch;
        __global const STORED* b = b_base + b_offset + z * d.b.batch;
        const long inner = z + 1 < d.matrices ? d.K : d.last_K;
        for (long k_first = 0; k_first < inner; k_first += d.k_block) {
            const int steps = (int)min((long)d.k_block, inner - k_first);
            const bool last = k_first + steps == inner;
            copy_columns(d, b + k_first * d.b.along, block, first_panel, end_panel, steps);
            for (int p = first_row; p < end_row; ++p) {
                const long row = (long)p * ROWS;
                const int height = (int)min((long)ROWS, d.M - row);
#if A_PACKED
                __local REAL* packed = block + d.columns_each * d.k_block * COLUMNS;
                const int panel_slot = (p - first_row) % d.packed_panels;
                if (panel_slot == 0)
                    copy_rows(d, a + k_first * d.a.along, packed, p, min(p + d.packed_panels, end_row), steps);
                const Left left = packed + panel_slot * d.k_block * ROWS;
#else
                const Left left = rows_of(a + row * d.a.across + k_first * d.a.along, d.a, height);
#endif
                for (int q = first_panel; q < end_panel; ++q) {
                    const int vector = first_vector(d, q), vectors = first_vector(d, q + 1) - vector;
                    const long column = (long)vector * VW;
                    const struct Tile t = {d.N,
                                           height,
                                           (int)min((long)(vectors * VW), d.N - column),
                                           k_first > 0,
                                           last && d.has_epilogue,
                                           column,
                                           z * d.out_batch + row * d.N + column};
                    __global OUTPUT* out = out_base + out_offset + t.at;
                    __local const REAL* right = block + (q - first_panel) * d.k_block * COLUMNS;
                    multiply_tile(vectors, left, right, steps, t, out, epilogue);
                }
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_blocked(
    const struct GemmShape d, __local REAL* restrict block, __global const STORED* restrict a_base, const long a_offset,
    __global const STORED* restrict b_base, const long b_offset, __global OUTPUT* restrict out_base,
    const long out_offset, EPILOGUE_PARAMETERS) {
    matmul_blocked_part(get_group_id(0), get_group_id(1), get_group_id(2), d, block, a_base, a_offset, b_base, b_offset,
                        out_base, out_offset, EPILOGUE_ARGUMENTS);
}
