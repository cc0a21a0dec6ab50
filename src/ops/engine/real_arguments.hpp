// Layer 2, private. Real numbers as kernel arguments in the compute type.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// A double in the compute type of `dtype`, f32 or f64.
inline Argument real_argument(DType dtype, double value) {
    if (compute_type(dtype) == DType::f64) return value;
    return static_cast<float>(value);
}

/// The same for several numbers.
class RealArguments {
  public:
    RealArguments(DType dtype, std::initializer_list<double> values) {
        values_.reserve(values.size());
        for (const double value : values) values_.push_back(real_argument(dtype, value));
    }
    [[nodiscard]] const Argument& operator[](std::size_t i) const { return values_[i]; }

  private:
    std::vector<Argument> values_;
};

}  // namespace declivity::ops
