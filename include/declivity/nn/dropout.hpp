// Floor 4. Dropout.
#pragma once

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// While training, sets elements to 0 with this probability and scales the others up; otherwise passes x through.
class DECLIVITY_API Dropout : public Module {
  public:
    explicit Dropout(double probability = 0.5);
    [[nodiscard]] std::string type_name() const override { return "Dropout"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Dropout); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    double probability_;
};

}  // namespace declivity::nn
