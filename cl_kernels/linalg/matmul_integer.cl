// Integer matrix product: out[b][i][j] = sum over k of a[b][i][k] b[b][k][j], modulo 2^bits as for unsigned integers in
// C. a and b have any strides, out (batch, m, n) is dense.
//
//   T, SUM   type of the elements, and the unsigned type of the sums
//   COLUMNS  neighbouring columns per work-item
//   global   (blocks of columns, m, batch)
struct Strides {
    long batch, row, column;
};

__kernel void matmul_integer(const long n, const long k, const struct Strides a_strides, const struct Strides b_strides,
                             __global const T* restrict a, const long a_offset, __global const T* restrict b,
                             const long b_offset, __global T* restrict out, const long out_offset) {
    const long first = (long)get_global_id(0) * COLUMNS, row = get_global_id(1), batch = get_global_id(2);
    if (first >= n) return;
    __global const T* left = a + a_offset + batch * a_strides.batch + row * a_strides.row;
    __global const T* right = b + b_offset + batch * b_strides.batch + first * b_strides.column;
    __global T* to = out + out_offset + (batch * (long)get_global_size(1) + row) * n + first;
    const int width = (int)min((long)COLUMNS, n - first);
    if (width == COLUMNS) {
        SUM sums[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) sums[j] = 0;
        for (long i = 0; i < k; ++i) {
            const SUM factor = (SUM)left[i * a_strides.column];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sums[j] += factor * (SUM)right[i * b_strides.row + j * b_strides.column];
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) to[j] = (T)sums[j];
        return;
    }
    for (int j = 0; j < width; ++j) {
        SUM sum = 0;
        for (long i = 0; i < k; ++i)
            sum += (SUM)left[i * a_strides.column] * (SUM)right[i * b_strides.row + j * b_strides.column];
        to[j] = (T)sum;
    }
}
