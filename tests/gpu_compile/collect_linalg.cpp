// Linear algebra: each kernel in both types, with several work-group sizes.
#include <declivity/functions/linalg.hpp>

#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void linear_algebra() {
    for (const DType dtype : kReals)
        for (const std::int64_t n : {4, 20, 128}) {
            const Tensor a = of(dtype, {3, n, n}), b = of(dtype, {3, n, 5});
            compute(linalg::cholesky(a));
            compute(linalg::lu_factor(a).lu);
            compute(linalg::qr(a).q);
            compute(linalg::svd(a).u);
            compute(linalg::svdvals(a));
            for (const char* uplo : {"L", "U"}) {
                compute(linalg::eigh(a, uplo).vectors);
                compute(linalg::eigvalsh(a, uplo));
            }
            for (const bool upper : {false, true})
                for (const bool unit : {false, true})
                    for (const bool left : {false, true})
                        compute(linalg::solve_triangular(a, left ? b : transpose(b),
                                                         {.upper = upper, .left = left, .unitriangular = unit}));
            const auto packed = linalg::lu_factor(a);
            compute(linalg::lu_solve(packed.lu, packed.pivots, b));
        }
    for (const DType dtype : {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8})
        compute(matmul(of(dtype, {3, 20, 30}), of(dtype, {3, 30, 70})));
}

const Part part{"linalg", linear_algebra};

}  // namespace
