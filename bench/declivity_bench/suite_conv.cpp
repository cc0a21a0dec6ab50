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
#include <reference/conv2d_cases.hpp>
#include <tools/declivity/layers.hpp>

#include "peers.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

using reference::Conv2dCase;
using reference::Tolerance;

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

/// Single elements of the result of a direction, in double.
class Reference {
  public:
    Reference(const Conv2dCase& test_case, const Host& operands) : c(test_case), host(operands), out(test_case.out()) {}

    [[nodiscard]] double element(ops::Conv2dDirection direction, std::int64_t index) const {
        switch (direction) {
            case ops::Conv2dDirection::forward:
                return result_element(index);
            case ops::Conv2dDirection::backward_input:
                return input_gradient_element(index);
            case ops::Conv2dDirection::backward_weights:
                break;
        }
        return weight_gradient_element(index);
    }

  private:
    [[nodiscard]] double result_element(std::int64_t index) const {
        const auto& [stride, padding, dilation, groups] = c.options;
        const std::int64_t per_group = c.weight[0] / groups;
        const auto [n, o, p, q] = split(index, out);
        double sum = 0;
        for (std::int64_t i = 0; i < c.weight[1]; ++i)
            for (std::int64_t r = 0; r < c.weight[2]; ++r)
                for (std::int64_t s = 0; s < c.weight[3]; ++s) {
                    const std::int64_t h = p * stride[0] + r * dilation[0] - padding[0],
                                       w = q * stride[1] + s * dilation[1] - padding[1];
                    if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3])
                        sum += x_at(n, o / per_group * c.weight[1] + i, h, w) * w_at(o, i, r, s);
                }
        return sum;
    }
    [[nodiscard]] double input_gradient_element(std::int64_t index) const {
        const auto& [stride, padding, dilation, groups] = c.options;
        const std::int64_t per_group = c.weight[0] / groups;
        const auto [n, channel, h, w] = split(index, c.x);
        double sum = 0;
        const std::int64_t group = channel / c.weight[1];
        for (std::int64_t o = group * per_group; o < (group + 1) * per_group; ++o)
            for (std::int64_t r = 0; r < c.weight[2]; ++r)
                for (std::int64_t s = 0; s < c.weight[3]; ++s) {
                    const std::int64_t p = h + padding[0] - r * dilation[0], q = w + padding[1] - s * dilation[1];
                    if (p < 0 || q < 0 || p % stride[0] != 0 || q % stride[1] != 0 || p / stride[0] >= out[2] ||
                        q / stride[1] >= out[3])
                        continue;
                    sum += out_at(n, o, p / stride[0], q / stride[1]) * w_at(o, channel % c.weight[1], r, s);
                }
        return sum;
    }
    [[nodiscard]] double weight_gradient_element(std::int64_t index) const {
        const auto& [stride, padding, dilation, groups] = c.options;
        const std::int64_t per_group = c.weight[0] / groups;
        const auto [o, i, r, s] = split(index, c.weight);
        double sum = 0;
        for (std::int64_t n = 0; n < out[0]; ++n)
            for (std::int64_t p = 0; p < out[2]; ++p)
                for (std::int64_t q = 0; q < out[3]; ++q) {
                    const std::int64_t h = p * stride[0] + r * dilation[0] - padding[0],
                                       w = q * stride[1] + s * dilation[1] - padding[1];
                    if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3])
                        sum += x_at(n, o / per_group * c.weight[1] + i, h, w) * out_at(n, o, p, q);
                }
        return sum;
    }

    [[nodiscard]] double x_at(std::int64_t n, std::int64_t i, std::int64_t h, std::int64_t w) const {
        return double{host.x[static_cast<std::size_t>(((n * c.x[1] + i) * c.x[2] + h) * c.x[3] + w)]};
    }
    [[nodiscard]] double w_at(std::int64_t o, std::int64_t i, std::int64_t r, std::int64_t s) const {
        return double{
            host.weight[static_cast<std::size_t>(((o * c.weight[1] + i) * c.weight[2] + r) * c.weight[3] + s)]};
    }
    [[nodiscard]] double out_at(std::int64_t n, std::int64_t o, std::int64_t p, std::int64_t q) const {
        return double{host.out[static_cast<std::size_t>(((n * out[1] + o) * out[2] + p) * out[3] + q)]};
    }
    static std::array<std::int64_t, 4> split(std::int64_t index, const Shape& shape) {
        return {index / (shape[1] * shape[2] * shape[3]), index / (shape[2] * shape[3]) % shape[1],
                index / shape[3] % shape[2], index % shape[3]};
    }

    const Conv2dCase& c;
    const Host& host;
    Shape out;
};

std::string wrong_element(const Conv2dCase& c, ops::Conv2dDirection direction, const Host& host,
                          const std::vector<float>& result, const Tolerance& allowed, bool relative_to_norm) {
    std::mt19937_64 engine(7);
    double errors = 0, norm = 0;
    const Reference reference(c, host);
    for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t at = i == 0 ? 0 : i == 1 ? result.size() - 1 : engine() % result.size();
        const double expected = reference.element(direction, static_cast<std::int64_t>(at));
        errors += (double{result[at]} - expected) * (double{result[at]} - expected);
        norm += expected * expected;
        if (!relative_to_norm &&
            !(std::abs(double{result[at]} - expected) <= allowed.absolute + allowed.relative * std::abs(expected)))
            return fmt::format("element {} is {}, expected {}", at, result[at], expected);
    }
    // Winograd transforms lose precision by cancellation.
    if (relative_to_norm && !(errors <= 1e-4 * 1e-4 * norm))
        return fmt::format("an error of {} relative to the norm, expected 1e-4", std::sqrt(errors / norm));
    return {};
}

/// @param written where the peers write the result of the direction
std::vector<Contender> peers_of(const Conv2dCase& c, ops::Conv2dDirection direction, Host& host, float* written) {
    const Shape out = c.out();
    const auto& [stride, padding, dilation, groups] = c.options;
    HostConv2d conv{static_cast<ConvDirection>(direction),
                    c.x[0],
                    c.x[1],
                    c.x[2],
                    c.x[3],
                    c.weight[0],
                    c.weight[2],
                    c.weight[3],
                    out[2],
                    out[3],
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
                                                         : conv.weight) = written;
    return onednn_conv2d(conv);
}

void time_case(Report& report, const Conv2dCase& c) {
    constexpr std::array kNames{"forward", "backward_input", "backward_weights"};
    if (std::ranges::none_of(
            kNames, [&](const char* direction) { return report.is_selected(fmt::format("{} {}", direction, c.name)); }))
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
        if (!report.is_selected(name)) continue;
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
            ops::conv2d_problem("bench", direction, DType::f32, device.kernel_style(), c.x, c.weight, c.options);
        const ops::Conv2dStrategy& chosen = *ops::choose_conv2d(problem, device).strategy;
        const std::string strategy(chosen.name());
        call(0);
        const Tolerance allowed = direction == ops::Conv2dDirection::forward          ? c.forward_tolerance(DType::f32)
                                  : direction == ops::Conv2dDirection::backward_input ? c.input_tolerance(DType::f32)
                                                                                      : c.weights_tolerance(DType::f32);
        if (const std::string wrong = wrong_element(c, direction, host, result.to_vector<float>(), allowed,
                                                    chosen.error_is_relative_to_norm());
            !wrong.empty()) {
            report.fail(name, wrong);
            continue;
        }
        std::vector<Contender> peers;
        std::vector<float> written(static_cast<std::size_t>(shape.numel()));
        if (report.with_peers()) peers = peers_of(c, direction, host, written.data());
        report.measure({.name = name, .flops = c.flops(), .strategy = strategy, .group = group}, {"ours", call, wait},
                       peers);
    }
}

void run(Report& report) {
    report.begin("conv");
    for (const Conv2dCase& conv_case : conv_cases()) time_case(report, conv_case);
    report.end();
}

const Suite suite("conv",
                  "convolutions of well-known networks, compared with oneDNN on plain tensors and in its own layout",
                  run);

}  // namespace
}  // namespace declivity::bench
