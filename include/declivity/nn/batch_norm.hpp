// Layer 6. Batch normalisation.
#pragma once

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_norm
/// @{

struct BatchNormOptions {
    double eps = 1e-5;
    std::optional<double> momentum = 0.1;  ///< none: running statistics are the cumulative average of all batches
    bool affine = true;                    ///< learnable weight (initially 1) and bias (initially 0)
    bool track_running_stats = true;       ///< false: no buffers, always normalises with batch statistics
    DType dtype = DType::f32;              ///< of parameters and buffers
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Normalises each channel of x (N, C, ...) with at least 2 axes, see declivity::batch_norm. Buffers running_mean and
/// running_var (C), and num_batches_tracked, i64, 0-dimensional: number of training batches.
class DECLIVITY_API BatchNorm : public Layer {
  public:
    explicit BatchNorm(std::int64_t num_features, const BatchNormOptions& options = {});
    /// Undefined without affine or track_running_stats, respectively.
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] Tensor running_mean() const { return running_mean_; }
    [[nodiscard]] Tensor running_var() const { return running_var_; }
    [[nodiscard]] double eps() const { return eps_; }
    [[nodiscard]] std::string type_name() const override { return "BatchNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BatchNorm); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    double eps_;
    std::optional<double> momentum_;
    Parameter weight_, bias_;
    Tensor running_mean_, running_var_, num_batches_tracked_;
};

/// BatchNorm of x (N, C) or (N, C, L). @throws ShapeError for another number of axes
class DECLIVITY_API BatchNorm1d : public BatchNorm {
  public:
    using BatchNorm::BatchNorm;
    [[nodiscard]] std::string type_name() const override { return "BatchNorm1d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BatchNorm1d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// BatchNorm of x (N, C, H, W). @throws ShapeError for another number of axes
class DECLIVITY_API BatchNorm2d : public BatchNorm {
  public:
    using BatchNorm::BatchNorm;
    [[nodiscard]] std::string type_name() const override { return "BatchNorm2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BatchNorm2d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// BatchNorm of x (N, C, D, H, W). @throws ShapeError for another number of axes
class DECLIVITY_API BatchNorm3d : public BatchNorm {
  public:
    using BatchNorm::BatchNorm;
    [[nodiscard]] std::string type_name() const override { return "BatchNorm3d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BatchNorm3d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// @}

}  // namespace declivity::nn
