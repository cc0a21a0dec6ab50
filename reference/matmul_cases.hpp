// Matrix products: shapes, a plain reference in double, and costs. Shared by tests and benchmarks.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/ops/view.hpp>
#include <fmt/format.h>
#include <reference/values.hpp>

namespace declivity::reference {

/// Memory layout of an operand (batch, rows, columns).
enum class OperandStrides : std::uint8_t {
    dense,
    transposed,  ///< a permuted view of (batch, columns, rows)
    repeated,    ///< one matrix for the whole batch, stride 0
    sliced,      ///< rows of a wider matrix
    scattered,   ///< every second column of a wider one: not expressible by a leading dimension
};

struct MatmulCase {
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    OperandStrides a = OperandStrides::dense, b = OperandStrides::dense;
    bool large = false;  ///< skipped under slow checkers

    [[nodiscard]] double flops() const { return 2.0 * static_cast<double>(batch * m * n * k); }
    /// Minimum bytes read and written.
    [[nodiscard]] double bytes(DType dtype) const {
        return static_cast<double>(size_of(dtype)) * static_cast<double>(batch * (m * k + k * n + m * n));
    }
    /// For inputs in [-1, 1): the error of a sum of k products, plus half an ulp for f16 and bf16.
    [[nodiscard]] Tolerance allowed(DType dtype) const {
        Tolerance out = sum_tolerance(compute_type(dtype), static_cast<double>(k));
        if (dtype == DType::f16) out.absolute += 0x1p-25;
        if (is_16bit_float(dtype)) out.relative += dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
        return out;
    }
    [[nodiscard]] std::string name() const {
        static constexpr const char* kStrideNames[] = {"dense", "transposed", "repeated", "sliced", "scattered"};
        return fmt::format("{} x ({} x {} x {}), a {}, b {}", batch, m, k, n, kStrideNames[static_cast<int>(a)],
                           kStrideNames[static_cast<int>(b)]);
    }
};

/// An operand on the device, and its elements in row-major order on the host.
struct MatmulOperand {
    ops::View view;
    std::vector<double> elements;
};

inline MatmulOperand matmul_operand(OperandStrides strides, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                    std::uint64_t seed, DType dtype) {
    MatmulOperand operand;
    switch (strides) {
        case OperandStrides::dense:
            operand.view = random_tensor({batch, rows, columns}, seed, dtype).view();
            break;
        case OperandStrides::transposed:
            operand.view = ops::permuted(random_tensor({batch, columns, rows}, seed, dtype).view(), {0, 2, 1});
            break;
        case OperandStrides::repeated:
            operand.view =
                ops::expanded("test", random_tensor({1, rows, columns}, seed, dtype).view(), {batch, rows, columns});
            break;
        case OperandStrides::sliced:
            operand.view = ops::sliced(random_tensor({batch, rows, columns + 3}, seed, dtype).view(), 2, 2, columns);
            break;
        case OperandStrides::scattered:
            operand.view =
                ops::sliced(random_tensor({batch, rows, 2 * columns + 1}, seed, dtype).view(), 2, 1, columns, 2);
            break;
    }
    operand.elements = values(Tensor(operand.view));
    return operand;
}

inline std::vector<double> matmul_reference(const MatmulCase& test_case, const std::vector<double>& a,
                                            const std::vector<double>& b) {
    const auto m = static_cast<std::size_t>(test_case.m), n = static_cast<std::size_t>(test_case.n),
               k = static_cast<std::size_t>(test_case.k);
    std::vector<double> out(static_cast<std::size_t>(test_case.batch) * m * n);
    for (std::size_t z = 0; z < static_cast<std::size_t>(test_case.batch); ++z)
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t l = 0; l < k; ++l)
                for (std::size_t j = 0; j < n; ++j)
                    out[(z * m + i) * n + j] += a[(z * m + i) * k + l] * b[(z * k + l) * n + j];
    return out;
}

inline const std::vector<MatmulCase>& matmul_cases() {
    static const std::vector<MatmulCase> cases = {
        {1, 1, 1, 1},
        {1, 1, 1, 7},
        {1, 1, 9, 1},
        {1, 9, 1, 1},
        {2, 3, 5, 7},
        {3, 1, 17, 4},
        {3, 17, 1, 4},
        {1, 6, 16, 5},
        {1, 7, 17, 5},
        {1, 5, 15, 3},
        {1, 12, 32, 8},
        {1, 13, 33, 9},
        {2, 7, 18, 5, OperandStrides::transposed, OperandStrides::dense},
        {2, 7, 18, 5, OperandStrides::dense, OperandStrides::transposed},
        {2, 7, 18, 5, OperandStrides::transposed, OperandStrides::transposed},
        {3, 4, 19, 6, OperandStrides::repeated, OperandStrides::dense},
        {3, 4, 19, 6, OperandStrides::dense, OperandStrides::repeated},
        {3, 4, 19, 6, OperandStrides::repeated, OperandStrides::repeated},
        {2, 8, 21, 5, OperandStrides::sliced, OperandStrides::sliced},
        {2, 8, 21, 5, OperandStrides::scattered, OperandStrides::dense},
        {2, 8, 21, 5, OperandStrides::dense, OperandStrides::scattered},
        {1, 1, 6, 5, OperandStrides::transposed, OperandStrides::scattered},
        {1, 6, 1, 5, OperandStrides::sliced, OperandStrides::transposed},
        {4, 1, 1, 3, OperandStrides::transposed, OperandStrides::sliced},
        {2, 25, 49, 7, OperandStrides::dense, OperandStrides::repeated},
        {3, 24, 80, 133, OperandStrides::repeated, OperandStrides::transposed, true},
        {1, 61, 70, 801, OperandStrides::transposed, OperandStrides::dense, true},
        {2, 7, 9, 35, OperandStrides::sliced, OperandStrides::transposed},
        {1, 1, 17, 50, OperandStrides::dense, OperandStrides::transposed},
        {2, 14, 3, 16, OperandStrides::repeated, OperandStrides::transposed},
        {1, 20, 11, 2050, OperandStrides::dense, OperandStrides::transposed, true},
        {1, 3, 50, 1024, OperandStrides::dense, OperandStrides::transposed, true},
        {1, 33, 47, 129, OperandStrides::dense, OperandStrides::dense, true},
        {1, 64, 64, 64, OperandStrides::dense, OperandStrides::transposed, true},
        {1, 128, 10, 3136, OperandStrides::dense, OperandStrides::transposed,
         true},  // the dense layer after two convolutions with pooling
        {1, 10, 3136, 128, OperandStrides::transposed, OperandStrides::dense, true},  // its weight gradient
        {8, 37, 41, 65, OperandStrides::transposed, OperandStrides::dense, true},
        {5, 100, 90, 70, OperandStrides::sliced, OperandStrides::transposed, true},
        {1, 70, 49, 400, OperandStrides::scattered, OperandStrides::scattered, true},
        {1, 17, 500, 90, OperandStrides::sliced, OperandStrides::dense, true},
        {1, 73, 65, 900, OperandStrides::transposed, OperandStrides::dense, true},
        {1, 9, 33, 1300, OperandStrides::dense, OperandStrides::dense, true},
        {70, 5, 6, 7},
        {65, 9, 17, 10, OperandStrides::repeated, OperandStrides::transposed, true},
        {1, 1, 400, 500, OperandStrides::dense, OperandStrides::dense, true},
        {1, 400, 1, 500, OperandStrides::transposed, OperandStrides::dense, true},
        {1, 1100, 20, 10, OperandStrides::dense, OperandStrides::dense, true},
        {1, 130, 260, 300, OperandStrides::transposed, OperandStrides::transposed, true},
        {2, 300, 200, 100, OperandStrides::dense, OperandStrides::dense, true},
    };
    return cases;
}

}  // namespace declivity::reference
