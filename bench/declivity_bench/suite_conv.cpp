// Convolutions of ResNet-50, VGG-16, MobileNetV2 and the sample networks, in all three directions.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <ops/conv/conv2d_strategy.hpp>
#include <tests/ops/conv2d_cases.hpp>
#include <tools/declivity/layers.hpp>

#include "peers.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

using test::Conv2dCase;
using test::Tolerance;

std::vector<Conv2dCase> conv_cases() {
    std::vector<Conv2dCase> cases;
    const auto add = [&](const tools::Layer& layer, std::int64_t batch) {
        cases.push_back({fmt::format("{} {}x{}x{}x{} to {}, {}x{}{}{}", layer.net, batch, layer.in, layer.size,
                                     layer.size, layer.out, layer.filter, layer.filter,
                                     layer.stride > 1 ? fmt::format(" stride {}", layer.stride) : "",
                                     layer.groups > 1 ? " depthwise" : ""),
                         {batch, layer.in, layer.size, layer.size},
                         {layer.out, layer.in / layer.groups, layer.filter, layer.filter},
                         {.stride = {layer.stride, layer.stride},
                          .padding = {layer.padding, layer.padding},
                          .groups = layer.groups}});
    };
    for (const std::int64_t batch : {1, 16})
        for (const tools::Layer& layer : tools::kLayers) add(layer, batch);
    for (const tools::Layer& layer : tools::kSampleLayers) add(layer, layer.batch);
    return cases;
}

struct Host {
    std::vector<float> x, weight, out;
};

/// One element of what a direction computes, in double.
double element(const Conv2dCase& c, ops::Conv2dDirection direction, const Host& host, std::int64_t index) {
    const Shape out = c.out();
    const auto& [stride, padding, dilation, groups] = c.options;
    const std::int64_t per_group = c.weight[0] / groups;
    const auto x_at = [&](std::int64_t n, std::int64_t i, std::int64_t h, std::int64_t w) {
        return static_cast<std::size_t>(((n * c.x[1] + i) * c.x[2] + h) * c.x[3] + w);
    };
    const auto w_at = [&](std::int64_t o, std::int64_t i, std::int64_t r, std::int64_t s) {
        return static_cast<std::size_t>(((o * c.weight[1] + i) * c.weight[2] + r) * c.weight[3] + s);
    };
    const auto out_at = [&](std::int64_t n, std::int64_t o, std::int64_t p, std::int64_t q) {
        return static_cast<std::size_t>(((n * out[1] + o) * out[2] + p) * out[3] + q);
    };
    const auto split = [&](const Shape& shape) {
        return std::array{index / (shape[1] * shape[2] * shape[3]), index / (shape[2] * shape[3]) % shape[1],
                          index / shape[3] % shape[2], index % shape[3]};
    };
    double sum = 0;
    switch (direction) {
        case ops::Conv2dDirection::forward: {
            const auto [n, o, p, q] = split(out);
            for (std::int64_t i = 0; i < c.weight[1]; ++i)
                for (std::int64_t r = 0; r < c.weight[2]; ++r)
                    for (std::int64_t s = 0; s < c.weight[3]; ++s) {
                        const std::int64_t h = p * stride[0] + r * dilation[0] - padding[0],
                                           w = q * stride[1] + s * dilation[1] - padding[1];
                        if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3])
                            sum += double{host.x[x_at(n, o / per_group * c.weight[1] + i, h, w)]} *
                                   double{host.weight[w_at(o, i, r, s)]};
                    }
            break;
        }
        case ops::Conv2dDirection::backward_input: {
            const auto [n, channel, h, w] = split(c.x);
            const std::int64_t group = channel / c.weight[1];
            for (std::int64_t o = group * per_group; o < (group + 1) * per_group; ++o)
                for (std::int64_t r = 0; r < c.weight[2]; ++r)
                    for (std::int64_t s = 0; s < c.weight[3]; ++s) {
                        const std::int64_t p = h + padding[0] - r * dilation[0], q = w + padding[1] - s * dilation[1];
                        if (p < 0 || q < 0 || p % stride[0] != 0 || q % stride[1] != 0 || p / stride[0] >= out[2] ||
                            q / stride[1] >= out[3])
                            continue;
                        sum += double{host.out[out_at(n, o, p / stride[0], q / stride[1])]} *
                               double{host.weight[w_at(o, channel % c.weight[1], r, s)]};
                    }
            break;
        }
        case ops::Conv2dDirection::backward_weights: {
            const auto [o, i, r, s] = split(c.weight);
            for (std::int64_t n = 0; n < out[0]; ++n)
                for (std::int64_t p = 0; p < out[2]; ++p)
                    for (std::int64_t q = 0; q < out[3]; ++q) {
                        const std::int64_t h = p * stride[0] + r * dilation[0] - padding[0],
                                           w = q * stride[1] + s * dilation[1] - padding[1];
                        if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3])
                            sum += double{host.x[x_at(n, o / per_group * c.weight[1] + i, h, w)]} *
                                   double{host.out[out_at(n, o, p, q)]};
                    }
            break;
        }
    }
    return sum;
}

std::string wrong_element(const Conv2dCase& c, ops::Conv2dDirection direction, const Host& host,
                          const std::vector<float>& result, const Tolerance& allowed, bool by_norm) {
    std::mt19937_64 engine(7);
    double errors = 0, norm = 0;
    for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t at = i == 0 ? 0 : i == 1 ? result.size() - 1 : engine() % result.size();
        const double wanted = element(c, direction, host, static_cast<std::int64_t>(at));
        errors += (double{result[at]} - wanted) * (double{result[at]} - wanted);
        norm += wanted * wanted;
        if (!by_norm &&
            !(std::abs(double{result[at]} - wanted) <= allowed.absolute + allowed.relative * std::abs(wanted)))
            return fmt::format("element {} is {}, wants {}", at, result[at], wanted);
    }
    // Winograd's transforms lose digits where terms cancel.
    if (by_norm && !(errors <= 1e-4 * 1e-4 * norm))
        return fmt::format("an error of {} relative to the norm, wants 1e-4", std::sqrt(errors / norm));
    return {};
}

void time_case(Report& report, const Conv2dCase& c) {
    constexpr std::array kNames{"forward", "backward_input", "backward_weights"};
    if (std::ranges::none_of(
            kNames, [&](const char* direction) { return report.wants(fmt::format("{} {}", direction, c.name)); }))
        return;
    const Device device = report.device();
    const Tensor x = uniform(c.x, -1, 1), weight = uniform(c.weight, -1, 1), out = uniform(c.out(), -1, 1);
    Host host{x.to_vector<float>(), weight.to_vector<float>(), out.to_vector<float>()};
    const auto wait = [device] { device.synchronize(); };
    const Shape out_shape = c.out();
    for (const auto direction : {ops::Conv2dDirection::forward, ops::Conv2dDirection::backward_input,
                                 ops::Conv2dDirection::backward_weights}) {
        const std::string group = kNames[static_cast<std::size_t>(direction)],
                          name = fmt::format("{} {}", group, c.name);
        if (!report.wants(name)) continue;
        const Shape shape = direction == ops::Conv2dDirection::forward          ? out_shape
                            : direction == ops::Conv2dDirection::backward_input ? c.x
                                                                                : c.weight;
        const Tensor result = full(shape, NAN);
        const auto call = [&](int) {
            switch (direction) {
                case ops::Conv2dDirection::forward:
                    return ops::conv2d_forward(x.view(), weight.view(), std::nullopt, result.view(), c.options);
                case ops::Conv2dDirection::backward_input:
                    return ops::conv2d_backward_input(out.view(), weight.view(), result.view(), c.options);
                case ops::Conv2dDirection::backward_weights:
                    return ops::conv2d_backward_weights(x.view(), out.view(), result.view(), c.options);
            }
        };
        const ops::Conv2dProblem problem =
            ops::conv2d_problem("bench", direction, DType::f32, device.family(), c.x, c.weight, c.options);
        const std::string strategy(ops::choose_conv2d(problem, device).strategy->name());
        call(0);
        const Tolerance allowed = direction == ops::Conv2dDirection::forward          ? c.forward_tolerance(DType::f32)
                                  : direction == ops::Conv2dDirection::backward_input ? c.input_tolerance(DType::f32)
                                                                                      : c.weights_tolerance(DType::f32);
        if (const std::string wrong =
                wrong_element(c, direction, host, result.to_vector<float>(), allowed, strategy.starts_with("winograd"));
            !wrong.empty()) {
            report.fail(name, wrong);
            continue;
        }
        std::vector<Contender> peers;
        std::vector<float> written(static_cast<std::size_t>(shape.numel()));
        if (report.with_peers()) {
            const auto& [stride, padding, dilation, groups] = c.options;
            HostConv2d conv{static_cast<ConvDirection>(direction),
                            c.x[0],
                            c.x[1],
                            c.x[2],
                            c.x[3],
                            c.weight[0],
                            c.weight[2],
                            c.weight[3],
                            out_shape[2],
                            out_shape[3],
                            stride[0],
                            stride[1],
                            padding[0],
                            padding[1],
                            dilation[0],
                            dilation[1],
                            groups,
                            host.x.data(),
                            host.weight.data(),
                            host.out.data()};
            (direction == ops::Conv2dDirection::forward          ? conv.out
             : direction == ops::Conv2dDirection::backward_input ? conv.x
                                                                 : conv.weight) = written.data();
            peers = onednn_conv2d(conv);
        }
        report.measure({.name = name, .flops = c.flops(), .strategy = strategy, .group = group}, {"ours", call, wait},
                       peers);
    }
}

void run(Report& report) {
    report.begin("conv");
    for (const Conv2dCase& one : conv_cases()) time_case(report, one);
    report.end();
}

const Suite suite("conv", "convolutions of known networks, beside oneDNN on plain tensors and in its own layout", run);

}  // namespace
}  // namespace declivity::bench
