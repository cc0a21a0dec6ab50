// Floor 4. Dropout.
#pragma once

#include <optional>

#include <declivity/nn/callable.hpp>
#include <declivity/tensor/generator.hpp>

namespace declivity::nn {

/// While training, sets elements to 0 with probability p and scales the others up; otherwise passes x through.
class DECLIVITY_API Dropout : public Layer {
  public:
    /// @param generator where the numbers come from: that of the device without one
    explicit Dropout(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    /// From the next call on.
    void set_generator(const std::optional<Generator>& generator) { generator_ = generator; }
    [[nodiscard]] std::string type_name() const override { return "Dropout"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Dropout); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    double p_;
    std::optional<Generator> generator_;
};

}  // namespace declivity::nn
