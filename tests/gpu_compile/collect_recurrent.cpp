// Recurrent layers, forward and backward.
#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void layers() {
    for (const DType dtype : {DType::f32, DType::f64})
        for (const bool with_lengths : {false, true}) {
            const SequenceParameters options{with_lengths, with_lengths ? of(DType::i64, {5}) : Tensor()};
            const auto leaves = [&](std::int64_t gates) {
                return std::vector<Tensor>{leaf(dtype, {3, 5, 9}),       leaf(dtype, {5, 12}),
                                           leaf(dtype, {gates * 12, 9}), leaf(dtype, {gates * 12, 12}),
                                           leaf(dtype, {gates * 12}),    leaf(dtype, {5, 12})};
            };
            for (const RnnNonlinearity f : {RnnNonlinearity::tanh, RnnNonlinearity::relu}) {
                const std::vector<Tensor> in = leaves(1);
                backward(rnn(in[0], in[1], in[2], in[3], in[4], {}, f, options).y, {in[0], in[1], in[2], in[3], in[4]});
            }
            std::vector<Tensor> in = leaves(3);
            backward(gru(in[0], in[1], in[2], in[3], in[4], in[4], true, options).y,
                     {in[0], in[1], in[2], in[3], in[4]});
            in = leaves(4);
            backward(lstm(in[0], {in[1], in[5]}, in[2], in[3], in[4], {}, {.sequence = options}).y, in);
        }
}

const Part part{"recurrent", layers};

}  // namespace
