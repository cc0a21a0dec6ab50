// Floor 4. Batch normalisation.
#pragma once

#include <declivity/nn/module.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::nn {

struct BatchNormOptions {
    double momentum = 0.1;
    double epsilon = 1e-5;
    bool affine = true;         ///< with weight (starts at 1) and bias (starts at 0)
    TensorOptions tensor = {};  ///< type and device of the parameters
};

/// Normalises each channel of x (N, C, ...), of any number of axes from 2, see declivity::batch_norm. Buffers
/// running_mean and running_variance (C).
class DECLIVITY_API BatchNorm : public Module {
  public:
    explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "BatchNorm"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(BatchNorm); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    double momentum_, epsilon_;
    Tensor weight_, bias_, running_mean_, running_variance_;
};

/// BatchNorm of x (N, C) or (N, C, L). @throws ShapeError for another number of axes
class DECLIVITY_API BatchNorm1d : public BatchNorm {
  public:
    using BatchNorm::BatchNorm;
    [[nodiscard]] std::string type_name() const override { return "BatchNorm1d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(BatchNorm1d); }

  protected:
    Tensor forward(const Tensor& x) override;
};

/// BatchNorm of x (N, C, H, W). @throws ShapeError for another number of axes
class DECLIVITY_API BatchNorm2d : public BatchNorm {
  public:
    using BatchNorm::BatchNorm;
    [[nodiscard]] std::string type_name() const override { return "BatchNorm2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(BatchNorm2d); }

  protected:
    Tensor forward(const Tensor& x) override;
};

/// BatchNorm of x (N, C, D, H, W). @throws ShapeError for another number of axes
class DECLIVITY_API BatchNorm3d : public BatchNorm {
  public:
    using BatchNorm::BatchNorm;
    [[nodiscard]] std::string type_name() const override { return "BatchNorm3d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(BatchNorm3d); }

  protected:
    Tensor forward(const Tensor& x) override;
};

}  // namespace declivity::nn
