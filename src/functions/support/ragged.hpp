// Layer 5, private. Rows of different lengths, concatenated.
#pragma once

#include <cstdint>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::detail {

struct RaggedIndices {
    Tensor row, place;  ///< i64 (total)
};

/// Index of the row, and position within it, of each element of rows with counts[i] elements, `total` altogether.
inline RaggedIndices ragged_places(const Tensor& counts, std::int64_t total) {
    const TensorOptions whole{DType::i64, counts.device()};
    if (total == 0) return {zeros({0}, whole), zeros({0}, whole)};
    const Tensor ends = cumsum(counts, 0), at = arange(0, total, 1, whole);
    const Tensor row = searchsorted(ends, at, true);
    return {row, at - index_select(ends - counts, 0, row)};
}

}  // namespace declivity::detail
