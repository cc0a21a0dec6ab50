// Attention, forward and backward.
#include <declivity/ops/attention.hpp>

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

/// Attention with a KV cache: few queries, split keys or not, paged or not; and the writes to the cache.
void cached() {
    const Tensor lengths = of(DType::i64, {2}), table = of(DType::i64, {2, 40});
    for (const DType kept : {DType::f32, DType::f16, DType::bf16})
        for (const std::int64_t width : {33, 64, 128, 256}) {
            const Tensor q = of(DType::f32, {2, 8, 1, width}), k = of(kept, {2, 8, 640, width}),
                         few = of(kept, {2, 1, 640, width});
            compute(cached_attention(q, k, k, lengths));
            if (width == 33 || width == 256) continue;
            compute(cached_attention(q, few, few, lengths, {.window = 100}));
            const Tensor pages = of(kept, {80, 1, 16, width}), next = of(DType::f32, {2, 1, 3, width});
            compute(cached_attention(q, pages, pages, lengths, {.block_table = table}));
            ops::attention_append(next.view(), next.view(), {{}, few.view(), few.view(), lengths.view()});
            ops::attention_append(next.view(), next.view(),
                                  {{}, pages.view(), pages.view(), lengths.view(), table.view()});
            (void)few.view(), (void)pages.view();
        }
}

void attentions_and_caches() {
    attentions();
    cached();
}

const Part part{"attention", attentions_and_caches};

}  // namespace
