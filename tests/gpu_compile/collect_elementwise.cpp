// Elementwise functions, chains, random numbers.
#include <functional>
#include <vector>

#include <declivity/ops/random.hpp>

#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;
using namespace declivity::ops;

namespace declivity::gpu_compile {

std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> chains() {
    return {
        [](const Tensor& a, const Tensor& b) {
            return maximum(minimum((a + b) * (a - b), a * b), neg(abs(a)) + square(b) * 2.0 + 1.0);
        },
        [](const Tensor& a, const Tensor& b) {
            return a / b + reciprocal(a) * sqrt(b) - leaky_relu(a) * clamp(b, -1, 1) + relu(a);
        },
        [](const Tensor& a, const Tensor& b) { return exp(a) + log(b); },
        [](const Tensor& a, const Tensor& b) { return tanh(a) * sigmoid(b); },
        [](const Tensor& a, const Tensor& b) { return gelu(a) + silu(b); },
        [](const Tensor& a, const Tensor& b) { return pow(a, b); },
        [](const Tensor& a, const Tensor&) { return pow(a, 2.5); },
        [](const Tensor& a, const Tensor& b) { return sin(a) + tan(b); },
        [](const Tensor& a, const Tensor& b) { return cos(a) + acos(b) + asin(a); },
        [](const Tensor& a, const Tensor& b) { return atan2(a, b) + hypot(a, b) + atan(a); },
        [](const Tensor& a, const Tensor& b) { return sinh(a) + cosh(b) + asinh(a); },
        [](const Tensor& a, const Tensor& b) { return acosh(a) + atanh(b); },
        [](const Tensor& a, const Tensor& b) { return log2(a) + log10(b) + exp2(a) + logaddexp(a, b); },
        [](const Tensor& a, const Tensor& b) { return lgamma(a) + erfinv(b); },
        [](const Tensor& a, const Tensor& b) { return digamma(a) + erf(b) * erfc(a); },
        [](const Tensor& a, const Tensor& b) { return mish(a) + gelu_tanh(b) + softplus(a) + elu(b); },
        [](const Tensor& a, const Tensor& b) { return floor(a) + round(b) + frac(a) + copysign(a, b); },
        [](const Tensor& a, const Tensor& b) { return where(less(a, b), a, b); },
        [](const Tensor& a, const Tensor& b) { return mse_loss(a, b, Reduction::none); },
        [](const Tensor& a, const Tensor& b) { return bce_with_logits(a, b, Reduction::none); },
        [](const Tensor& a, const Tensor& b) {
            return gelu(tanh(a * b) + exp(-silu(a)) * pow(b, 1.5)) / (sigmoid(a) + log(b));
        },
    };
}

Tensor laid(DType dtype, const Shape& shape, bool reversed) {
    if (!reversed) return of(dtype, shape);
    Shape other;
    Dims order;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) other.push_back(shape[axis]), order.push_back(axis);
    return permute(of(dtype, other), order);
}

}  // namespace declivity::gpu_compile

namespace {

void elementwise_functions() {
    const auto all = chains();
    for (const DType dtype : kFloats)
        for (const auto& chain : all) {
            // f16 and bf16 are computed in f32.
            if (!all_combinations() && is_16bit_float(dtype) && &chain != &all.front() && &chain != &all.back())
                continue;
            const std::vector<Tensor> leaves{leaf(dtype, {6, 40}), leaf(dtype, {6, 40})};
            backward(chain(leaves[0], leaves[1]), leaves);
        }
    // Integers, comparisons, and all conversions.
    constexpr std::array kAll{DType::f32, DType::f64,     DType::i8,  DType::u8,  DType::i32,
                              DType::i64, DType::boolean, DType::f16, DType::bf16};
    for (const DType from : kAll) {
        for (const DType to : kAll)
            if (from != to && (all_combinations() || from == DType::f32 || to == DType::f32 ||
                               (is_floating(from) && is_floating(to))))
                compute(of(from, {7, 11}).to(to));
        const Tensor a = of(from, {7, 11}), b = of(from, {7, 11});
        compute(equal(a, b));
        if (from != DType::boolean) compute(maximum(a * b - a, minimum(a, b)) * 3.0 + 2.0);
    }
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64})
        compute(arange(0, 9, 1, {.dtype = dtype}));
    for (const DType dtype : {DType::i8, DType::u8, DType::i32, DType::i64}) {
        const Tensor a = of(dtype, {7, 11}), b = of(dtype, {7, 11});
        compute(bitwise_left_shift(a, b) + bitwise_right_shift(b, a) + floor(a) + sign(b));
    }
}

void index_spaces() {
    for (const DType dtype : kFloats) {
        // All ranks, with broadcast operands, strided operands, and both.
        Shape shape, stretched;
        for (int rank = 1; rank <= Dims::kMaxRank; ++rank) {
            shape.push_back(rank % 2 == 0 ? 3 : 2);
            stretched.push_back(rank % 2 == 0 ? 3 : 1);
            if (!all_combinations() && dtype != DType::f32 && rank % 3 != 2) continue;
            compute(laid(dtype, shape, false) + laid(dtype, shape, true));
            compute(laid(dtype, shape, true) * 2.0);
            compute(laid(dtype, shape, false) + of(dtype, stretched) * laid(dtype, shape, true));
        }
        // The maximum number of operands of a kernel, with additional outputs, over as many axes as possible.
        for (const bool reversed : {false, true}) {
            std::vector<Tensor> retained;
            Tensor sum = laid(dtype, shape, reversed);
            for (int i = 0; i < 5; ++i)
                retained.push_back(sum), sum = exp(sum * 0.5 + laid(dtype, shape, i % 2 == 0) * of(dtype, stretched));
            compute(sum);
            for (const Tensor& tensor : retained) compute(tensor);
        }
        // Copies: of strided operands to dense ones, of rows of wider matrices, concatenation.
        dense_copy(permute(of(dtype, {33, 65}), {1, 0}));
        dense_copy(permute(of(dtype, {3, 64, 5, 128}), {2, 3, 0, 1}));
        dense_copy(slice(of(dtype, {9, 21}), 1, 2, 15, 3));
        compute(concat({of(dtype, {3, 5}), of(dtype, {4, 5})}, 0));
        compute(concat({of(dtype, {3, 5}), of(dtype, {3, 2})}, 1));
        compute(pad(of(dtype, {3, 5}), {1, 2}, {0, 3}));
        compute(full({5, 3}, 1.5, {.dtype = dtype}));
    }
}

void random_numbers() {
    for (const DType dtype : kReals) {
        const TensorOptions options{.dtype = dtype};
        compute(uniform({1000}, -1, 2, options));
        compute(normal({33, 7}, 0, 1, options));
        compute(bernoulli({9, 100}, 0.3, options));
        compute(normal({4, 1, 7}, 0, 1, options) + uniform({4, 5, 7}, 0, 1, options) * of(dtype, {4, 5, 1}));
        compute(sum(normal({8, 4096}, 0, 1, options) * of(dtype, {8, 4096}), {1}));
        const std::vector<Tensor> leaves{leaf(dtype, {16, 100})};
        backward(dropout(relu(leaves[0]), 0.25), leaves);
    }
    for (const DType dtype : {DType::f16, DType::bf16}) {
        const std::vector<Tensor> leaves{leaf(dtype, {16, 100})};
        backward(dropout(leaves[0], 0.25), leaves);
    }
}

const Part elementwise_part{"elementwise", elementwise_functions};
const Part index_spaces_part{"index_spaces", index_spaces};
const Part random_part{"random", random_numbers};

}  // namespace
