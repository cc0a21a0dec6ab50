// Writes the programs of the kernels that a GPU-like device may be given into a folder, for compilers of GPUs
// (compile.cpp).
//
//   gpu_compile_collect FOLDER [--all] [PART...]
//
// Goes through the catalogue of operators as the chooser and the tuner do: all strategies that can serve, all of their
// variants, all types, aligned sizes and odd ones, with epilogues and without. --all: each combination of them, where
// otherwise those are left out that only repeat what others have. The parts are those that it prints. The kernels are
// made, with DECLIVITY_FAMILY=gpu, on whatever device there is; nothing runs: launches end here.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CL/cl.h>

#include <declivity/ops/classification.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/ops/matmul.hpp>
#include <declivity/ops/pool2d.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/ops/softmax.hpp>
#include <declivity/optim/adadelta.hpp>
#include <declivity/optim/adagrad.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/radam.hpp>
#include <declivity/optim/rmsprop.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/ceilings.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <ops/conv/conv2d_strategy.hpp>
#include <ops/matmul/matmul_strategies.hpp>

#include "tests/support/real_function.hpp"

// A program's own definition of a symbol is taken before that of a shared library.
extern "C" __attribute__((visibility("default"))) cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel,
                                                                                cl_uint, const size_t*, const size_t*,
                                                                                const size_t*, cl_uint, const cl_event*,
                                                                                cl_event* event) {
    static auto* marker = declivity::test::real<decltype(clEnqueueMarkerWithWaitList)>("clEnqueueMarkerWithWaitList");
    return event != nullptr ? marker(queue, 0, nullptr, event) : CL_SUCCESS;
}

using namespace declivity;
using namespace declivity::ops;

namespace {

bool all_combinations = false;

constexpr std::array kReals{DType::f32, DType::f64};
constexpr std::array kFloats{DType::f32, DType::f64, DType::f16, DType::bf16};

Tensor of(DType dtype, const Shape& shape) { return zeros(shape, {.dtype = dtype}); }
Tensor leaf(DType dtype, const Shape& shape) { return of(dtype, shape).set_requires_grad(); }
/// Makes the kernels that a value waits for.
void compute(const Tensor& value) { (void)value.view(); }
void dense_copy(const Tensor& strided) { (void)dense_copy_if_needed(strided.view()); }
void backward(const Tensor& result, const std::vector<Tensor>& leaves) {
    const Tensor gradient = of(result.dtype(), result.shape());
    result.backward(gradient);
    for (const Tensor& one : leaves)
        if (one.grad().defined()) compute(one.grad());
}

// ---- elementwise functions, chains, random numbers

/// Calls of all rows of the table over operands like `x`; those with a dear gradient are apart.
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
        [](const Tensor& a, const Tensor& b) { return where(less(a, b), a, b); },
        [](const Tensor& a, const Tensor& b) { return mse_loss(a, b, Reduction::none); },
        [](const Tensor& a, const Tensor& b) { return bce_with_logits(a, b, Reduction::none); },
        [](const Tensor& a, const Tensor& b) {
            return gelu(tanh(a * b) + exp(-silu(a)) * pow(b, 1.5)) / (sigmoid(a) + log(b));
        },
    };
}

void elementwise_functions() {
    const auto all = chains();
    for (const DType dtype : kFloats)
        for (const auto& chain : all) {
            // Halves are computed as f32.
            if (!all_combinations && is_half(dtype) && &chain != &all.front() && &chain != &all.back()) continue;
            const std::vector<Tensor> leaves{leaf(dtype, {6, 40}), leaf(dtype, {6, 40})};
            backward(chain(leaves[0], leaves[1]), leaves);
        }
    // Whole numbers, comparisons, and all conversions.
    constexpr std::array kAll{DType::f32, DType::f64,     DType::i8,  DType::u8,  DType::i32,
                              DType::i64, DType::boolean, DType::f16, DType::bf16};
    for (const DType from : kAll) {
        for (const DType to : kAll)
            if (from != to &&
                (all_combinations || from == DType::f32 || to == DType::f32 || (is_floating(from) && is_floating(to))))
                compute(of(from, {7, 11}).to(to));
        const Tensor a = of(from, {7, 11}), b = of(from, {7, 11});
        compute(equal(a, b));
        if (from != DType::boolean) compute(maximum(a * b - a, minimum(a, b)) * 3.0 + 2.0);
    }
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64})
        compute(arange(0, 9, 1, {.dtype = dtype}));
}

/// One dense operand of a shape, or one whose axes lie the other way round.
Tensor laid(DType dtype, const Shape& shape, bool reversed) {
    if (!reversed) return of(dtype, shape);
    Shape other;
    Dims order;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) other.push_back(shape[axis]), order.push_back(axis);
    return permute(of(dtype, other), order);
}

void index_spaces() {
    for (const DType dtype : kFloats) {
        // All ranks, with operands that stretch, that are strided, and that are both.
        Shape shape, stretched;
        for (int rank = 1; rank <= Dims::kMaxRank; ++rank) {
            shape.push_back(rank % 2 == 0 ? 3 : 2);
            stretched.push_back(rank % 2 == 0 ? 3 : 1);
            if (!all_combinations && dtype != DType::f32 && rank % 3 != 2) continue;
            compute(laid(dtype, shape, false) + laid(dtype, shape, true));
            compute(laid(dtype, shape, true) * 2.0);
            compute(laid(dtype, shape, false) + of(dtype, stretched) * laid(dtype, shape, true));
        }
        // As many operands as a kernel takes, with results beside its own, over as many axes as possible.
        for (const bool reversed : {false, true}) {
            std::vector<Tensor> kept;
            Tensor sum = laid(dtype, shape, reversed);
            for (int i = 0; i < 5; ++i)
                kept.push_back(sum), sum = exp(sum * 0.5 + laid(dtype, shape, i % 2 == 0) * of(dtype, stretched));
            compute(sum);
            for (const Tensor& one : kept) compute(one);
        }
        // Copies: dense ones of strided operands, rows of wider matrices, parts put together.
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

// ---- reductions, softmax, losses, what is chosen

void reductions() {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                              DType::i8, DType::boolean}) {
        const bool plain = dtype == DType::f32 || all_combinations;
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
        // Reductions that end a chain.
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

// ---- products

/// The forms of an operand (batch, rows, columns): its rows side by side or its columns, on aligned places or odd ones,
/// or neither.
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

/// What a strategy is given to do with its sums: nothing; a function, or its gradient, of all that may be added. Of
/// these those that it takes.
std::vector<KernelEpilogue> epilogues(const View& out, EpilogueOf of, bool many) {
    std::vector<KernelEpilogue> epilogues(1);
    if (!many) return epilogues;
    const Expression dense = View::make(out.device(), out.dtype, out.shape),
                     result = Expression::operator_result(out.dtype, out.shape);
    const bool convolution = of == EpilogueOf::convolution;
    const View numbers =
        View::make(out.device(), out.dtype, convolution ? Shape{out.shape[1], 1, 1} : Shape{out.shape.back()});
    const auto apply = [](Function function, const std::vector<Expression>& inputs,
                          const std::vector<Scalar>& parameters = {}) {
        return Expression::apply(function, inputs, parameters);
    };
    const Expression scaled =
        convolution ? apply(Function::mul, {result, numbers}) : apply(Function::mul_scalar, {result}, {0.5});
    const Expression sum = apply(Function::add, {apply(Function::add, {scaled, numbers}), dense});
    for (const Function function : {Function::relu, Function::leaky_relu, Function::gelu, Function::tanh}) {
        const std::vector<Scalar> parameters(static_cast<std::size_t>(info(function).parameters), 0.1);
        for (const Expression& each : {apply(function, {sum}, parameters),
                                       Expression::gradient(function, 0, result, std::array{dense}, dense, parameters)})
            if (auto taken = kernel_epilogue(epilogue_of(each), out, of)) epilogues.push_back(*std::move(taken));
    }
    return epilogues;
}

/// Epilogues go with the first variant, of the largest tile, and with the last; with all others on demand.
bool takes_epilogues(const std::vector<std::string>& variants, const std::string& variant) {
    return all_combinations || variant == variants.front() || variant == variants.back();
}

/// @param each_tile with all tiles, or only with the largest
void product(const View& a, const View& b, bool many_epilogues, bool each_tile = true) {
    const View out = View::make(a.device(), a.dtype, {a.shape[0], a.shape[1], b.shape[2]});
    for (const bool constant : {false, true}) {
        const MatmulProblem problem = matmul_problem(a, b, constant ? OperandUse::constant : OperandUse::variable);
        for (const MatmulStrategy* strategy : matmul_strategies()) {
            // CLBlast's kernels are its own.
            if (strategy == &matmul_clblast() || !strategy->can_serve(problem, a.device())) continue;
            std::vector<std::string> variants = strategy->variants(problem, a.device());
            if (!each_tile) variants.resize(1);
            for (const std::string& variant : variants)
                for (const KernelEpilogue& epilogue :
                     epilogues(out, EpilogueOf::product,
                               many_epilogues && strategy->takes_epilogue(problem, a.device(), variant) &&
                                   takes_epilogues(variants, variant)))
                    strategy->run(problem, {a, b, out, epilogue}, variant);
        }
    }
}

void products() {
    for (const DType dtype : kFloats) {
        // Every tile with operands of each form, on aligned sizes and odd ones; of other combinations the largest tile,
        // which takes most registers.
        for (int a = 0; a < 5; ++a)
            for (int b = 0; b < 5; ++b) {
                const bool each_tile = all_combinations || (a < 4 && a == b && dtype != DType::bf16);
                if (!each_tile && dtype != DType::f32 && a != b) continue;
                product(operand(dtype, 1, 256, 4096, a), operand(dtype, 1, 4096, 256, b), false, each_tile);
                if (each_tile && (all_combinations || a < 2))
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

// ---- convolutions

struct Convolution {
    Shape x, weight;
    ops::Conv2dParameters options = {};
    bool epilogues = false;
};

std::vector<Convolution> convolutions() {
    return {
        {{4, 64, 32, 32}, {256, 64, 3, 3}, {.padding = {1, 1}}, true},  // aligned, all tiles
        {{4, 64, 32, 32}, {256, 64, 1, 1}},
        {{3, 37, 15, 17}, {131, 37, 3, 3}, {.padding = {1, 1}}},  // odd
        {{3, 37, 17, 15}, {129, 37, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
        {{2, 64, 16, 16}, {129, 64, 1, 1}},
        {{2, 64, 15, 15}, {128, 64, 1, 1}},
        {{2, 3, 64, 64}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
        {{1, 131, 5, 7}, {140, 131, 1, 1}},
        {{2, 6, 14, 14}, {16, 6, 5, 5}},
        {{2, 2, 9, 12}, {3, 2, 3, 3}, {.padding = {2, 3}, .dilation = {2, 3}}},
        {{2, 6, 6, 5}, {9, 2, 3, 3}, {.padding = {1, 1}, .groups = 3}},
        {{1, 1, 13, 12}, {2, 1, 12, 12}},
        {{1, 1, 28, 28}, {1, 1, 3, 3}},
        {{1, 2, 3, 150}, {2, 2, 2, 3}, {.padding = {0, 1}}},
        {{4, 64, 28, 28}, {64, 1, 3, 3}, {.padding = {1, 1}, .groups = 64}, true},
        {{4, 64, 28, 28}, {64, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 64}},
        {{2, 20, 31, 28}, {20, 1, 5, 5}, {.stride = {2, 2}, .padding = {2, 2}, .groups = 20}},
        {{1, 17, 21, 19}, {17, 1, 7, 7}, {.padding = {3, 3}, .groups = 17}},
        {{1, 4, 13, 17}, {4, 1, 3, 2}, {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 4}},
    };
}

void convolution_strategies() {
    const Device device = Device::best();
    for (const DType dtype : kFloats)
        for (const Convolution& one : convolutions())
            for (const auto direction :
                 {Conv2dDirection::forward, Conv2dDirection::backward_input, Conv2dDirection::backward_weights}) {
                const Conv2dProblem problem =
                    conv2d_problem("collect", direction, dtype, Family::gpu_like, one.x, one.weight, one.options);
                const Shape out = conv2d_shape("collect", one.x, one.weight, one.options);
                const bool forward = direction == Conv2dDirection::forward;
                for (const Conv2dStrategy* strategy : conv2d_strategies()) {
                    // Others serve halves by their kernels of f32.
                    if (is_half(dtype) && strategy != &conv2d_local() && strategy != &conv2d_direct()) continue;
                    if (!strategy->can_serve(problem, device)) continue;
                    const std::vector<std::string> variants = strategy->variants(problem, device);
                    for (const std::string& variant : variants) {
                        Conv2dOperands operands{View::make(device, dtype, one.x), View::make(device, dtype, one.weight),
                                                View::make(device, dtype, out)};
                        const bool tailed = one.epilogues && direction != Conv2dDirection::backward_weights &&
                                            takes_epilogues(variants, variant) &&
                                            strategy->takes_epilogue(problem, device, variant);
                        for (const KernelEpilogue& epilogue :
                             epilogues(forward ? operands.out : operands.x, EpilogueOf::convolution, tailed)) {
                            operands.epilogue = epilogue;
                            if (forward) operands.bias = View::make(device, dtype, {one.weight[0]});
                            strategy->run(problem, operands, variant);
                        }
                        if (direction != Conv2dDirection::backward_weights) continue;
                        conv2d_backward_bias(operands.out, View::make(device, dtype, {one.weight[0]}));
                    }
                }
            }
}

// ---- layers' other functions, optimizers

void pools() {
    const std::vector<std::pair<Shape, Pool2dParameters>> cases{
        {{3, 5, 28, 28}, {}},
        {{3, 5, 27, 29}, {.kernel_size = 3, .stride = 2, .padding = 1}},
        {{2, 3, 8, 9}, {.kernel_size = 5, .stride = 1, .padding = 2, .count_include_pad = false}},
        {{2, 3, 7, 5}, {.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 0}}},
        {{2, 3, 56, 56}, {.kernel_size = 2, .stride = 3}},
        {{2, 3, 40, 40}, {.kernel_size = 13, .stride = 4, .padding = 6}}};
    for (const DType dtype : kFloats)
        for (const auto& [shape, options] : cases) {
            const std::vector<Tensor> leaves{leaf(dtype, shape)};
            backward(max_pool2d(leaves[0], options), leaves);
            compute(max_pool2d(leaves[0].detach(), options));
            backward(avg_pool2d(leaves[0], options), leaves);
            backward(global_avg_pool2d(leaves[0]), leaves);
        }
}

void normalisations() {
    for (const DType dtype : kFloats)
        for (const Shape& shape : {Shape{8, 16, 14, 14}, Shape{64, 300}, Shape{5, 7, 3}, Shape{2, 3, 100, 100},
                                   Shape{256, 8, 32, 32}, Shape{3, 64, 1, 5}, Shape{2, 64, 16, 16}}) {
            const Shape channels{shape[1]};
            for (const bool training : {true, false}) {
                std::vector<Tensor> leaves{leaf(dtype, shape), leaf(dtype, channels), leaf(dtype, channels)};
                const Tensor mean = of(dtype, channels), variance = of(dtype, channels);
                const BatchNormParameters options{.training = training};
                backward(batch_norm(leaves[0], leaves[1], leaves[2], mean, variance, options), leaves);
                backward(relu(batch_norm(leaves[0], leaves[1], leaves[2], mean, variance, options) + of(dtype, shape)),
                         leaves);
                backward(batch_norm(leaves[0], leaves[1], leaves[2], mean, variance, options) * leaves[0], leaves);
                const NoGrad none;
                compute(batch_norm(leaves[0], leaves[1], leaves[2], mean, variance, options));
            }
        }
}

void row_normalisations() {
    for (const DType dtype : kFloats)
        for (const Shape& shape : {Shape{40, 300}, Shape{3, 7}, Shape{2000, 64}})
            for (const bool affine : {false, true}) {
                const Shape last{shape[1]};
                const std::vector<Tensor> leaves{leaf(dtype, shape), leaf(dtype, last), leaf(dtype, last)};
                const Tensor weight = affine ? leaves[1] : Tensor(), bias = affine ? leaves[2] : Tensor();
                backward(layer_norm(leaves[0], last, weight, bias), leaves);
                backward(layer_norm(leaves[0], last, weight), leaves);
                backward(rms_norm(leaves[0], last, weight), leaves);
            }
}

/// Row operators with functions before and behind them; the last shape has rows that a group does not keep.
void fused_rows() {
    const NoGrad none;
    for (const DType dtype : kFloats)
        for (const Shape& shape : {Shape{40, 300}, Shape{3, 7}, Shape{2, 4, 65}, Shape{4, 20000}}) {
            const Shape last{shape.back()};
            const Tensor x = of(dtype, shape), other = of(dtype, shape), row = of(dtype, last);
            for (const bool behind : {false, true}) {
                const auto end = [&](Tensor y) { compute(behind ? gelu(std::move(y) + row) : std::move(y)); };
                end(softmax(x * 0.5 + row));
                end(log_softmax(x + other));
                end(layer_norm(x + other, last, row, row));
                end(rms_norm(x + other, last, row));
                end(softmax(x));
                end(layer_norm(x, last));
            }
            const Tensor held = x + other, normal = layer_norm(held, last);
            compute(normal);
            compute(dropout(softmax(dropout(x, 0.5)), 0.5));
            compute(softmax(x.to(DType::f16)));
        }
}

/// Elements by their places, and cells.
void places() {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::i8})
        for (const std::int64_t k : {std::int64_t{5}, std::int64_t{300}})
            for (const bool largest : {true, false}) compute(topk(of(dtype, {7, 400}), k, -1, largest).values);
    for (const DType dtype : kReals) {
        const std::vector<Tensor> rows{leaf(dtype, {7, 40})}, table{leaf(dtype, {50, 33})};
        backward(topk(rows[0], 3).values, rows);
        for (const DType index : {DType::i32, DType::i64}) backward(embedding(of(index, {9, 4}), table[0]), table);
        const std::vector<Tensor> image{leaf(dtype, {2, 3, 8, 8})};
        const Tensor first = grad({sum(square(max_pool2d(image[0])))}, image, {.create_graph = true})[0];
        compute(grad({sum(square(first))}, image)[0]);
        const std::vector<Tensor> cell{leaf(dtype, {5, 9}),  leaf(dtype, {5, 12}),  leaf(dtype, {5, 12}),
                                       leaf(dtype, {48, 9}), leaf(dtype, {48, 12}), leaf(dtype, {48})};
        const LstmState next = lstm_cell(cell[0], {cell[1], cell[2]}, cell[3], cell[4], cell[5]);
        backward(next.hidden + next.cell, cell);
    }
}

void optimizers() {
    for (const DType dtype : kReals) {
        const auto parameters = [&] {
            std::vector<Tensor> list{leaf(dtype, {7, 33}), leaf(dtype, {5000})};
            for (Tensor& one : list) backward(one * 1.0, {});
            return list;
        };
        for (const double momentum : {0.0, 0.9})
            for (const bool nesterov : {false, true}) {
                if (nesterov && momentum == 0) continue;
                optim::SGD(parameters(), {.momentum = momentum, .weight_decay = 1e-4, .nesterov = nesterov}).step();
            }
        optim::Adam(parameters(), {}).step();
        optim::AdamW(parameters(), {}).step();
        optim::Adam(parameters(), {.amsgrad = true}).step();
        optim::RMSprop(parameters(), {.momentum = 0.9, .centered = true}).step();
        optim::Adagrad(parameters(), {}).step();
        optim::Adadelta(parameters(), {}).step();
        optim::RAdam(parameters(), {}).step();
        (void)optim::clip_grad_norm(parameters(), 1.0);
        const View guard = of(DType::i32, {2}).view(), progress = of(dtype, {2}).view();
        check_finite(of(dtype, {3}).view(), guard);
        count_step(progress, guard);
        for (const DType label : {DType::i32, DType::i64}) {
            const Tensor totals = of(DType::f32, {2}), noted = of(DType::i64, {4});
            add_classification(of(dtype, {30, 10}).view(), of(label, {30}).view(), of(dtype, {}).view(), totals.view(),
                               noted.view());
            compute(totals);
        }
    }
}

void ceilings() { (void)measure_ceilings(Device::best()); }

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fputs("usage: gpu_compile_collect FOLDER [--all] [PART...]\n", stderr);
        return 2;
    }
    std::set<std::string_view> wanted(argv + 2, argv + argc);
    all_combinations = wanted.erase("--all") > 0;
    const std::filesystem::path folder = argv[1], kernels = folder / "kernels";
    std::filesystem::remove_all(kernels);
    std::filesystem::create_directories(kernels);
    setenv("DECLIVITY_DUMP_KERNELS", kernels.c_str(), 1);
    setenv("DECLIVITY_FAMILY", "gpu", 1);
    setenv("DECLIVITY_CACHE_DIR", "", 1);
    setenv("DECLIVITY_TUNING_FILE", "", 1);
    for (const char* name :
         {"DECLIVITY_CONV2D", "DECLIVITY_MATMUL", "DECLIVITY_TUNE", "DECLIVITY_FUSION", "DECLIVITY_KERNEL_DIR"})
        unsetenv(name);
    setenv("POCL_CACHE_DIR", (folder / "pocl").c_str(), 1);
    const std::vector<std::pair<const char*, void (*)()>> walk{{"elementwise", elementwise_functions},
                                                               {"index_spaces", index_spaces},
                                                               {"random", random_numbers},
                                                               {"reductions", reductions},
                                                               {"losses", losses},
                                                               {"products", products},
                                                               {"convolutions", convolution_strategies},
                                                               {"pools", pools},
                                                               {"fused_rows", fused_rows},
                                                               {"normalisation", normalisations},
                                                               {"rows", row_normalisations},
                                                               {"places", places},
                                                               {"optimizers", optimizers},
                                                               {"ceilings", ceilings}};
    const auto count = [&] { return std::distance(std::filesystem::directory_iterator(kernels), {}); };
    const bool only_some = !wanted.empty();
    for (const auto& [name, part] : walk) {
        if (only_some && wanted.erase(name) == 0) continue;
        const auto before = count();
        part();
        std::printf("%-16s %4td kernels\n", name, count() - before);
        std::fflush(stdout);
    }
    for (const std::string_view name : wanted)
        std::fprintf(stderr, "gpu_compile_collect: there is no part %s\n", std::string(name).c_str());
    return wanted.empty() ? 0 : 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_compile_collect: %s\n", error.what());
    return 1;
}
