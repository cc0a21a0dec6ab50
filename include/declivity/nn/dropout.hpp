// Floor 4. Dropout.
#pragma once

#include <optional>

#include <declivity/nn/module.hpp>
#include <declivity/tensor/generator.hpp>

namespace declivity::nn {

/// While training, sets elements to 0 with this probability and scales the others up; otherwise passes x through.
class DECLIVITY_API Dropout : public Module {
  public:
    /// @param generator where the numbers come from: that of the device without one
    explicit Dropout(double probability = 0.5, const std::optional<Generator>& generator = std::nullopt);
    /// From the next call on.
    void set_generator(const std::optional<Generator>& generator) { generator_ = generator; }
    [[nodiscard]] std::string type_name() const override { return "Dropout"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Dropout); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    double probability_;
    std::optional<Generator> generator_;
};

}  // namespace declivity::nn
