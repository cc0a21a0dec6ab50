// Pooling cases, shared by tests and benchmarks.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <declivity/ops/pool2d.hpp>
#include <fmt/format.h>

namespace declivity::reference {

struct Pool2dCase {
    Shape x;
    ops::Pool2dParameters parameters;
    bool large = false;  ///< skipped under slow checkers

    [[nodiscard]] std::string name() const {
        const Size2 window = parameters.kernel_size, stride = parameters.step(), padding = parameters.padding;
        return fmt::format("x {} window {}x{} stride {}x{} padding {}x{}{}", x.str(), window[0], window[1], stride[0],
                           stride[1], padding[0], padding[1],
                           parameters.count_include_pad ? "" : " without padding in the mean");
    }
    [[nodiscard]] Shape out() const { return ops::pool2d_shape("case", x, parameters); }
    /// Bytes read and written by a forward pass.
    [[nodiscard]] std::int64_t bytes(DType dtype) const {
        return (x.numel() + out().numel()) * static_cast<std::int64_t>(size_of(dtype));
    }

    struct Reference {
        std::vector<double> max, average, max_gradient, average_gradient;
    };
    /// Plain loops in double.
    /// @param g gradient of the output
    [[nodiscard]] Reference reference(const std::vector<double>& values, const std::vector<double>& g) const {
        const Size2 window = parameters.kernel_size, stride = parameters.step(), padding = parameters.padding;
        const bool count_include_pad = parameters.count_include_pad;
        const Shape shape = out();
        Reference result;
        result.max_gradient.assign(values.size(), 0);
        result.average_gradient.assign(values.size(), 0);
        const std::int64_t height = x[2], width = x[3];
        for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane)
            for (std::int64_t p = 0; p < shape[2]; ++p)
                for (std::int64_t q = 0; q < shape[3]; ++q) {
                    double best = -std::numeric_limits<double>::infinity(), sum = 0;
                    std::int64_t argmax = -1, inside_count = 0;
                    const auto for_each_inside = [&](auto&& visit) {
                        for (std::int64_t r = 0; r < window[0]; ++r)
                            for (std::int64_t s = 0; s < window[1]; ++s) {
                                const std::int64_t h = p * stride[0] + r - padding[0],
                                                   w = q * stride[1] + s - padding[1];
                                if (h >= 0 && h < height && w >= 0 && w < width)
                                    visit(static_cast<std::size_t>((plane * height + h) * width + w));
                            }
                    };
                    for_each_inside([&](std::size_t at) {
                        ++inside_count;
                        sum += values[at];
                        if (argmax < 0 || values[at] > best || (std::isnan(values[at]) && !std::isnan(best))) {
                            best = values[at];
                            argmax = static_cast<std::int64_t>(at);
                        }
                    });
                    const double count = static_cast<double>(count_include_pad ? window[0] * window[1] : inside_count);
                    const double gradient = g[result.max.size()];
                    result.max.push_back(best);
                    result.average.push_back(sum / count);
                    result.max_gradient[static_cast<std::size_t>(argmax)] += gradient;
                    for_each_inside([&](std::size_t at) { result.average_gradient[at] += gradient / count; });
                }
        return result;
    }
};

inline std::vector<Pool2dCase> pool2d_cases() {
    // Each set of parameters is compiled separately: use few.
    const ops::Pool2dParameters asymmetric{.kernel_size = {3, 2}, .stride = {1, 2}, .padding = {1, 1}},
        single{.kernel_size = {1, 1}, .stride = {2, 2}};
    const ops::Pool2dParameters exclude_padding{
        .kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false};
    const ops::Pool2dParameters wide_window{
        .kernel_size = {2, 5}, .stride = {1, 1}, .padding = {0, 2}, .count_include_pad = false},
        stride_gaps{.kernel_size = {2, 3}, .stride = {3, 5}};
    return {
        {{1, 1, 2, 2}, {}},
        {{1, 1, 1, 1}, single},
        {{2, 3, 7, 5}, {}},
        {{1, 2, 5, 9}, asymmetric},
        {{1, 2, 5, 9}, exclude_padding},
        {{1, 1, 4, 11}, stride_gaps},
        {{0, 3, 4, 4}, {}},
        // Rows of several vectors with remainders; enough planes that most rows have neighbours before and after.
        {{2, 3, 5, 75}, {}},
        {{1, 4, 4, 46}, asymmetric},
        {{1, 5, 6, 41}, exclude_padding},
        {{1, 5, 6, 40}, exclude_padding},
        {{1, 4, 5, 37}, wide_window},
        {{1, 4, 5, 93}, stride_gaps},
        {{1, 4, 5, 19}, single},
        // A window as large as the plane.
        {{2, 3, 7, 7}, {.kernel_size = {7, 7}, .stride = {7, 7}}},
        {{1, 3, 2, 3}, {.kernel_size = {2, 3}, .stride = {1, 1}}},
        {{16, 32, 26, 26}, {}, true},
        {{1, 2, 200, 180}, {}, true},  // planes processed in bands
        {{1, 2, 200, 181}, wide_window, true},
        {{4, 64, 56, 56}, {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, true},
    };
}

}  // namespace declivity::reference
