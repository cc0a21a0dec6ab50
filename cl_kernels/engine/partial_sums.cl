// Reduction of partial results (split-K), for several results in one launch:
//
//   result[i] = sum over k in [0, partials) of partial[k][i], in that order,  for i in [0, count)
//
// Each group reduces PER_ITEM * GROUP contiguous elements of one result; groups are assigned to the results in order.
//
//   PER_ITEM  elements per work-item: many in simd style, 1 in simt style
//   GROUP   work-items per group
//   SUMS    maximum number of results per launch; they and their partial results are in at most MEMORIES memory objects
//   REAL    type of the partial results and of the arithmetic (math.clh)
//   OUTPUT  type of the results (storage.clh)
#include "math.clh"
#include "storage.clh"

// Memory objects of a launch, as many as sum_partials has pairs of parameters; kMemories in
// src/ops/engine/partial_sums.cpp is the same.
#define MEMORIES 4

struct Sum {
    long partial, result;  // offsets of the first elements in their memory objects
    long count;
    int partials;
    int first_group;
    int memory;  // index of the memory object of the partial results, plus MEMORIES times that of the result
    int unused;
};

struct Sums {
    int sums, unused;
    struct Sum sum[SUMS];
};

#define MEMORY_PARAMETER(n) , __global REAL *base##n, const long offset##n
#define MEMORY_POINTER(n) \
    ((n) == 0 ? base0 + offset0 : (n) == 1 ? base1 + offset1 : (n) == 2 ? base2 + offset2 : base3 + offset3)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sum_partials(const struct Sums sums MEMORY_PARAMETER(0)
                                                                                  MEMORY_PARAMETER(1)
                                                                                      MEMORY_PARAMETER(2)
                                                                                          MEMORY_PARAMETER(3)) {
    const int group = get_group_id(0);
#if GROUP == 1
    int index = 0;
    while (index + 1 < sums.sums && sums.sum[index + 1].first_group <= group) ++index;
    const struct Sum sum = sums.sum[index];
#else
    // Constant indices only: with a variable index, GPUs keep a copy of the table in memory for each work-item.
    struct Sum sum = sums.sum[0];
#pragma unroll
    for (int i = 1; i < SUMS; ++i)
        if (i < sums.sums && sums.sum[i].first_group <= group) sum = sums.sum[i];
#endif
    const long first = ((long)(group - sum.first_group) * GROUP + get_local_id(0)) * PER_ITEM;
    if (first >= sum.count) return;
    __global const REAL* from = MEMORY_POINTER(sum.memory % MEMORIES) + sum.partial + first;
    __global OUTPUT* to = (__global OUTPUT*)MEMORY_POINTER(sum.memory / MEMORIES) + sum.result + first;
    const int valid = (int)min((long)PER_ITEM, sum.count - first);
    REAL total[PER_ITEM];
    for (int i = 0; i < valid; ++i) total[i] = 0;
    for (int k = 0; k < sum.partials; ++k, from += sum.count)
        for (int i = 0; i < valid; ++i) total[i] += from[i];
    for (int i = 0; i < valid; ++i) to[i] = ROUNDED(total[i]);
}
