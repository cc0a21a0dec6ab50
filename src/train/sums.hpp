// Layer 7, private. Values reported by steps, accumulated on the device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>
#include <declivity/train/epoch_metrics.hpp>

#include "loss_weight.hpp"

namespace declivity::train {

/// For each name the sum of value * weight, and the sum of weights. The memory is allocated once, so that a captured
/// step may add to it under any name.
class Sums {
  public:
    static constexpr std::int64_t kMax = 64;

    explicit Sums(const Device& device);
    /// @throws ShapeError, ValueError as in Step::report
    void add(std::string_view name, const Tensor& value, const LossWeight& weight);
    void reset();

    /// Appends the means, computed from the tensor's values on the host.
    void append(Metrics& metrics, const std::string& prefix, std::span<const float> values) const;

    [[nodiscard]] const Tensor& values() const noexcept { return values_; }  // f32 [kMax, 2]
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    void set_names(std::vector<std::string> names) { names_ = std::move(names); }
    /// Returns whether a name is valid.
    [[nodiscard]] static bool is_name(std::string_view name) noexcept {
        return !name.empty() && name.find_first_of(",\n\"") == std::string_view::npos;
    }

  private:
    [[nodiscard]] std::int64_t index_of(std::string_view name);

    Tensor values_;
    Tensor is_sum_;  // bool [1, 2]: the first of each pair
    std::vector<std::string> names_;
};

}  // namespace declivity::train
