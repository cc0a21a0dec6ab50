// Integer matrix product: out[b][i][j] = sum over k of a[b][i][k] b[b][k][j], modulo 2^bits as for unsigned integers in
// C. a and b have any strides, out (batch, m, n) is dense.
//
//   T, SUM   type of the elements, and the unsigned type of the sums
//   COLUMNS  neighbouring columns per work-item
//   global   (blocks of columns, m, batch)
struct Strides {
    long batch, row, column;
};

__kernel void matmul_integer(const long n, const long k, const struct Strides of_a, const struct Strides of_b,
                             __global const T* restrict a, const long a_offset, __global const T* restrict b,
                             const long b_offset, __global T* restrict out, const long out_offset) {
    const long first = (long)get_global_id(0) * COLUMNS, row = get_global_id(1), batch = get_global_id(2);
    if (first >= n) return;
    __global const T* left = a + a_offset + batch * of_a.batch + row * of_a.row;
    __global const T* right = b + b_offset + batch * of_b.batch + first * of_b.column;
    __global T* to = out + out_offset + (batch * (long)get_global_size(1) + row) * n + first;
    const int width = (int)min((long)COLUMNS, n - first);
    if (width == COLUMNS) {
        SUM sums[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) sums[j] = 0;
        for (long i = 0; i < k; ++i) {
            const SUM factor = (SUM)left[i * of_a.column];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sums[j] += factor * (SUM)right[i * of_b.row + j * of_b.column];
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) to[j] = (T)sums[j];
        return;
    }
    for (int j = 0; j < width; ++j) {
        SUM sum = 0;
        for (long i = 0; i < k; ++i) sum += (SUM)left[i * of_a.column] * (SUM)right[i * of_b.row + j * of_b.column];
        to[j] = (T)sum;
    }
}
