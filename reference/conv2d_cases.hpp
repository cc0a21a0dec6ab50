// The convolutions of tests and benchmarks: shapes, a plain reference in double, and costs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/ops/conv2d.hpp>
#include <reference/values.hpp>

namespace declivity::reference {

struct Conv2dCase {
    std::string name;
    Shape x;       ///< (N, C, H, W)
    Shape weight;  ///< (O, C / groups, R, S)
    ops::Conv2dParameters options = {};
    bool small = true;  ///< fast enough for a checker that interprets kernels

    [[nodiscard]] Shape out() const { return ops::conv2d_shape("Conv2dCase", x, weight, options); }
    /// Floating-point operations of one direction; positions in the padding count.
    [[nodiscard]] double flops() const {
        return 2.0 * static_cast<double>(out().numel()) * static_cast<double>(weight[1] * weight[2] * weight[3]);
    }
    /// Bytes of the operands of one direction, each moved once.
    [[nodiscard]] double bytes(DType dtype) const {
        return static_cast<double>(x.numel() + weight.numel() + out().numel()) * static_cast<double>(size_of(dtype));
    }
    /// For values in [-1, 1).
    [[nodiscard]] Tolerance forward_tolerance(DType dtype) const {
        return sum_tolerance(dtype, static_cast<double>(weight[1] * weight[2] * weight[3]));
    }
    [[nodiscard]] Tolerance input_tolerance(DType dtype) const {
        return sum_tolerance(dtype, static_cast<double>(weight[0] / options.groups * weight[2] * weight[3]));
    }
    [[nodiscard]] Tolerance weights_tolerance(DType dtype) const {
        return tolerance(dtype, static_cast<double>(x[0] * out()[2] * out()[3]), 4);
    }
};

inline std::vector<Conv2dCase> conv2d_cases() {
    return {
        {"one element", {1, 1, 1, 1}, {1, 1, 1, 1}},
        {"3x3", {2, 3, 7, 9}, {5, 3, 3, 3}},
        {"3x3 padded", {2, 3, 8, 8}, {8, 3, 3, 3}, {.padding = {1, 1}}},
        {"1x1", {3, 7, 5, 6}, {9, 7, 1, 1}},
        {"1x1 padded", {1, 2, 3, 3}, {2, 2, 1, 1}, {.padding = {2, 1}}},
        {"1x1 stride 2", {2, 4, 7, 8}, {3, 4, 1, 1}, {.stride = {2, 2}}},
        {"as large as the image", {2, 2, 4, 5}, {3, 2, 4, 5}},
        {"rows only", {1, 2, 1, 37}, {4, 2, 1, 5}, {.stride = {1, 2}, .padding = {0, 2}}},
        {"columns only", {1, 2, 37, 1}, {4, 2, 5, 1}, {.stride = {3, 1}, .padding = {2, 0}}},
        {"stride 2", {2, 2, 9, 10}, {3, 2, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
        {"strides 3 and 2", {1, 2, 11, 8}, {2, 2, 3, 2}, {.stride = {3, 2}, .padding = {1, 0}}},
        {"stride beyond the filter", {1, 2, 10, 11}, {2, 2, 2, 1}, {.stride = {4, 3}}},
        {"stride beyond the image", {1, 2, 3, 2}, {3, 2, 2, 2}, {.stride = {5, 7}}},
        {"dilation", {2, 2, 9, 12}, {3, 2, 3, 3}, {.padding = {2, 3}, .dilation = {2, 3}}},
        {"dilation and stride",
         {1, 3, 14, 13},
         {2, 3, 3, 2},
         {.stride = {2, 3}, .padding = {1, 2}, .dilation = {3, 2}}},
        {"dilation 2 and stride 4",
         {1, 1, 15, 16},
         {2, 1, 3, 4},
         {.stride = {4, 4}, .padding = {3, 1}, .dilation = {2, 2}}},
        {"more padding than filter", {1, 1, 3, 2}, {2, 1, 2, 2}, {.stride = {2, 1}, .padding = {4, 3}}},
        {"padding beside a stride", {1, 1, 1, 1}, {1, 1, 2, 2}, {.stride = {3, 3}, .padding = {1, 1}}},
        {"edges never read", {1, 1, 8, 9}, {2, 1, 2, 2}, {.stride = {5, 4}}},
        {"groups", {2, 6, 6, 5}, {9, 2, 3, 3}, {.padding = {1, 1}, .groups = 3}},
        {"groups, stride, dilation",
         {1, 4, 9, 9},
         {6, 2, 2, 3},
         {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}, .groups = 2}},
        {"depthwise", {2, 5, 6, 7}, {5, 1, 3, 3}, {.padding = {1, 1}, .groups = 5}},
        {"depthwise, two filters each", {1, 3, 6, 6}, {6, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 3}},
        {"depthwise, stride 2", {2, 2, 9, 11}, {2, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
        {"depthwise, strides 3 and 2, dilation",
         {1, 4, 13, 17},
         {4, 1, 3, 2},
         {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 4}},
        {"depthwise, wide", {2, 2, 5, 70}, {2, 1, 3, 5}, {.padding = {1, 2}, .groups = 2}},
        {"depthwise, many images", {9, 3, 7, 7}, {3, 1, 3, 3}, {.padding = {1, 1}, .groups = 3}},
        {"depthwise, more padding than filter",
         {1, 2, 3, 4},
         {2, 1, 2, 2},
         {.stride = {2, 1}, .padding = {3, 2}, .groups = 2}},
        {"depthwise, no padding, stride 2", {1, 2, 8, 37}, {2, 1, 2, 3}, {.stride = {1, 2}, .groups = 2}},
        {"3x3, more columns than one unit of tiles", {1, 18, 11, 121}, {70, 18, 3, 3}, {.padding = {1, 2}}, false},
        {"3x3, little of x seen by any tile", {2, 3, 4, 5}, {18, 3, 3, 3}, {.padding = {20, 90}}, false},
        {"3x3, small images, several in a unit", {13, 5, 6, 7}, {21, 5, 3, 3}, {.padding = {1, 1}}, false},
        {"3x3, more filters and channels than sums kept at a time, both ways",
         {2, 83, 6, 9},
         {71, 83, 3, 3},
         {.padding = {1, 0}},
         false},
        {"1x1, one image", {1, 70, 7, 9}, {41, 70, 1, 1}, {}, false},
        {"1x1, many weights", {1, 131, 5, 7}, {140, 131, 1, 1}, {}, false},
        {"3x3, units of tiles one after the other", {5, 18, 30, 61}, {19, 18, 3, 3}, {.padding = {1, 1}}, false},
        {"3x3, more padding than filter, 17 filters", {2, 3, 5, 9}, {17, 3, 3, 3}, {.padding = {3, 4}}, false},
        {"depthwise, 35 channels", {2, 35, 6, 5}, {35, 1, 3, 3}, {.padding = {1, 1}, .groups = 35}},
        {"depthwise, 16 channels, strides",
         {3, 16, 9, 8},
         {16, 1, 3, 2},
         {.stride = {2, 3}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 16}},
        {"depthwise, 37 channels, stride 2",
         {2, 37, 14, 14},
         {37, 1, 3, 3},
         {.stride = {2, 2}, .padding = {1, 1}, .groups = 37},
         false},
        {"depthwise, 5x5 and 20 channels in bands",
         {2, 20, 61, 58},
         {20, 1, 5, 5},
         {.stride = {2, 2}, .padding = {2, 2}, .groups = 20},
         false},
        {"depthwise, 7x7, more padding than filter",
         {1, 17, 11, 9},
         {17, 1, 7, 7},
         {.padding = {8, 7}, .groups = 17},
         false},
        {"depthwise, in bands",
         {1, 2, 90, 150},
         {2, 1, 5, 3},
         {.stride = {1, 2}, .padding = {2, 1}, .groups = 2},
         false},
        {"3x3, one filter", {1, 2, 4, 7}, {1, 2, 3, 3}},
        {"3x3, few tiles", {1, 1, 5, 6}, {2, 1, 3, 3}, {.padding = {1, 1}}},
        {"3x3, tiles over several rows and images", {3, 2, 9, 13}, {5, 2, 3, 3}, {.padding = {1, 0}}},
        {"3x3, wide tiles", {1, 2, 6, 133}, {3, 2, 3, 3}, {.padding = {2, 2}}},
        {"3x3, more padding than filter", {1, 2, 4, 5}, {3, 2, 3, 3}, {.padding = {3, 4}}},
        {"13 filters", {1, 2, 5, 6}, {13, 2, 3, 3}, {.padding = {1, 1}}},
        {"wide", {1, 2, 3, 150}, {3, 2, 2, 3}, {.padding = {0, 1}}},
        {"filter of 144 elements", {1, 1, 13, 12}, {2, 1, 12, 12}},
        {"many images", {37, 1, 3, 4}, {2, 1, 2, 2}},
        {"empty batch", {0, 3, 5, 5}, {2, 3, 3, 3}},
        {"mnist, first layer", {4, 1, 28, 28}, {32, 1, 3, 3}, {}, false},
        {"mnist, second layer", {3, 32, 13, 13}, {64, 32, 3, 3}, {}, false},
        {"mnist, second layer, padded", {2, 32, 14, 14}, {64, 32, 3, 3}, {.padding = {1, 1}}, false},
        {"cifar10, first layer", {3, 3, 32, 32}, {32, 3, 3, 3}, {.padding = {1, 1}}, false},
        {"cifar10, second layer", {2, 32, 16, 16}, {64, 32, 3, 3}, {.padding = {1, 1}}, false},
        {"lenet, first layer", {5, 3, 32, 32}, {6, 3, 5, 5}, {}, false},
        {"lenet, second layer", {9, 6, 14, 14}, {16, 6, 5, 5}, {}, false},
        {"resnet, first layer", {1, 3, 64, 64}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}, false},
        {"resnet, stride 2", {1, 32, 28, 28}, {64, 32, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, false},
        {"mobilenet, depthwise", {2, 64, 28, 28}, {64, 1, 3, 3}, {.padding = {1, 1}, .groups = 64}, false},
    };
}

/// Calls visit(index in x, index in weight, index in out) for each term of the sum that defines the convolution.
template <class Visit>
void for_each_product(const Conv2dCase& c, Visit visit) {
    const Shape out = c.out();
    const auto& [stride, padding, dilation, groups] = c.options;
    for (std::int64_t n = 0; n < out[0]; ++n)
        for (std::int64_t o = 0; o < out[1]; ++o)
            for (std::int64_t p = 0; p < out[2]; ++p)
                for (std::int64_t q = 0; q < out[3]; ++q)
                    for (std::int64_t i = 0; i < c.weight[1]; ++i)
                        for (std::int64_t r = 0; r < c.weight[2]; ++r)
                            for (std::int64_t s = 0; s < c.weight[3]; ++s) {
                                const std::int64_t h = p * stride[0] + r * dilation[0] - padding[0];
                                const std::int64_t w = q * stride[1] + s * dilation[1] - padding[1];
                                if (h < 0 || h >= c.x[2] || w < 0 || w >= c.x[3]) continue;
                                const std::int64_t channel = o / (c.weight[0] / groups) * c.weight[1] + i;
                                visit(static_cast<std::size_t>(((n * c.x[1] + channel) * c.x[2] + h) * c.x[3] + w),
                                      static_cast<std::size_t>(((o * c.weight[1] + i) * c.weight[2] + r) * c.weight[3] +
                                                               s),
                                      static_cast<std::size_t>(((n * out[1] + o) * out[2] + p) * out[3] + q));
                            }
}

inline std::vector<double> conv2d_reference(const Conv2dCase& c, const std::vector<double>& x,
                                            const std::vector<double>& weight, const std::vector<double>& bias) {
    const Shape shape = c.out();
    std::vector<double> out(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = bias.empty()
                     ? 0
                     : bias[i / static_cast<std::size_t>(shape[2] * shape[3]) % static_cast<std::size_t>(shape[1])];
    for_each_product(c, [&](std::size_t in_x, std::size_t in_weight, std::size_t in_out) {
        out[in_out] += x[in_x] * weight[in_weight];
    });
    return out;
}

inline std::vector<double> conv2d_backward_input_reference(const Conv2dCase& c, const std::vector<double>& out_gradient,
                                                           const std::vector<double>& weight) {
    std::vector<double> gradient(static_cast<std::size_t>(c.x.numel()));
    for_each_product(
        c, [&](std::size_t x, std::size_t w, std::size_t out) { gradient[x] += out_gradient[out] * weight[w]; });
    return gradient;
}

inline std::vector<double> conv2d_backward_weights_reference(const Conv2dCase& c, const std::vector<double>& x,
                                                             const std::vector<double>& out_gradient) {
    std::vector<double> gradient(static_cast<std::size_t>(c.weight.numel()));
    for_each_product(
        c, [&](std::size_t in_x, std::size_t w, std::size_t out) { gradient[w] += out_gradient[out] * x[in_x]; });
    return gradient;
}

inline std::vector<double> conv2d_backward_bias_reference(const Conv2dCase& c,
                                                          const std::vector<double>& out_gradient) {
    const Shape shape = c.out();
    std::vector<double> gradient(static_cast<std::size_t>(shape[1]));
    for (std::size_t i = 0; i < out_gradient.size(); ++i)
        gradient[i / static_cast<std::size_t>(shape[2] * shape[3]) % gradient.size()] += out_gradient[i];
    return gradient;
}

}  // namespace declivity::reference
