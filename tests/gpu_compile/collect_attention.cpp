// Attention, forward and backward.
#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void attentions() {
    for (const DType dtype : {DType::f32, DType::f16})
        for (const std::int64_t width : {16, 64, 120, 128}) {
            const std::vector<Tensor> leaves{leaf(dtype, {2, 4, 70, width}), leaf(dtype, {2, 2, 90, width}),
                                             leaf(dtype, {2, 2, 90, width})};
            const auto both = [&](AttentionParameters options) {
                options.enable_gqa = true;
                backward(scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], options), leaves);
            };
            both({});
            if (width != 64) continue;
            both({.attn_mask = of(DType::boolean, {70, 90}), .dropout_p = 0.1});
            both({.attn_mask = of(dtype, {70, 90}), .alibi_slopes = of(dtype, {4})});
            compute(scaled_dot_product_attention(leaves[0].detach(), leaves[1].detach(), leaves[2].detach(),
                                                 {.enable_gqa = true}));
        }
}

const Part part{"attention", attentions};

}  // namespace
