// Inputs larger than the caches, in several sets used round-robin, and checks of sampled elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "measure.hpp"

namespace declivity::bench {

/// Minimum total size of all operand sets in bytes, so that no call finds its operands in a cache.
constexpr double kBeyondCaches = 400e6;

inline int sets_for(double bytes) { return std::clamp(static_cast<int>(std::ceil(kBeyondCaches / bytes)), 1, 64); }

/// Compares the first, the last and `count` random elements with `expected(index)` in double.
inline std::string wrong_element(const std::vector<float>& got, int count, double relative, double absolute,
                                 const std::function<double(std::size_t)>& expected) {
    std::mt19937_64 engine(11);
    for (int i = 0; i < count + 2; ++i) {
        const std::size_t at = i == 0 ? 0 : i == 1 ? got.size() - 1 : engine() % got.size();
        const double expected_value = expected(at);
        if (!(std::abs(double{got[at]} - expected_value) <= absolute + relative * std::abs(expected_value)))
            return fmt::format("element {} is {}, expected {}", at, got[at], expected_value);
    }
    return {};
}

}  // namespace declivity::bench
