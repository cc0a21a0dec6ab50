// Convolutions.
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include <ops/conv/conv2d_strategy.hpp>

#include "tests/gpu_compile/collect.hpp"
#include "tests/gpu_compile/collect_epilogues.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;
using namespace declivity::ops;

namespace {

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
        for (const Convolution& item : convolutions())
            for (const auto direction :
                 {Conv2dDirection::forward, Conv2dDirection::backward_input, Conv2dDirection::backward_weights}) {
                const Conv2dProblem problem =
                    conv2d_problem("collect", direction, dtype, KernelStyle::simt, item.x, item.weight, item.options);
                const Shape out = conv2d_shape("collect", item.x, item.weight, item.options);
                const bool forward = direction == Conv2dDirection::forward;
                for (const Conv2dStrategy* strategy : conv2d_strategies()) {
                    // Other strategies compute f16 and bf16 with their f32 kernels.
                    if (is_16bit_float(dtype) && strategy != &conv2d_implicit_gemm() && strategy != &conv2d_direct())
                        continue;
                    if (!strategy->is_applicable(problem, device)) continue;
                    const std::vector<std::string> variants = strategy->variants(problem, device);
                    for (const std::string& variant : variants) {
                        Conv2dOperands operands{View::make(device, dtype, item.x),
                                                View::make(device, dtype, item.weight), View::make(device, dtype, out)};
                        const bool tailed = item.epilogues && direction != Conv2dDirection::backward_weights &&
                                            takes_epilogues(variants, variant) &&
                                            strategy->fuses_epilogue(problem, device, variant);
                        for (const KernelEpilogue& epilogue :
                             epilogues(forward ? operands.out : operands.x, EpilogueTarget::convolution, tailed)) {
                            operands.epilogue = epilogue;
                            if (forward) operands.bias = View::make(device, dtype, {item.weight[0]});
                            strategy->run(problem, operands, variant);
                        }
                        if (direction != Conv2dDirection::backward_weights) continue;
                        conv2d_backward_bias(operands.out, View::make(device, dtype, {item.weight[0]}));
                    }
                }
            }
}

const Part convolutions_part{"convolutions", convolution_strategies};

}  // namespace
