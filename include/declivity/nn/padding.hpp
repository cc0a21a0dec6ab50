// Layer 6. Padding layers.
#pragma once

#include <vector>

#include <declivity/functions/padding.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_padding
/// @{

/// declivity::pad of the last N axes of (..., N spatial axes): one size for all sides, or {left, right, top, bottom,
/// front, back}.
template <int N, PadMode mode>
class DECLIVITY_API Pad : public Layer {
  public:
    explicit Pad(std::int64_t all) : Pad(std::vector<std::int64_t>(2 * N, all)) {}
    /// @throws ValueError unless there are 2 N sizes
    explicit Pad(std::vector<std::int64_t> pads);
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Pad); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    std::vector<std::int64_t> pads_;
};

/// Constant padding with a given value.
template <int N>
class DECLIVITY_API ConstantPad : public Layer {
  public:
    ConstantPad(std::int64_t all, Scalar value) : ConstantPad(std::vector<std::int64_t>(2 * N, all), value) {}
    ConstantPad(std::vector<std::int64_t> pads, Scalar value);
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ConstantPad); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    std::vector<std::int64_t> pads_;
    Scalar value_;
};

using ZeroPad1d = Pad<1, PadMode::zeros>;
using ZeroPad2d = Pad<2, PadMode::zeros>;
using ZeroPad3d = Pad<3, PadMode::zeros>;
using ReflectionPad1d = Pad<1, PadMode::reflect>;
using ReflectionPad2d = Pad<2, PadMode::reflect>;
using ReflectionPad3d = Pad<3, PadMode::reflect>;
using ReplicationPad1d = Pad<1, PadMode::replicate>;
using ReplicationPad2d = Pad<2, PadMode::replicate>;
using ReplicationPad3d = Pad<3, PadMode::replicate>;
using CircularPad1d = Pad<1, PadMode::circular>;
using CircularPad2d = Pad<2, PadMode::circular>;
using CircularPad3d = Pad<3, PadMode::circular>;
using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;

/// @}

}  // namespace declivity::nn
