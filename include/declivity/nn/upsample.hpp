// Layer 6. Resizing layers.
#pragma once

#include <string>
#include <vector>

#include <declivity/functions/resize.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_pool
/// @{

/// See declivity::interpolate for the options.
class DECLIVITY_API Upsample : public Layer {
  public:
    explicit Upsample(InterpolateOptions options);
    [[nodiscard]] std::string type_name() const override { return "Upsample"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Upsample); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    InterpolateOptions options_;
};

/// A size or scale factors: `{.scale_factor = 2}`.
struct UpsamplingOptions {
    Dims size = {};
    ScaleFactors scale_factor = {};
};

/// Upsample with mode "nearest".
class DECLIVITY_API UpsamplingNearest2d : public Upsample {
  public:
    explicit UpsamplingNearest2d(const UpsamplingOptions& options);
    [[nodiscard]] std::string type_name() const override { return "UpsamplingNearest2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(UpsamplingNearest2d); }
};

/// Upsample with mode "bilinear" and aligned corners.
class DECLIVITY_API UpsamplingBilinear2d : public Upsample {
  public:
    explicit UpsamplingBilinear2d(const UpsamplingOptions& options);
    [[nodiscard]] std::string type_name() const override { return "UpsamplingBilinear2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(UpsamplingBilinear2d); }
};

/// @}

}  // namespace declivity::nn
