// Binary search (searchsorted): out[row][i] = the first index at which sorted[row] (n ascending elements) is not less
// than values[row][i] (RIGHT: is greater), for `taken` values per row. NaN is the largest.
//
//   global   (taken, rows), the first rounded up to the local size
//   T        type of both operands
//   SHARED   1: one sorted row for all rows of values
//   RIGHT    1: upper bound
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// True if a comes before b.
#define BEFORE(a, b) (((a) < (b)) | (((b) != (b)) & ((a) == (a))))

__kernel void search(const long n, const long taken, __global const T* restrict sorted, const long sorted_offset,
                     __global const T* restrict values, const long values_offset, __global long* restrict out,
                     const long out_offset) {
    const long i = get_global_id(0), row = get_global_id(1);
    if (i >= taken) return;
    __global const T* row_of_sorted = sorted + sorted_offset + (SHARED ? 0 : row * n);
    const T value = values[values_offset + row * taken + i];
    long low = 0, high = n;
    while (low < high) {
        const long middle = low + (high - low) / 2;
        const T element = row_of_sorted[middle];
#if RIGHT
        const int go_right = !BEFORE(value, element);
#else
        const int go_right = BEFORE(element, value);
#endif
        low = go_right ? middle + 1 : low;
        high = go_right ? high : middle;
    }
    out[out_offset + row * taken + i] = low;
}
