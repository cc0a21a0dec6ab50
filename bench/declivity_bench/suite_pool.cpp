// Pooling with the shapes of ResNet-50, VGG-16 and the sample networks, forward and backward.
#include <algorithm>
#include <utility>
#include <vector>

#include <declivity/ops/pool2d.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "peers.hpp"
#include "report.hpp"
#include "sampled.hpp"

namespace declivity::bench {
namespace {

struct Case {
    const char* name;
    Shape x;
    ops::Pool2dParameters parameters;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"resnet50 16x64x112x112, 3x3 stride 2",
         {16, 64, 112, 112},
         {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
        {"vgg16 16x64x224x224, 2x2", {16, 64, 224, 224}, {}},
        {"vgg16 16x512x14x14, 2x2", {16, 512, 14, 14}, {}},
        {"mnist 128x32x26x26, 2x2", {128, 32, 26, 26}, {}},
        {"mnist 128x64x11x11, 2x2", {128, 64, 11, 11}, {}},
        {"cifar10 64x32x32x32, 2x2", {64, 32, 32, 32}, {}},
        {"resnet50 16x2048x7x7, global", {16, 2048, 7, 7}, {.kernel_size = {7, 7}, .stride = {7, 7}}},
    };
    return all;
}

/// In the backward direction `x` and `out` are the gradients.
struct Set {
    Tensor x, out, indices;
};

std::vector<Set> make_sets(const Case& test_case, const Shape& out_shape, bool largest, int count) {
    std::vector<Set> sets;
    for (int i = 0; i < count; ++i) {
        sets.push_back(
            {uniform(test_case.x, -1, 1), uniform(out_shape, -1, 1), full(out_shape, 0, {.dtype = DType::i32})});
        Set& set = sets.back();
        if (!largest) continue;
        const auto results = ops::max_pool2d(set.x.view(), test_case.parameters);
        ops::evaluate_into("bench", results.out, set.out.view());
        set.indices = Tensor(results.indices);
    }
    return sets;
}

void pool(Set& set, const Case& test_case, bool largest, bool forward) {
    const ops::View out = set.out.view(), from = set.x.view();
    if (largest && forward) {
        auto results = ops::max_pool2d(from, test_case.parameters);
        ops::evaluate_into("bench", std::move(results.out), out);
        set.indices = Tensor(results.indices);
    } else if (largest) {
        ops::evaluate_into("bench",
                           ops::max_pool2d_backward(out, set.indices.view(), test_case.x, test_case.parameters), from);
    } else if (forward) {
        ops::evaluate_into("bench", ops::avg_pool2d(from, test_case.parameters), out);
    } else {
        ops::evaluate_into("bench", ops::avg_pool2d_backward(out, test_case.x, test_case.parameters), from);
    }
}

/// Single elements of the result of either direction, in double.
struct Reference {
    const Case& test_case;
    const Shape& out_shape;
    bool largest;
    const std::vector<float>& x;
    std::vector<float> out;
    std::vector<std::int32_t> indices;

    [[nodiscard]] double forward_element(std::size_t at) const {
        const Size2 window = test_case.parameters.kernel_size, stride = test_case.parameters.step(),
                    padding = test_case.parameters.padding;
        const std::int64_t height = test_case.x[2], width = test_case.x[3], rows = out_shape[2], columns = out_shape[3];
        const auto i = static_cast<std::int64_t>(at), plane = i / (rows * columns), p = i / columns % rows,
                   q = i % columns;
        double maximum = -INFINITY, sum = 0;
        for (std::int64_t r = 0; r < window[0]; ++r)
            for (std::int64_t s = 0; s < window[1]; ++s) {
                const std::int64_t h = p * stride[0] + r - padding[0], w = q * stride[1] + s - padding[1];
                if (h < 0 || w < 0 || h >= height || w >= width) continue;
                const double value = double{x[static_cast<std::size_t>((plane * height + h) * width + w)]};
                maximum = std::max(maximum, value), sum += value;
            }
        return largest ? maximum : sum / static_cast<double>(window[0] * window[1]);
    }
    [[nodiscard]] double backward_element(std::size_t at) const {
        const Size2 window = test_case.parameters.kernel_size, stride = test_case.parameters.step(),
                    padding = test_case.parameters.padding;
        const std::int64_t height = test_case.x[2], width = test_case.x[3], rows = out_shape[2], columns = out_shape[3];
        const auto i = static_cast<std::int64_t>(at), plane = i / (height * width), h = i / width % height,
                   w = i % width;
        double sum = 0;
        for (std::int64_t p = 0; p < rows; ++p)
            for (std::int64_t q = 0; q < columns; ++q) {
                const std::int64_t r = h + padding[0] - p * stride[0], s = w + padding[1] - q * stride[1];
                if (r < 0 || s < 0 || r >= window[0] || s >= window[1]) continue;
                const auto offset = static_cast<std::size_t>((plane * rows + p) * columns + q);
                if (!largest) sum += double{out[offset]} / static_cast<double>(window[0] * window[1]);
                else if (indices[offset] == h * width + w) sum += double{out[offset]};
            }
        return sum;
    }
};

void time_case(Report& report, const Case& test_case, bool largest, bool forward) {
    const std::string name =
        fmt::format("{} {} {}", largest ? "max" : "average", forward ? "forward" : "backward", test_case.name);
    if (!report.is_selected(name)) return;
    const Shape out_shape = ops::pool2d_shape("bench", test_case.x, test_case.parameters);
    const double bytes = 4.0 * static_cast<double>(test_case.x.numel() + out_shape.numel() * (largest ? 2 : 1));
    std::vector<Set> sets = make_sets(test_case, out_shape, largest, sets_for(bytes));
    const auto call = [&](int number) {
        pool(sets[static_cast<std::size_t>(number) % sets.size()], test_case, largest, forward);
    };
    std::vector<float> x = sets[0].x.to_vector<float>();
    call(0);
    const Reference reference{
        test_case, out_shape, largest, x, sets[0].out.to_vector<float>(), sets[0].indices.to_vector<std::int32_t>()};
    const std::string wrong = forward ? wrong_element(reference.out, 300, 1e-6, 1e-6,
                                                      [&](std::size_t at) { return reference.forward_element(at); })
                                      : wrong_element(sets[0].x.to_vector<float>(), 100, 1e-6, 1e-6,
                                                      [&](std::size_t at) { return reference.backward_element(at); });
    if (!wrong.empty()) return report.fail(name, wrong);
    const Device device = report.device();
    std::vector<std::vector<float>> host_x(report.with_peers() ? sets.size() : 0, x),
        host_out(host_x.size(), reference.out);
    const Size2 window = test_case.parameters.kernel_size, stride = test_case.parameters.step(),
                padding = test_case.parameters.padding;
    std::vector<std::vector<Contender>> peers;
    for (std::size_t i = 0; i < host_x.size(); ++i)
        peers.push_back(onednn_pool2d({forward, largest, test_case.x[0], test_case.x[1], test_case.x[2], test_case.x[3],
                                       out_shape[2], out_shape[3], window[0], window[1], stride[0], stride[1],
                                       padding[0], padding[1], host_x[i].data(), host_out[i].data()}));
    report.measure({.name = name, .bytes = bytes, .strategy = "pool2d", .group = forward ? "forward" : "backward"},
                   {"ours", call, [device] { device.synchronize(); }}, interleaved(peers));
}

void run(Report& report) {
    report.begin("pool");
    for (const bool largest : {true, false})
        for (const bool forward : {true, false})
            for (const Case& test_case : cases()) time_case(report, test_case, largest, forward);
    report.end();
}

const Suite suite("pool", "pooling, compared with oneDNN", run);

}  // namespace
}  // namespace declivity::bench
