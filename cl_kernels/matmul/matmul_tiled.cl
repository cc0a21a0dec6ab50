// out[z][m][n] = epilogue(sum over k of a[z][m][k] * b[z][k][n]) with tiles in local memory (local_tile.clh) and the
// epilogue of epilogue.clh. simt style. With too few tiles k is split (split-K), and out is [part][z][m][n] for
// matmul_reduce.cl.
//
//   A_FORM, B_FORM   how the operands are read, ACROSS to ALONG_4 (local_tile.clh). With a form of _4 all sizes,
//                    strides and offsets of the operand are multiples of 4, and it is contiguous in that direction
//   OUT_4            1: n and the offset of out are multiples of 4
//   Tile sizes: local_tile.clh, REAL: math.clh, STORED and OUTPUT: storage.clh
#define ROWS_FORM A_FORM
#define COLUMNS_FORM B_FORM
#include "local_tile.clh"
#include "epilogue.clh"

#define OUTPUT4 D_PASTE(OUTPUT, 4)

// Strides of an operand: from one matrix to the next, from one row of a or column of b to the next, and along k.
struct OperandStrides {
    long batch, across, along;
};

struct GemmShape {
    long M, N, K, batch;
    long each;  // steps of k per part
    struct OperandStrides a, b;
    int row_tiles, column_tiles;  // per matrix
};

// The tile that a work-group computes: its first row and column in matrix z of the results, which belong to the part of
// the sum and the operands `matrix`.
struct Tile {
    long z, part, matrix, row, column;
};

static inline struct Tile own_tile(const struct GemmShape d) {
    const int tiles = d.row_tiles * d.column_tiles;
    struct Tile tile;
    tile.z = get_group_id(0) / tiles;
    tile.part = tile.z / d.batch;
    tile.matrix = tile.z - tile.part * d.batch;
    int row_tile, column_tile;
    tile_of((int)(get_group_id(0) - tile.z * tiles), d.row_tiles, d.column_tiles, &row_tile, &column_tile);
    tile.row = (long)row_tile * TILE_ROWS;
    tile.column = (long)column_tile * TILE_COLUMNS;
    return tile;
}

// Stores the results of `height` rows and `width` columns of a tile.
INLINE void store_tile(const struct GemmShape d, const struct Epilogue epilogue, REAL4 (*sum)[COLUMN_STRIPS],
                       const struct Tile tile, const int height, const int width, __global OUTPUT* out) {
    const long column = tile.column;
#pragma unroll
    for (int i = 0; i < 4 * ROW_STRIPS; ++i) {
        if (ROW_OF(i) >= height) continue;
#pragma unroll
        for (int t = 0; t < COLUMN_STRIPS; ++t) {
            const int first = COLUMN_OF(t);
            const long at = (tile.z * d.M + tile.row + ROW_OF(i)) * d.N + column + first;
            __global OUTPUT* to = out + at;
#if OUT_4
            if (first < width)
                *(__global OUTPUT4*)to =
                    ROUNDED((REAL4)(with_epilogue(epilogue, sum[i][t].x, column + first, at),
                                    with_epilogue(epilogue, sum[i][t].y, column + first + 1, at + 1),
                                    with_epilogue(epilogue, sum[i][t].z, column + first + 2, at + 2),
                                    with_epilogue(epilogue, sum[i][t].w, column + first + 3, at + 3)));
#else
            if (first < width) to[0] = ROUNDED(with_epilogue(epilogue, sum[i][t].x, column + first, at));
            if (first + 1 < width) to[1] = ROUNDED(with_epilogue(epilogue, sum[i][t].y, column + first + 1, at + 1));
            if (first + 2 < width) to[2] = ROUNDED(with_epilogue(epilogue, sum[i][t].z, column + first + 2, at + 2));
            if (first + 3 < width) to[3] = ROUNDED(with_epilogue(epilogue, sum[i][t].w, column + first + 3, at + 3));
#endif
        }
    }
}

// global size ITEMS * row_tiles * column_tiles * batch * parts
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void matmul_tiled(
    const struct GemmShape d, __global const STORED* restrict a_base, const long a_offset,
    __global const STORED* restrict b_base, const long b_offset, __global OUTPUT* restrict out_base,
    const long out_offset, EPILOGUE_PARAMETERS) {
    __local REAL4 left[2][SLICE * ROWS_PITCH], right[2][SLICE * COLUMNS_PITCH];
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    const struct Tile tile = own_tile(d);
    const long k_first = tile.part * d.each;
    const int height = (int)min((long)TILE_ROWS, d.M - tile.row),
              width = (int)min((long)TILE_COLUMNS, d.N - tile.column);
    long steps = min(d.each, d.K - k_first);
    __global const STORED* a =
        a_base + a_offset + tile.matrix * d.a.batch + tile.row * d.a.across + k_first * d.a.along;
    __global const STORED* b =
        b_base + b_offset + tile.matrix * d.b.batch + tile.column * d.b.across + k_first * d.b.along;

    REAL4 sum[4 * ROW_STRIPS][COLUMN_STRIPS];
    clear_sums(sum);
    STORED a_registers[ROW_REGISTERS], b_registers[COLUMN_REGISTERS];
    fetch_rows(a_registers, a, d.a.across, d.a.along, height, (int)min((long)SLICE, steps));
    fetch_columns(b_registers, b, d.b.across, d.b.along, width, (int)min((long)SLICE, steps));
    put_rows(a_registers, left[0]);
    put_columns(b_registers, right[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int current = 0; steps > 0; current ^= 1) {
        steps -= SLICE;
        a += SLICE * d.a.along;
        b += SLICE * d.b.along;
        if (steps > 0) {
            fetch_rows(a_registers, a, d.a.across, d.a.along, height, (int)min((long)SLICE, steps));
            fetch_columns(b_registers, b, d.b.across, d.b.along, width, (int)min((long)SLICE, steps));
        }
        multiply_slices(sum, left[current], right[current]);
        if (steps > 0) {
            put_rows(a_registers, left[current ^ 1]);
            put_columns(b_registers, right[current ^ 1]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    store_tile(d, epilogue, sum, tile, height, width, out_base + out_offset);
}
