// Layers for convolutions of all ranks, padding and pooling: names, initial values, options, and results.
#include <declivity/nn/nn.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

void same(const Tensor& a, const Tensor& b) {
    CHECK(a.shape() == b.shape());
    CHECK(values(a) == values(b));
}

/// A layer with this name that is capture-safe.
template <class Layer>
Layer& named(Layer&& layer, const std::string& name) {
    CHECK(layer.type_name() == name);
    CHECK(layer.not_capture_safe().empty());
    return layer;
}

double largest(const Tensor& x) {
    double max_abs = 0;
    for (const double value : values(x)) max_abs = std::max(max_abs, std::abs(value));
    return max_abs;
}

const Tensor& line() {
    static const Tensor x = random_tensor({2, 4, 9}, 1);
    return x;
}
const Tensor& image() {
    static const Tensor x = random_tensor({2, 4, 7, 6}, 2);
    return x;
}
const Tensor& cube() {
    static const Tensor x = random_tensor({2, 4, 5, 6, 4}, 3);
    return x;
}

}  // namespace

TEST_CASE("layers: Conv3d and transposed convolutions") {
    nn::Conv3d conv(4, 6, {2, 3, 1}, {.stride = {1, 2, 1}, .padding = {1, 0, 0}, .groups = 2});
    named(conv, "Conv3d");
    CHECK(conv.weight().shape() == Shape{6, 2, 2, 3, 1});
    CHECK(conv.bias().shape() == Shape{6});
    const double bound = 1 / std::sqrt(12.0);
    for (const Tensor& tensor : {conv.weight(), conv.bias()}) CHECK(largest(tensor) <= bound);
    CHECK(largest(conv.weight()) > 0.8 * bound);
    same(conv(cube()),
         conv3d(cube(), conv.weight(), conv.bias(), {.stride = {1, 2, 1}, .padding = {1, 0, 0}, .groups = 2}));
    // 2 x 6 x 6 x 2 x 4 results of 2 x 2 x 3 numbers.
    CHECK(conv.summary({2, 4, 5, 6, 4}).find(" 6912\n") != std::string::npos);
    CHECK_FALSE(nn::Conv3d(4, 6, 2, {.bias = false}).bias().defined());

    nn::ConvTranspose1d back(4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
    named(back, "ConvTranspose1d");
    CHECK(back.weight().shape() == Shape{4, 3, 3});
    CHECK(largest(back.weight()) <= 1 / std::sqrt(9.0));
    CHECK(largest(back.weight()) > 0.8 / std::sqrt(9.0));
    same(back(line()), conv_transpose1d(line(), back.weight(), back.bias(),
                                        {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}));
    nn::ConvTranspose3d volume_layer(4, 3, {2, 1, 3}, {.stride = {2, 1, 1}, .bias = false, .dilation = {1, 1, 2}});
    named(volume_layer, "ConvTranspose3d");
    CHECK(volume_layer.weight().shape() == Shape{4, 3, 2, 1, 3});
    same(volume_layer(cube()),
         conv_transpose3d(cube(), volume_layer.weight(), {}, {.stride = {2, 1, 1}, .dilation = {1, 1, 2}}));
    CHECK_THROWS_WITH_AS(nn::Conv3d(4, 6, {0, 1, 1}), doctest::Contains("Conv3d: expected groups"), ValueError);
    CHECK_THROWS_WITH_AS(nn::ConvTranspose1d(4, 6, 3, {.groups = 4}),
                         doctest::Contains("ConvTranspose1d: expected groups"), ValueError);
    CHECK_THROWS_WITH_AS(nn::ConvTranspose3d(4, 6, 3, {.groups = 0}),
                         doctest::Contains("ConvTranspose3d: expected groups"), ValueError);
}

TEST_CASE("layers: convolutions with non-zero padding modes") {
    for (const PadMode mode : {PadMode::reflect, PadMode::replicate, PadMode::circular}) {
        nn::Conv1d conv1d_layer(4, 2, 3, {.padding = 2, .padding_mode = mode});
        same(conv1d_layer(line()), conv1d(pad(line(), {2, 2}, mode), conv1d_layer.weight(), conv1d_layer.bias()));
        nn::Conv2d conv2d_layer(4, 2, {4, 3}, {.stride = {2, 1}, .padding = {2, 1}, .padding_mode = mode});
        same(conv2d_layer(image()),
             conv2d(pad(image(), {1, 1, 2, 2}, mode), conv2d_layer.weight(), conv2d_layer.bias(), {.stride = {2, 1}}));
        nn::Conv3d conv3d_layer(4, 2, {2, 3, 2}, {.padding = "same", .padding_mode = mode});
        same(conv3d_layer(cube()),
             conv3d(pad(cube(), {0, 1, 1, 1, 0, 1}, mode), conv3d_layer.weight(), conv3d_layer.bias()));
        CHECK(conv3d_layer(cube()).shape() == Shape{2, 2, 5, 6, 4});
    }
    nn::Conv2d all(4, 2, 3, {.padding = "same"});
    same(all(image()), conv2d(image(), all.weight(), all.bias(), {.padding = 1}));
}

TEST_CASE("layers: padding") {
    same(named(nn::ReflectionPad1d(2), "ReflectionPad1d")(line()), pad(line(), {2, 2}, PadMode::reflect));
    same(named(nn::ReflectionPad2d({1, 0, 2, 3}), "ReflectionPad2d")(image()),
         pad(image(), {1, 0, 2, 3}, PadMode::reflect));
    same(named(nn::ReplicationPad3d(2), "ReplicationPad3d")(cube()),
         pad(cube(), {2, 2, 2, 2, 2, 2}, PadMode::replicate));
    same(named(nn::CircularPad2d(3), "CircularPad2d")(image()), pad(image(), {3, 3, 3, 3}, PadMode::circular));
    same(named(nn::ZeroPad2d(1), "ZeroPad2d")(image()), pad(image(), {1, 1, 1, 1}));
    same(named(nn::ConstantPad1d({1, -2}, 3.5), "ConstantPad1d")(line()), pad(line(), {1, -2}, PadMode::constant, 3.5));
    CHECK_THROWS_WITH_AS(nn::CircularPad2d({1, 2}),
                         "CircularPad2d: expected 4 numbers, a pair for each axis, got [1, 2]", ValueError);
}

TEST_CASE("layers: pooling of all ranks") {
    same(named(nn::MaxPool1d(3, {.stride = 2, .dilation = 2}), "MaxPool1d")(line()),
         max_pool1d(line(), {.kernel_size = 3, .stride = 2, .dilation = 2}));
    same(named(nn::MaxPool2d(3, {.ceil_mode = true}), "MaxPool2d")(image()),
         max_pool2d(image(), {.kernel_size = 3, .ceil_mode = true}));
    same(named(nn::MaxPool3d({1, 2, 2}, {.padding = {0, 1, 1}}), "MaxPool3d")(cube()),
         max_pool3d(cube(), {.kernel_size = {1, 2, 2}, .padding = {0, 1, 1}}));
    same(named(nn::AvgPool1d(4, {.stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false}),
               "AvgPool1d")(line()),
         avg_pool1d(line(),
                    {.kernel_size = 4, .stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false}));
    same(named(nn::AvgPool2d(2, {.divisor_override = 5}), "AvgPool2d")(image()),
         avg_pool2d(image(), {.divisor_override = 5}));
    same(named(nn::AvgPool3d(2), "AvgPool3d")(cube()), avg_pool3d(cube()));
    same(named(nn::LPPool1d(2, 3), "LPPool1d")(line()), lp_pool1d(line(), 2, {.kernel_size = 3}));
    same(named(nn::LPPool2d(2, 3, {.stride = 2, .ceil_mode = true}), "LPPool2d")(image()),
         lp_pool2d(image(), 2, {.kernel_size = 3, .stride = 2, .ceil_mode = true}));
    same(named(nn::LPPool3d(2, 2), "LPPool3d")(cube()), lp_pool3d(cube(), 2));
    same(named(nn::AdaptiveAvgPool1d(4), "AdaptiveAvgPool1d")(line()), adaptive_avg_pool1d(line(), 4));
    same(named(nn::AdaptiveAvgPool2d({3, -1}), "AdaptiveAvgPool2d")(image()), adaptive_avg_pool2d(image(), {3, -1}));
    same(named(nn::AdaptiveAvgPool3d(2), "AdaptiveAvgPool3d")(cube()), adaptive_avg_pool3d(cube(), 2));
    same(named(nn::AdaptiveMaxPool1d(4), "AdaptiveMaxPool1d")(line()), adaptive_max_pool1d(line(), 4));
    same(named(nn::AdaptiveMaxPool2d(3), "AdaptiveMaxPool2d")(image()), adaptive_max_pool2d(image(), 3));
    same(named(nn::AdaptiveMaxPool3d({2, 3, 3}), "AdaptiveMaxPool3d")(cube()), adaptive_max_pool3d(cube(), {2, 3, 3}));
    manual_seed(4);
    const Tensor pooled = named(nn::FractionalMaxPool2d({.output_size = Size2(4, 3)}), "FractionalMaxPool2d")(image());
    manual_seed(4);
    same(pooled, fractional_max_pool2d(image(), {.output_size = Size2(4, 3)}));
    CHECK(nn::FractionalMaxPool3d({.output_ratio = {{0.5, 0.5, 0.5}}})(cube()).shape() == Shape{2, 4, 2, 3, 2});
    CHECK_THROWS_WITH_AS(nn::MaxPool3d(3, {.padding = 2}), doctest::Contains("MaxPool3d: expected a kernel size"),
                         ValueError);
    CHECK_THROWS_WITH_AS(nn::AvgPool1d(0), doctest::Contains("AvgPool1d: expected a kernel size"), ValueError);
}

TEST_CASE("layers: max pooling with indices, and unpooling") {
    const auto check = [](auto pool, auto unpool, const Tensor& x, const std::string& name, const Tensor& expected) {
        const MaxPooled both = named(pool, "MaxPool" + name + "WithIndices")(x);
        same(both.values, expected);
        const Tensor back = named(unpool, "MaxUnpool" + name)(both.values, both.indices);
        CHECK(back.shape() == x.shape());
        same(back, where(back == x, x, 0));
        CHECK(values(sum(back != 0))[0] == static_cast<double>(expected.numel()));
    };
    check(nn::MaxPool1dWithIndices(2), nn::MaxUnpool1d(2, {.output_size = {9}}), line(), "1d", max_pool1d(line()));
    check(nn::MaxPool2dWithIndices({7, 2}), nn::MaxUnpool2d({7, 2}), image(), "2d",
          max_pool2d(image(), {.kernel_size = {7, 2}}));
    check(nn::MaxPool3dWithIndices({5, 2, 2}), nn::MaxUnpool3d({5, 2, 2}), cube(), "3d",
          max_pool3d(cube(), {.kernel_size = {5, 2, 2}}));
}

TEST_CASE("layers: Unfold and Fold") {
    const UnfoldParameters windows{.kernel_size = {3, 2}, .padding = 1};
    const Tensor columns = named(nn::Unfold(windows), "Unfold")(image());
    same(columns, unfold(image(), windows));
    same(named(nn::Fold({7, 6}, windows), "Fold")(columns), fold(columns, {7, 6}, windows));
}
