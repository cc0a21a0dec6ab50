// Layer 5. Embedding lookup, and embedding bags.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_embedding Embeddings
/// @ingroup functions
/// Lookup of rows of a table, weight (V, D), of a floating type. Indices are i32 or i64, each in [0, V); an index out
/// of range gives NaN. Gradients of equal indices are summed, bit-identically in every run.
///
/// Errors: ShapeError for a weight of another number of axes; TypeError for a weight of integers, and for other
/// indices; ValueError for a padding_idx outside of [-V, V), a negative max_norm, and undefined operands; DeviceError
/// for operands on different devices.
/// @{

/// Hyperparameters of embedding.
struct EmbeddingParameters {
    /// Index whose row gets no gradient; a negative one counts from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    /// Rows that are read and have a larger norm are first scaled down to it, in place and without a gradient, so that
    /// what was computed from the table before can no longer be differentiated.
    std::optional<double> max_norm = std::nullopt;
    double norm_type = 2;             ///< p of that norm
    bool scale_grad_by_freq = false;  ///< divides the gradient of a row by the number of its occurrences in indices
};
/// Rows of weight (V, D) by index: indices of any shape S -> (S..., D).
/// Example: for i64 i = `[2, 0, 2]` and weight = `[[1, 2], [3, 4], [5, 6]]`, `embedding(i, weight)` is
/// `[[5, 6], [1, 2], [5, 6]]`.
DECLIVITY_API Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingParameters& options = {});

/// Reduction of the rows of a bag.
enum class BagMode : std::uint8_t { mean, sum, max };
constexpr std::string_view name_of(BagMode mode) noexcept {
    return mode == BagMode::mean ? "mean" : mode == BagMode::sum ? "sum" : "max";
}
/// Hyperparameters of embedding_bag.
struct EmbeddingBagParameters {
    BagMode mode = BagMode::mean;
    /// True if offsets has one more element, the end of the last bag; otherwise it ends with the indices.
    bool include_last_offset = false;
    /// Index that is ignored in its bag; a negative one counts from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    std::optional<double> max_norm = std::nullopt;  ///< as EmbeddingParameters::max_norm
    double norm_type = 2;
    bool scale_grad_by_freq = false;  ///< not for BagMode::max
};
/// Mean, sum or maximum over the rows of weight (V, D) in each bag, 0 for an empty bag: (B, D). Bags are the rows of
/// indices (B, L), or parts of indices (N) that begin at offsets (B), i32 or i64, ascending from 0. per_sample_weights,
/// of the shape of indices, scale the rows, for BagMode::sum. The gradient of a maximum goes to the first of equal
/// elements.
/// Examples: for i64 i = `[0, 2, 1]`, i64 offsets = `[0, 2, 2]` and weight = `[[1, 2], [3, 4], [5, 6]]`,
/// `embedding_bag(i, weight, offsets)` is `[[3, 4], [0, 0], [3, 4]]`;
/// `embedding_bag(i, weight, offsets, {}, {.mode = BagMode::sum})` is `[[6, 8], [0, 0], [3, 4]]`.
/// @throws ValueError for offsets of indices (B, L), none of indices (N), and per_sample_weights of another mode than
/// sum; ShapeError for other shapes
DECLIVITY_API Tensor embedding_bag(const Tensor& indices, const Tensor& weight, const Tensor& offsets = {},
                                   const Tensor& per_sample_weights = {}, const EmbeddingBagParameters& options = {});

/// @}

}  // namespace declivity
