// Other functions of layers, optimizers.
#include <declivity/ops/classification.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/pool2d.hpp>
#include <declivity/optim/adadelta.hpp>
#include <declivity/optim/adagrad.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/radam.hpp>
#include <declivity/optim/rmsprop.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/ceilings.hpp>
#include <declivity/runtime/device.hpp>

#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;
using namespace declivity::ops;

namespace {

void pools() {
    const std::vector<std::pair<Shape, declivity::Pool2dParameters>> cases{
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

/// Row operators with fused functions before and after; the last shape has rows that do not fit into a group's memory.
void fused_rows() {
    const NoGrad none;
    for (const DType dtype : kFloats)
        for (const Shape& shape : {Shape{40, 300}, Shape{3, 7}, Shape{2, 4, 65}, Shape{4, 20000}}) {
            const Shape last{shape.back()};
            const Tensor x = of(dtype, shape), other = of(dtype, shape), row = of(dtype, last);
            for (const bool with_activation : {false, true}) {
                const auto end = [&](Tensor y) { compute(with_activation ? gelu(std::move(y) + row) : std::move(y)); };
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

/// Indexing functions, and recurrent cells.
void places() {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::i8})
        for (const std::int64_t k : {std::int64_t{5}, std::int64_t{300}})
            for (const bool largest : {true, false}) compute(topk(of(dtype, {7, 400}), k, -1, largest).values);
    for (const DType dtype : kReals) {
        const std::vector<Tensor> rows{leaf(dtype, {7, 40})}, table{leaf(dtype, {50, 33})};
        backward(topk(rows[0], 3).values, rows);
        for (const DType index : {DType::i32, DType::i64}) backward(embedding(of(index, {9, 4}), table[0]), table);
        const Tensor index = of(DType::i64, {7, 20});
        for (const auto fold : {ScatterReduction::sum, ScatterReduction::amax, ScatterReduction::amin})
            compute(scatter_reduce(of(dtype, {7, 30}), 1, index, of(dtype, {7, 20}), fold));
        compute(scatter(of(dtype, {7, 30}), 1, index, of(dtype, {7, 20})));
        compute(scatter_add(of(dtype, {7, 30}), 1, index, of(dtype, {7, 20})));
        backward(gather(rows[0], 0, of(DType::i32, {7, 40})), rows);
        backward(scatter(rows[0], 1, index, of(dtype, {7, 20})), rows);
        for (const Tensor& x : {of(dtype, {7, 400}), of(dtype, {400, 7}), of(dtype, {5000, 1})})
            for (const std::int64_t axis : {0, 1}) {
                compute(cumsum(x, axis));
                compute(cumprod(x, axis));
                compute(logcumsumexp(x, axis));
                compute(cummax(x, axis).values);
                compute(cummin(x, axis).values);
            }
        for (const bool right : {false, true}) {
            compute(searchsorted(of(dtype, {9}), of(dtype, {7, 5}), right));
            compute(searchsorted(of(dtype, {7, 9}), of(dtype, {7, 5}), right));
        }
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
            for (Tensor& item : list) backward(item * 1.0, {});
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
        optim::clip_grad_value(parameters(), 1.0);
        const View guard = of(DType::i32, {2}).view(), steps = of(dtype, {2}).view(),
                   tensors = of(DType::i64, {2}).view();
        check_finite(of(dtype, {3}).view(), guard);
        count_step(steps, tensors, guard);
        check_finite(of(dtype, {}).view(), of(DType::f32, {}).view(), guard, true);
        skip_weightless(of(DType::f32, {}).view(), guard);
        end_skip(guard);
        MultiTensor gradients(1), saved(2);
        const Tensor from = of(dtype, {5000}), to = of(dtype, {5000});
        gradients.set({{from.view()}});
        check_finite(gradients, guard);
        saved.set({{from.view()}, {to.view()}});
        save_unless_noted(saved, guard);
        for (const DType label : {DType::i32, DType::i64}) {
            const Tensor totals = of(DType::f32, {4}), counters = of(DType::i64, {4});
            add_classification(of(dtype, {30, 10}).view(), of(label, {30}).view(), of(dtype, {}).view(), {.value = 30},
                               totals.view(), counters.view());
            compute(totals);
        }
    }
}

void ceilings() { (void)measure_ceilings(Device::best()); }

const Part pools_part{"pools", pools};
const Part fused_rows_part{"fused_rows", fused_rows};
const Part normalisation_part{"normalisation", normalisations};
const Part rows_part{"rows", row_normalisations};
const Part places_part{"places", places};
const Part optimizers_part{"optimizers", optimizers};
const Part ceilings_part{"ceilings", ceilings};

}  // namespace
