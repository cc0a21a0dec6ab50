// Floor 4. Pooling layers.
#pragma once

#include <declivity/nn/module.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity::nn {

struct PoolOptions {
    Size2 stride = 0;  ///< 0: as the window
    Size2 padding = 0;
    bool count_padding = true;  ///< AvgPool2d: padded zeros count in the average
};

class DECLIVITY_API MaxPool2d : public Module {
  public:
    explicit MaxPool2d(Size2 window, const PoolOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "MaxPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(MaxPool2d); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    Pool2dOptions options_;
};

class DECLIVITY_API AvgPool2d : public Module {
  public:
    explicit AvgPool2d(Size2 window, const PoolOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "AvgPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(AvgPool2d); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    Pool2dOptions options_;
};

/// (N, C, H, W) -> (N, C, 1, 1).
class DECLIVITY_API GlobalAvgPool2d : public Module {
  public:
    [[nodiscard]] std::string type_name() const override { return "GlobalAvgPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(GlobalAvgPool2d); }

  protected:
    Tensor forward(const Tensor& x) override;
};

/// The same by the name that other libraries have for it: AdaptiveAvgPool2d(1).
class DECLIVITY_API AdaptiveAvgPool2d : public GlobalAvgPool2d {
  public:
    /// @throws Unsupported for another output than 1 x 1
    explicit AdaptiveAvgPool2d(Size2 output);
    [[nodiscard]] std::string type_name() const override { return "AdaptiveAvgPool2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(AdaptiveAvgPool2d); }
};

}  // namespace declivity::nn
