// Floor 4. Pooling layers.
#pragma once

#include <declivity/nn/callable.hpp>
#include <declivity/tensor/functions/pool.hpp>

namespace declivity::nn {

struct MaxPool2dOptions {
    Size2 stride = 0;   ///< 0: as the kernel size
    Size2 padding = 0;  ///< at most half the kernel size
};

/// The largest of each window, see declivity::max_pool2d.
class DECLIVITY_API MaxPool2d : public Layer {
  public:
    explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "MaxPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(MaxPool2d); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Pool2dParameters pool_;
};

struct AvgPool2dOptions {
    Size2 stride = 0;               ///< 0: as the kernel size
    Size2 padding = 0;              ///< at most half the kernel size
    bool count_include_pad = true;  ///< padded zeros count in the average
};

/// The mean of each window, see declivity::avg_pool2d.
class DECLIVITY_API AvgPool2d : public Layer {
  public:
    explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "AvgPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(AvgPool2d); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Pool2dParameters pool_;
};

/// (N, C, H, W) -> (N, C, 1, 1).
class DECLIVITY_API GlobalAvgPool2d : public Layer {
  public:
    [[nodiscard]] std::string type_name() const override { return "GlobalAvgPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(GlobalAvgPool2d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// The same by the name that other libraries have for it: AdaptiveAvgPool2d(1).
class DECLIVITY_API AdaptiveAvgPool2d : public GlobalAvgPool2d {
  public:
    /// @throws Unsupported for another output size than 1 x 1
    explicit AdaptiveAvgPool2d(Size2 output_size);
    [[nodiscard]] std::string type_name() const override { return "AdaptiveAvgPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(AdaptiveAvgPool2d); }
};

}  // namespace declivity::nn
