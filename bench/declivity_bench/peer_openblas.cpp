#include "peers.hpp"

#ifdef DECLIVITY_BENCH_OPENBLAS
#include <cblas.h>
#endif

namespace declivity::bench {

#ifdef DECLIVITY_BENCH_OPENBLAS

std::optional<Contender> openblas_gemm(const HostGemm& gemm) {
    return Contender{"OpenBLAS", [gemm](int) {
                         const auto to_blasint = [](std::int64_t value) { return static_cast<blasint>(value); };
                         const blasint m = to_blasint(gemm.m), n = to_blasint(gemm.n), k = to_blasint(gemm.k);
                         for (std::int64_t z = 0; z < gemm.batch; ++z)
                             cblas_sgemm(CblasRowMajor, gemm.a_transposed ? CblasTrans : CblasNoTrans,
                                         gemm.b_transposed ? CblasTrans : CblasNoTrans, m, n, k, 1,
                                         gemm.a + z * gemm.m * gemm.k, gemm.a_transposed ? m : k,
                                         gemm.b + z * gemm.k * gemm.n, gemm.b_transposed ? k : n, 0,
                                         gemm.out + z * gemm.m * gemm.n, n);
                     }};
}

#else

std::optional<Contender> openblas_gemm(const HostGemm&) { return std::nullopt; }

#endif

}  // namespace declivity::bench
