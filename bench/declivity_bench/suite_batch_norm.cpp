// Batch normalisation in training with the shapes of ResNet-50 and ResNet-20, forward and backward.
#include <cmath>
#include <vector>

#include <declivity/ops/batch_norm.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "peers.hpp"
#include "report.hpp"
#include "sampled.hpp"

namespace declivity::bench {
namespace {

constexpr double kEpsilon = 1e-5;

struct Case {
    const char* name;
    Shape x;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"resnet50 16x64x112x112", {16, 64, 112, 112}}, {"resnet50 16x64x56x56", {16, 64, 56, 56}},
        {"resnet50 16x256x56x56", {16, 256, 56, 56}},   {"resnet50 16x512x28x28", {16, 512, 28, 28}},
        {"resnet50 16x1024x14x14", {16, 1024, 14, 14}}, {"resnet50 16x2048x7x7", {16, 2048, 7, 7}},
        {"resnet20 64x16x32x32", {64, 16, 32, 32}},     {"resnet20 64x64x8x8", {64, 64, 8, 8}},
    };
    return all;
}

/// Mean and 1 / sqrt(variance + epsilon) of a channel, and the means of g and g * normalised x.
struct Channel {
    double mean = 0, scale = 0, g = 0, gx = 0;
};

Channel channel_of(const Shape& shape, const std::vector<float>& x, const std::vector<float>& g, std::int64_t c) {
    const std::int64_t plane = shape[2] * shape[3];
    const auto count = static_cast<double>(shape[0] * plane);
    const auto for_each = [&](const auto& visit) {
        for (std::int64_t n = 0; n < shape[0]; ++n)
            for (std::int64_t i = 0; i < plane; ++i) visit(static_cast<std::size_t>((n * shape[1] + c) * plane + i));
    };
    Channel out;
    for_each([&](std::size_t at) { out.mean += double{x[at]} / count; });
    double variance = 0;
    for_each([&](std::size_t at) { variance += (double{x[at]} - out.mean) * (double{x[at]} - out.mean) / count; });
    out.scale = 1 / std::sqrt(variance + kEpsilon);
    for_each([&](std::size_t at) {
        out.g += double{g[at]} / count;
        out.gx += double{g[at]} * (double{x[at]} - out.mean) * out.scale / count;
    });
    return out;
}

void time_case(Report& report, const Case& test_case, bool forward) {
    const std::string name = fmt::format("{} {}", forward ? "forward" : "backward", test_case.name);
    if (!report.is_selected(name)) return;
    // Forward reads x for the statistics, then reads and writes it; backward reads x and g twice. Caches may save some
    // of it.
    const double bytes = 4.0 * static_cast<double>(test_case.x.numel()) * (forward ? 2 : 3);
    const Shape channels{test_case.x[1]};
    struct Set {
        Tensor x, out, x_gradient;
    };
    std::vector<Set> sets;
    for (int i = 0; i < sets_for(bytes); ++i)
        sets.push_back({uniform(test_case.x, -1, 1), uniform(test_case.x, -1, 1), full(test_case.x, NAN)});
    const Tensor mean = full(channels, 0.0), scale = full(channels, 0.0), weight = full(channels, 1.0),
                 bias = full(channels, 0.0);
    const Tensor running_mean = full(channels, 0.0), running_var = full(channels, 1.0),
                 weight_gradient = full(channels, 0.0), bias_gradient = full(channels, 0.0);
    const ops::BatchNormRunning running{running_mean.view(), running_var.view()};
    ops::batch_norm_statistics(sets[0].x.view(), kEpsilon, running, mean.view(), scale.view());
    const auto call = [&](int number) {
        const Set& set = sets[static_cast<std::size_t>(number) % sets.size()];
        if (forward) {
            ops::batch_norm_statistics(set.x.view(), kEpsilon, running, mean.view(), scale.view());
            ops::batch_norm(set.x.view(), mean.view(), scale.view(), weight.view(), bias.view(), set.out.view());
        } else {
            ops::batch_norm_backward(set.x.view(), mean.view(), scale.view(), weight.view(), true, set.out.view(),
                                     set.x_gradient.view(), weight_gradient.view(), bias_gradient.view());
        }
    };
    auto x = sets[0].x.to_vector<float>(), out = sets[0].out.to_vector<float>();
    call(0);
    auto written = (forward ? sets[0].out : sets[0].x_gradient).to_vector<float>();
    const std::int64_t plane = test_case.x[2] * test_case.x[3];
    const std::string wrong = wrong_element(written, 10, 1e-5, 1e-5, [&](std::size_t at) {
        const Channel channel = channel_of(test_case.x, x, out, static_cast<std::int64_t>(at) / plane % test_case.x[1]);
        const double normalised = (double{x[at]} - channel.mean) * channel.scale;
        return forward ? normalised : channel.scale * (double{out[at]} - channel.g - normalised * channel.gx);
    });
    if (!wrong.empty()) return report.fail(name, wrong);
    const Device device = report.device();
    std::vector<std::vector<float>> host_x(report.with_peers() ? sets.size() : 0, x), host_out(host_x.size(), out),
        host_gradient(forward ? 0 : host_x.size(), written);
    std::vector<std::vector<Contender>> peers;
    for (std::size_t i = 0; i < host_x.size(); ++i)
        peers.push_back(
            onednn_batch_norm({forward, test_case.x[0], test_case.x[1], test_case.x[2], test_case.x[3],
                               host_x[i].data(), host_out[i].data(), forward ? nullptr : host_gradient[i].data()}));
    report.measure({.name = name, .bytes = bytes, .strategy = "batch_norm", .group = forward ? "forward" : "backward"},
                   {"ours", call, [device] { device.synchronize(); }}, interleaved(peers));
}

void run(Report& report) {
    report.begin("batch_norm");
    for (const bool forward : {true, false})
        for (const Case& test_case : cases()) time_case(report, test_case, forward);
    report.end();
}

const Suite suite("batch_norm", "batch normalisation in training, compared with oneDNN", run);

}  // namespace
}  // namespace declivity::bench
