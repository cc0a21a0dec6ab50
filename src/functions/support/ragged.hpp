// Layer 5, private. Rows of different lengths, concatenated.
#pragma once

#include <cstdint>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::detail {

struct RaggedIndices {
    Tensor row, position;  ///< i64 (total)
};

/// Index of the row, and position within it, of each element of rows with counts[i] elements, `total` altogether.
inline RaggedIndices ragged_indices(const Tensor& counts, std::int64_t total) {
    const TensorOptions index_options{DType::i64, counts.device()};
    if (total == 0) return {zeros({0}, index_options), zeros({0}, index_options)};
    const Tensor ends = cumsum(counts, 0), positions = arange(0, total, 1, index_options);
    const Tensor row = searchsorted(ends, positions, true);
    return {row, positions - index_select(ends - counts, 0, row)};
}

}  // namespace declivity::detail
