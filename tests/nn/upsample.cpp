// Upsampling layers.
#include <declivity/nn/upsample.hpp>

#include <declivity/functions/resize.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("Upsample and its two variants match interpolate and are capture-safe") {
    const Tensor x = random_tensor({2, 3, 4, 5}, 1);
    const InterpolateOptions options{.scale_factor = {2.5, 0.5}, .mode = "bicubic"};
    nn::Upsample layer(options);
    CHECK(values(layer(x)) == values(interpolate(x, options)));
    CHECK(layer.not_capture_safe().empty());
    nn::UpsamplingNearest2d nearest({.scale_factor = {2}});
    CHECK(values(nearest(x)) == values(interpolate(x, {.scale_factor = {2}})));
    CHECK(nearest.not_capture_safe().empty());
    nn::UpsamplingBilinear2d bilinear({.size = {7, 3}});
    CHECK(values(bilinear(x)) == values(interpolate(x, {.size = {7, 3}, .mode = "bilinear", .align_corners = true})));
    CHECK(bilinear.not_capture_safe().empty());
    CHECK(bilinear.parameters().empty());
    CHECK_THROWS_AS(nn::Upsample({.mode = "bilinear"}), ValueError);
    CHECK_THROWS_AS(nn::Upsample({.size = 3, .scale_factor = {2}}), ValueError);
}
