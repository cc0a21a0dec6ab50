// Layer 2, private. Numbers of the element type as kernel arguments.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// A double in the type that numbers of another are computed with, f32 or f64.
inline Argument real_argument(DType dtype, double value) {
    if (compute_type(dtype) == DType::f64) return value;
    return static_cast<float>(value);
}

/// Several of them.
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
