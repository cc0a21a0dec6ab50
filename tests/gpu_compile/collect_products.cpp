// Matrix products.
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include <ops/matmul/matmul_strategies.hpp>

#include "tests/gpu_compile/collect.hpp"
#include "tests/gpu_compile/collect_epilogues.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;
using namespace declivity::ops;

namespace {

/// The layouts of an operand (batch, rows, columns): row-major or column-major, aligned or at odd offsets, or neither.
View operand(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t columns, int form) {
    const Device device = Device::best();
    switch (form) {
        case 0:
            return View::make(device, dtype, {batch, rows, columns});
        case 1:
            return permuted(View::make(device, dtype, {batch, columns, rows}), {0, 2, 1});
        case 2:
            return sliced(View::make(device, dtype, {batch, rows, columns + 3}), 2, 1, columns);
        case 3:
            return permuted(sliced(View::make(device, dtype, {batch, columns, rows + 3}), 2, 1, rows), {0, 2, 1});
        default:
            return sliced(View::make(device, dtype, {batch, rows, 2 * columns}), 2, 0, columns, 2);
    }
}

/// @param each_tile with all tiles, or only the largest
void product(const View& a, const View& b, bool many_epilogues, bool each_tile = true) {
    const View out = View::make(a.device(), a.dtype, {a.shape[0], a.shape[1], b.shape[2]});
    for (const bool constant : {false, true}) {
        const MatmulProblem problem = matmul_problem(a, b, constant ? OperandUse::constant : OperandUse::variable);
        for (const MatmulStrategy* strategy : matmul_strategies()) {
            // CLBlast has its own kernels.
            if (strategy == &matmul_clblast() || !strategy->is_applicable(problem, a.device())) continue;
            std::vector<std::string> variants = strategy->variants(problem, a.device());
            if (!each_tile) variants.resize(1);
            for (const std::string& variant : variants)
                for (const KernelEpilogue& epilogue :
                     epilogues(out, EpilogueTarget::product,
                               many_epilogues && strategy->fuses_epilogue(problem, a.device(), variant) &&
                                   takes_epilogues(variants, variant)))
                    strategy->run(problem, {a, b, out, epilogue}, variant);
        }
    }
}

void products() {
    for (const DType dtype : kFloats) {
        // Every tile with operands of each layout, with aligned and odd sizes; other combinations only with the largest
        // tile, which uses most registers.
        for (int a = 0; a < 5; ++a)
            for (int b = 0; b < 5; ++b) {
                const bool each_tile = all_combinations() || (a < 4 && a == b && dtype != DType::bf16);
                if (!each_tile && dtype != DType::f32 && a != b) continue;
                product(operand(dtype, 1, 256, 4096, a), operand(dtype, 1, 4096, 256, b), false, each_tile);
                if (each_tile && (all_combinations() || a < 2))
                    product(operand(dtype, 2, 127, 65, a), operand(dtype, 2, 65, 131, b), false);
            }
        product(operand(dtype, 1, 256, 512, 0), operand(dtype, 1, 512, 256, 1), true);
        for (const std::int64_t few : {1, 2, 3, 4})
            for (const int form : {0, 1, 2}) {
                product(operand(dtype, 1, few, 4096, 0), operand(dtype, 1, 4096, 300, form), few == 4 && form == 0);
                product(operand(dtype, 1, 300, 37, form), operand(dtype, 1, 37, few, 0), false);
            }
        const std::vector<Tensor> leaves{leaf(dtype, {33, 20}), leaf(dtype, {15, 20}), leaf(dtype, {15})};
        backward(relu(linear(leaves[0], leaves[1], leaves[2])), leaves);
    }
}

const Part products_part{"products", products};

}  // namespace
