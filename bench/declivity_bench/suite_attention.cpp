// Fused attention without a score matrix, compared with PyTorch's; the suite `gemm` has the rate of a matrix product
// for comparison.
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "function_suites.hpp"

namespace declivity::bench {
namespace {

/// Batches of 12 heads of 64 with the same total number of tokens, except for the longest.
std::vector<FunctionCase> cases() {
    std::vector<FunctionCase> all;
    for (const bool backward : {false, true})
        for (const std::int64_t length : {128, 512, 1024, 2048, 8192})
            for (const bool causal : {false, true}) {
                if (backward && length > 2048) continue;
                const std::int64_t batch = length < 1024 ? 1024 / length : 1;
                const Shape shape{batch, 12, length, 64};
                // Two products forward; five more backward, which recomputes the scores.
                const double flops =
                    (backward ? 14.0 : 4.0) * static_cast<double>(shape.numel() * length) * (causal ? 0.5 : 1);
                std::vector<Tensor> inputs;
                for (int i = 0; i < (backward ? 4 : 3); ++i) inputs.push_back(normal(shape));
                all.push_back({.name = fmt::format("{} {}x12x{}x64{}", backward ? "backward" : "forward", batch, length,
                                                   causal ? " causal" : ""),
                               .inputs = inputs,
                               .call =
                                   [causal](const std::vector<Tensor>& in) {
                                       return scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = causal});
                                   },
                               .python = fmt::format("F.scaled_dot_product_attention(x[0], x[1], x[2], is_causal={})",
                                                     causal ? "True" : "False"),
                               .flops = flops,
                               .backward = backward,
                               .leaves = 3});
            }
    return all;
}

const Suite attention("attention", "scaled_dot_product_attention of 12 heads, compared with PyTorch",
                      [](Report& report) { time_functions(report, "attention", cases); });

}  // namespace
}  // namespace declivity::bench
