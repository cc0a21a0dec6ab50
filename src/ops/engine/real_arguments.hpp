// Floor 2, private. Numbers of the element type as kernel arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Doubles in the type that numbers of another are computed with, f32 or f64; alive as long as the launch that takes
/// them.
class RealArguments {
  public:
    RealArguments(DType dtype, std::initializer_list<double> values) {
        for (const double value : values) {
            std::array<std::byte, 8> bytes{};
            if (dtype == DType::f64) {
                std::memcpy(bytes.data(), &value, sizeof value);
            } else {
                const auto narrow = static_cast<float>(value);
                std::memcpy(bytes.data(), &narrow, sizeof narrow);
            }
            values_.push_back(bytes);
        }
        size_ = size_of(compute_type(dtype));
    }
    [[nodiscard]] Argument operator[](std::size_t i) const { return {RawArgument{values_[i].data(), size_}}; }

  private:
    std::vector<std::array<std::byte, 8>> values_;
    std::size_t size_ = 0;
};

}  // namespace declivity::ops
