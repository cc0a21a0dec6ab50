// Layer 3. Rows of a table by their numbers, one by one and in bags.
//
// Numbers are i32 or i64, each in [0, V) for a table weight (V, D). One outside gives NaN. Gradients are sums of those
// of equal numbers, the same to the bit in every run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct EmbeddingParameters {
    /// A number whose row gets no gradient; a negative one counts from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    /// Rows that are read and whose norm is larger are first scaled down to it, in place and without a gradient, so
    /// that what was computed from the table before can no longer be differentiated.
    std::optional<double> max_norm = std::nullopt;
    double norm_type = 2;             ///< p of that norm
    bool scale_grad_by_freq = false;  ///< the gradient of a row is divided by how often its number stands among indices
};
/// Rows of weight (V, D) by their numbers: indices of any shape S give (S..., D).
DECLIVITY_API Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingParameters& options = {});

/// What becomes of the rows of a bag.
enum class BagMode : std::uint8_t { mean, sum, max };
constexpr std::string_view name_of(BagMode mode) noexcept {
    return mode == BagMode::mean ? "mean" : mode == BagMode::sum ? "sum" : "max";
}
struct EmbeddingBagParameters {
    BagMode mode = BagMode::mean;
    /// offsets has one more element, which is where the last bag ends; otherwise it ends with the indices.
    bool include_last_offset = false;
    /// A number that counts for nothing in its bag; a negative one counts from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    std::optional<double> max_norm = std::nullopt;  ///< as EmbeddingParameters::max_norm
    double norm_type = 2;
    bool scale_grad_by_freq = false;  ///< not for BagMode::max
};
/// The mean, sum or largest of each column of the rows of weight (V, D) that a bag names, 0 for an empty bag: (B, D).
/// Bags are the rows of indices (B, L); or parts of indices (N), which begin at offsets (B), i32 or i64 in rising order
/// from 0 on. per_sample_weights, of the shape of indices, are factors of the rows, for BagMode::sum. The gradient of a
/// largest element goes to the first of equal ones.
DECLIVITY_API Tensor embedding_bag(const Tensor& indices, const Tensor& weight, const Tensor& offsets = {},
                                   const Tensor& per_sample_weights = {}, const EmbeddingBagParameters& options = {});

}  // namespace declivity
