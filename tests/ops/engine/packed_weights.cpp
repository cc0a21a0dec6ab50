// Packed weights in calls without gradients: the same results, a bounded amount of memory.
#include <memory>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/default_device.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// The elements as stored.
std::vector<double> stored(const Tensor& tensor) {
    (void)tensor.view();
    return values(tensor);
}

/// Calls without gradients, of which later ones use packed weights, match a call with an autograd graph bit for bit.
void same_bits(nn::Layer& layer, const Shape& shape, DType dtype) {
    CAPTURE(shape.str());
    CAPTURE(name_of(dtype));
    const Tensor x = random_tensor(shape, 3, dtype);
    const auto expected = stored(layer(x));
    const NoGrad no_grad;
    for (int call = 0; call < 3; ++call) REQUIRE(stored(layer(x)) == expected);
}

}  // namespace

TEST_CASE("packed weights: linear layers match a call with gradients bit for bit, for any number of rows") {
    const std::vector<std::int64_t> rows =
        small_cases() ? std::vector<std::int64_t>{1, 5} : std::vector<std::int64_t>{1, 2, 3, 4, 5, 8, 13, 46, 97, 200};
    for (const DType dtype : {DType::f32, DType::bf16})
        for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{131, 127}, {70, 300}, {1030, 17}}) {
            if (small_cases() && in != 131) continue;
            nn::Linear layer(in, out);
            layer.to(dtype);
            for (const std::int64_t m : rows) same_bits(layer, {m, in}, dtype);
            nn::Sequential with_gelu(nn::Linear(in, out), nn::GELU());
            with_gelu.to(dtype);
            if (dtype == DType::f32) same_bits(with_gelu, {5, in}, dtype);
        }
}

TEST_CASE(
    "packed weights: calls of a convolution without gradients agree bit for bit, and closely with those with a graph") {
    const auto sizes = small_cases() ? std::vector<std::pair<std::int64_t, std::int64_t>>{{11, 13}}
                                     : std::vector<std::pair<std::int64_t, std::int64_t>>{{37, 41}, {130, 96}};
    for (const auto& [channels, filters] : sizes) {
        nn::Conv2d layer(channels, filters, 3, {.padding = 1});
        for (const Shape& shape : {Shape{1, channels, 9, 9}, Shape{2, channels, 23, 17}, Shape{5, channels, 4, 4},
                                   Shape{1, channels, 3, 30}}) {
            if (small_cases() && shape[0] > 1) continue;
            CAPTURE(shape.str());
            const Tensor x = random_tensor(shape, 3);
            const auto with_graph = values(layer(x).detach());
            const NoGrad no_grad;
            const auto first = values(layer(x));
            CHECK(difference(first, with_graph, {2e-5, 2e-5}) == "");
            for (int call = 0; call < 3; ++call) REQUIRE(values(layer(x)) == first);
        }
    }
}

TEST_CASE("packed weights: at most one copy of a weight for any numbers of rows, and none beyond the limit") {
    if (small_cases()) return;
    const Device device = fresh_device();
    const DefaultDevice here(device);
    constexpr std::uint64_t weight = std::uint64_t{4} * 600 * 500;
    nn::Linear layer(600, 500);
    const NoGrad no_grad;
    const auto call = [&] {
        for (int round = 0; round < 3; ++round)
            for (const std::int64_t rows : {1, 4, 8, 46, 100, 190, 300, 8, 46})
                (void)layer(ones({rows, 600})).to_vector<float>();
    };
    call();
    CHECK(device.memory().packed_weights <= weight * 11 / 10);
    const bool packs = device.memory().packed_weights > 0;  // simt kernels do not pack
    if (device.kernel_style() == KernelStyle::simd) CHECK(packs);
    device.release_cached_memory();
    CHECK(device.memory().packed_weights == 0);
    const std::uint64_t bytes_before = device.memory().in_use;
    device.set_packed_weights_limit(weight / 2);
    call();
    CHECK(device.memory().packed_weights == 0);
    CHECK(device.memory().in_use <= bytes_before + weight / 10);
}

TEST_CASE("packed weights: freed before an allocation fails, and later results are correct") {
    if (small_cases()) return;
    const Environment limit("DECLIVITY_MEMORY_LIMIT", "128M");
    const Device device = fresh_device();
    const DefaultDevice here(device);
    nn::Linear layer(2000, 1500);  // 12 MB
    const Tensor x = random_tensor({9, 2000}, 1).to(device);
    const NoGrad no_grad;
    const auto expected = values(layer(x));
    for (int call = 0; call < 3; ++call) CHECK(values(layer(x)) == expected);
    std::vector<Tensor> allocated;
    try {
        for (;;) allocated.push_back(zeros({1 << 20}));
    } catch (const OutOfMemory&) {
    }
    CHECK(device.memory().packed_weights == 0);
    allocated.resize(allocated.size() - 2);  // room for the result, not for a copy
    for (int call = 0; call < 3; ++call) CHECK(values(layer(x)) == expected);
}
