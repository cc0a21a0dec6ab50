#include <declivity/nn/upsample.hpp>

#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Upsample::Upsample(InterpolateOptions options) : options_(std::move(options)) {
    if (options_.size.empty() == options_.scale_factor.empty())
        throw ValueError(fmt::format("Upsample: expected either sizes or scale factors, got {} and {}",
                                     options_.size.rank(), options_.scale_factor.size()));
}
Tensor Upsample::forward(Tensor x) { return interpolate(x, options_); }

UpsamplingNearest2d::UpsamplingNearest2d(const UpsamplingOptions& options)
    : Upsample({.size = options.size, .scale_factor = options.scale_factor}) {}

UpsamplingBilinear2d::UpsamplingBilinear2d(const UpsamplingOptions& options)
    : Upsample(
          {.size = options.size, .scale_factor = options.scale_factor, .mode = "bilinear", .align_corners = true}) {}

}  // namespace declivity::nn
