// Rows of numbers, for the recommender models.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include <declivity/tensor/tensor.hpp>
#include <tests/support/weights.hpp>

namespace declivity::test {

using Integers = std::vector<std::int64_t>;

inline std::size_t to_size(std::int64_t i) { return static_cast<std::size_t>(i); }

inline Row row_of(const Row& table, std::int64_t number, std::size_t width) {
    const auto from = table.begin() + number * static_cast<std::int64_t>(width);
    return {from, from + static_cast<std::ptrdiff_t>(width)};
}

inline double product(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

}  // namespace declivity::test
