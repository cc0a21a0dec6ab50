// Reductions, softmax, losses, selection.
#include <declivity/ops/softmax.hpp>

#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;
using namespace declivity::ops;

namespace {

void reductions() {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                              DType::i8, DType::boolean}) {
        const bool plain = dtype == DType::f32 || all_combinations();
        for (auto* call : {+[](Tensor x, const Dims&axes) { return sum(std::move(x), axes); },
                           +[](Tensor x, const Dims&axes) { return max(std::move(x), axes); },
                           +[](Tensor x, const Dims&axes) { return min(std::move(x), axes); }}) {
            compute(call(of(dtype, {50, 700}), {1}));  // contiguous elements
            compute(call(of(dtype, {700, 50}), {0}));  // contiguous results
            compute(call(of(dtype, {1000000}), {}));   // in two passes
            if (!plain) continue;
            compute(call(of(dtype, {5, 7, 9, 11}), {0, 2}));
            compute(call(of(dtype, {3, 2, 3, 2, 3, 2, 3, 2}), {0, 2, 4, 6}));
            compute(call(of(dtype, {3, 2, 3, 2, 3, 2, 3, 2}), {1, 3, 5, 7}));
            compute(call(permute(of(dtype, {7, 5, 9}), {2, 0, 1}), {1}));
        }
        if (!is_floating(dtype)) continue;
        compute(mean(of(dtype, {40, 300}), {1}));
        // Reductions fused with a preceding chain.
        for (bool first = true; const auto& chain : chains()) {
            if (!plain && !std::exchange(first, false)) break;
            compute(sum(chain(of(dtype, {30, 512}), of(dtype, {30, 512})), {1}));
            compute(sum(chain(of(dtype, {6, 5, 300}), laid(dtype, {6, 5, 300}, true)), {0, 2}));
        }
        compute(max(of(dtype, {30, 512}) * of(dtype, {512}), {1}));
        compute(min(laid(dtype, {3, 4, 5, 100}, true) + of(dtype, {3, 4, 5, 100}), {3}));
        std::vector<Tensor> leaves{leaf(dtype, {12, 70})};
        backward(sum(max(leaves[0] * leaves[0], {1})), leaves);
        backward(mean(leaves[0], {0}), leaves);
    }
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                              DType::i8, DType::boolean}) {
        compute(argmax(of(dtype, {40, 1000}), 1));
        compute(argmax(of(dtype, {1000, 40}), 0));
    }
}

void losses() {
    for (const DType dtype : kFloats) {
        const std::vector<Tensor> leaves{leaf(dtype, {30, 1000})};
        for (const std::int64_t axis : {0, 1}) {
            backward(softmax(leaves[0], axis), leaves);
            backward(log_softmax(leaves[0], axis), leaves);
        }
        backward(mse_loss(leaves[0], of(dtype, {30, 1000})), leaves);
        backward(bce_with_logits(leaves[0], of(dtype, {30, 1000}), Reduction::sum), leaves);
        for (const DType label : {DType::i32, DType::i64})
            for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
                for (const double smoothing : {0.0, 0.1}) {
                    const std::vector<Tensor> own{leaf(dtype, {30, 11})};
                    backward(
                        cross_entropy(own[0], of(label, {30}), {.reduction = reduction, .label_smoothing = smoothing}),
                        own);
                    backward(cross_entropy(leaves[0], of(label, {30}),
                                           {.reduction = reduction, .label_smoothing = smoothing}),
                             leaves);
                }
    }
}

void sorts() {
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean, DType::u32})
        for (const bool falling : {false, true}) compute(sort(of(dtype, {3, 1500}), 1, falling).values);
}

const Part sorts_part{"sorts", sorts};
const Part reductions_part{"reductions", reductions};
const Part losses_part{"losses", losses};

}  // namespace
