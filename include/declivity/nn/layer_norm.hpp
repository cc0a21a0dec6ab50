// Layer 6. LayerNorm and RMSNorm.
#pragma once

#include <cstdint>

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_norm
/// @{

struct LayerNormOptions {
    double eps = 1e-5;
    bool elementwise_affine = true;               ///< learnable weight (initially 1) and bias (initially 0)
    bool bias = true;                             ///< if elementwise_affine
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Normalises over the last axes of x, whose sizes are normalized_shape, see declivity::layer_norm.
class DECLIVITY_API LayerNorm : public Layer {
  public:
    explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
    /// Normalises over the last axis only, with or without braces: LayerNorm(105), LayerNorm({105}).
    explicit LayerNorm(std::int64_t size, const LayerNormOptions& options = {}) : LayerNorm(Shape{size}, options) {}
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] std::string type_name() const override { return "LayerNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LayerNorm); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Shape normalized_shape_;
    double eps_;
    Parameter weight_, bias_;
};

struct RMSNormOptions {
    std::optional<double> eps = std::nullopt;     ///< none: machine epsilon of x's type (f32 for f16 and bf16)
    bool elementwise_affine = true;               ///< learnable weight (initially 1)
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Divides x by its root mean square over the last axes, see declivity::rms_norm.
class DECLIVITY_API RMSNorm : public Layer {
  public:
    explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
    /// Normalises over the last axis only, with or without braces: RMSNorm(105), RMSNorm({105}).
    explicit RMSNorm(std::int64_t size, const RMSNormOptions& options = {}) : RMSNorm(Shape{size}, options) {}
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] std::string type_name() const override { return "RMSNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(RMSNorm); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Shape normalized_shape_;
    std::optional<double> eps_;
    Parameter weight_;
};

/// @}

}  // namespace declivity::nn
