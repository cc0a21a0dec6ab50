// Layer 6. Dropout.
#pragma once

#include <optional>

#include <declivity/nn/callable.hpp>
#include <declivity/tensor/generator.hpp>

namespace declivity::nn {

/// @addtogroup nn_dropout
/// @{

/// Base of dropout layers: applies a function that drops elements with probability p in training mode, the identity in
/// evaluation mode.
class DECLIVITY_API DropoutBase : public Layer {
  public:
    /// Sets the generator for subsequent calls.
    void set_generator(const std::optional<Generator>& generator) { generator_ = generator; }

  protected:
    using Function = Tensor (*)(const Tensor& x, double p, const std::optional<Generator>& generator);
    DropoutBase(const char* name, Function function, double p, const std::optional<Generator>& generator);
    Tensor forward(Tensor x) override;

  private:
    Function function_;
    double p_;
    std::optional<Generator> generator_;
};

/// In training mode, zeroes elements with probability p and scales the others by 1 / (1 - p); identity in evaluation
/// mode.
class DECLIVITY_API Dropout : public DropoutBase {
  public:
    /// @param generator random generator; by default that of the device
    explicit Dropout(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    [[nodiscard]] std::string type_name() const override { return "Dropout"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Dropout); }
};

/// Drops whole channels of (N, C, L) or (C, L), see dropout1d().
class DECLIVITY_API Dropout1d : public DropoutBase {
  public:
    explicit Dropout1d(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    [[nodiscard]] std::string type_name() const override { return "Dropout1d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Dropout1d); }
};

/// Drops whole channels of (N, C, H, W), see dropout2d().
class DECLIVITY_API Dropout2d : public DropoutBase {
  public:
    explicit Dropout2d(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    [[nodiscard]] std::string type_name() const override { return "Dropout2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Dropout2d); }
};

/// Drops whole channels of (N, C, D, H, W) or (C, D, H, W), see dropout3d().
class DECLIVITY_API Dropout3d : public DropoutBase {
  public:
    explicit Dropout3d(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    [[nodiscard]] std::string type_name() const override { return "Dropout3d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Dropout3d); }
};

/// Dropout for self-normalising networks with selu, see alpha_dropout().
class DECLIVITY_API AlphaDropout : public DropoutBase {
  public:
    explicit AlphaDropout(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    [[nodiscard]] std::string type_name() const override { return "AlphaDropout"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AlphaDropout); }
};

/// AlphaDropout of whole channels, see feature_alpha_dropout().
class DECLIVITY_API FeatureAlphaDropout : public DropoutBase {
  public:
    explicit FeatureAlphaDropout(double p = 0.5, const std::optional<Generator>& generator = std::nullopt);
    [[nodiscard]] std::string type_name() const override { return "FeatureAlphaDropout"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(FeatureAlphaDropout); }
};

/// @}

}  // namespace declivity::nn
