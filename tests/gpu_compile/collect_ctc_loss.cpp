// CTC loss.
#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void sequences() {
    for (const DType dtype : kReals)
        for (const std::int64_t labels : {2, 40}) {
            const std::vector<Tensor> leaves{leaf(dtype, {100, 4, 11})};
            const Tensor lengths = of(DType::i64, {4});
            backward(ctc_loss(leaves[0], of(DType::i64, {4, labels}), lengths, lengths), leaves);
        }
}

const Part part{"ctc_loss", sequences};

}  // namespace
