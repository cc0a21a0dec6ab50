// Layer 6. GroupNorm, InstanceNorm and LocalResponseNorm.
#pragma once

#include <cstdint>

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_norm
/// @{

struct GroupNormOptions {
    double eps = 1e-5;
    bool affine = true;                           ///< learnable weight (initially 1) and bias (initially 0) per channel
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Normalises groups of channels of x (N, C, ...), see declivity::group_norm.
class DECLIVITY_API GroupNorm : public Layer {
  public:
    /// @throws ValueError unless num_groups divides num_channels
    GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] std::string type_name() const override { return "GroupNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GroupNorm); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    std::int64_t num_groups_;
    double eps_;
    Parameter weight_, bias_;
};

struct InstanceNormOptions {
    double eps = 1e-5;
    double momentum = 0.1;
    bool affine = false;                          ///< learnable weight (initially 1) and bias (initially 0)
    bool track_running_stats = false;             ///< running statistics for evaluation; otherwise those of each sample
    DType dtype = DType::f32;                     ///< of parameters and buffers
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Normalises each channel of each sample of x (N, C, ...), see declivity::instance_norm. Buffers, if any, as in
/// BatchNorm.
class DECLIVITY_API InstanceNorm : public Layer {
  public:
    explicit InstanceNorm(std::int64_t num_features, const InstanceNormOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "InstanceNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(InstanceNorm); }

  protected:
    Tensor forward(Tensor x) override;
    /// Implementation for samples with `axes` axes, with or without the batch axis. @throws ShapeError for other shapes
    Tensor forward_of(const char* layer, const char* expected, int axes, Tensor x);

  private:
    double eps_, momentum_;
    Parameter weight_, bias_;
    Tensor running_mean_, running_var_, num_batches_tracked_;
};

/// InstanceNorm of x (N, C, L) or (C, L). @throws ShapeError for another number of axes
class DECLIVITY_API InstanceNorm1d : public InstanceNorm {
  public:
    using InstanceNorm::InstanceNorm;
    [[nodiscard]] std::string type_name() const override { return "InstanceNorm1d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(InstanceNorm1d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// InstanceNorm of x (N, C, H, W) or (C, H, W). @throws ShapeError for another number of axes
class DECLIVITY_API InstanceNorm2d : public InstanceNorm {
  public:
    using InstanceNorm::InstanceNorm;
    [[nodiscard]] std::string type_name() const override { return "InstanceNorm2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(InstanceNorm2d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// InstanceNorm of x (N, C, D, H, W) or (C, D, H, W). @throws ShapeError for another number of axes
class DECLIVITY_API InstanceNorm3d : public InstanceNorm {
  public:
    using InstanceNorm::InstanceNorm;
    [[nodiscard]] std::string type_name() const override { return "InstanceNorm3d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(InstanceNorm3d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// See declivity::local_response_norm.
class DECLIVITY_API LocalResponseNorm : public Layer {
  public:
    /// @throws ValueError for a size below 1
    explicit LocalResponseNorm(std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
    [[nodiscard]] std::string type_name() const override { return "LocalResponseNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LocalResponseNorm); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    std::int64_t size_;
    double alpha_, beta_, k_;
};

/// @}

}  // namespace declivity::nn
