#include <declivity/nn/embedding.hpp>

#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

/// Index counted from the start.
std::optional<std::int64_t> padding_of(std::string_view layer, std::optional<std::int64_t> padding_idx,
                                       std::int64_t rows) {
    if (padding_idx && (*padding_idx < -rows || *padding_idx >= rows))
        throw ValueError(fmt::format("{}: expected padding_idx within {} rows, got {}", layer, rows, *padding_idx));
    if (padding_idx && *padding_idx < 0) *padding_idx += rows;
    return padding_idx;
}

void require_sizes(std::string_view layer, std::int64_t num_embeddings, std::int64_t embedding_dim) {
    if (num_embeddings < 1 || embedding_dim < 1)
        throw ValueError(fmt::format("{}: expected num_embeddings and embedding_dim of at least 1, got {} and {}",
                                     layer, num_embeddings, embedding_dim));
}

Tensor initial_table(std::int64_t rows, std::int64_t columns, const TensorOptions& tensor,
                     const std::optional<std::int64_t>& padding) {
    Tensor table = normal({rows, columns}, 0, 1, tensor);
    if (!padding) return table;
    const Tensor zero_row = zeros({columns}, {table.dtype(), table.device()});
    return select_scatter(std::move(table), zero_row, 0, *padding);
}

/// Copy of a table for the layer.
Tensor copy_of_table(std::string_view layer, const Tensor& table) {
    if (!table.defined()) throw ValueError(fmt::format("{}: expected a table, got an undefined tensor", layer));
    if (table.rank() != 2)
        throw ShapeError(fmt::format("{}: expected a table of shape (V, D), got {}", layer, table.shape().str()));
    require_sizes(layer, table.size(0), table.size(1));
    return table.detach().clone();
}

}  // namespace

Embedding::Embedding(const Tensor& table, const EmbeddingOptions& options)
    : padding_idx_(padding_of("Embedding", options.padding_idx, table.size(0))),
      max_norm_(options.max_norm),
      norm_type_(options.norm_type),
      scale_grad_by_freq_(options.scale_grad_by_freq) {
    weight_ = parameter("weight", table);
}

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingOptions& options)
    : Embedding((require_sizes("Embedding", num_embeddings, embedding_dim),
                 initial_table(num_embeddings, embedding_dim, {options.dtype, options.device},
                               padding_of("Embedding", options.padding_idx, num_embeddings))),
                options) {}

Embedding Embedding::from_pretrained(const Tensor& table, bool freeze, const EmbeddingOptions& options) {
    Embedding result(copy_of_table("Embedding::from_pretrained", table), options);
    result.weight().set_requires_grad(!freeze);
    return result;
}

Tensor Embedding::forward(Tensor indices) {
    return embedding(indices, weight_,
                     {.padding_idx = guarded(&Embedding::padding_idx_),
                      .max_norm = guarded(&Embedding::max_norm_),
                      .norm_type = guarded(&Embedding::norm_type_),
                      .scale_grad_by_freq = guarded(&Embedding::scale_grad_by_freq_)});
}

EmbeddingBag::EmbeddingBag(const Tensor& table, const EmbeddingBagOptions& options)
    : mode_(options.mode),
      include_last_offset_(options.include_last_offset),
      padding_idx_(padding_of("EmbeddingBag", options.padding_idx, table.size(0))),
      max_norm_(options.max_norm),
      norm_type_(options.norm_type),
      scale_grad_by_freq_(options.scale_grad_by_freq) {
    weight_ = parameter("weight", table);
}

EmbeddingBag::EmbeddingBag(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingBagOptions& options)
    : EmbeddingBag((require_sizes("EmbeddingBag", num_embeddings, embedding_dim),
                    initial_table(num_embeddings, embedding_dim, {options.dtype, options.device},
                                  padding_of("EmbeddingBag", options.padding_idx, num_embeddings))),
                   options) {}

EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& table, bool freeze, const EmbeddingBagOptions& options) {
    EmbeddingBag result(copy_of_table("EmbeddingBag::from_pretrained", table), options);
    result.weight().set_requires_grad(!freeze);
    return result;
}

Tensor EmbeddingBag::forward(Tensor indices, Tensor offsets, Tensor per_sample_weights) {
    return embedding_bag(indices, weight_, offsets, per_sample_weights,
                         {.mode = guarded(&EmbeddingBag::mode_),
                          .include_last_offset = guarded(&EmbeddingBag::include_last_offset_),
                          .padding_idx = guarded(&EmbeddingBag::padding_idx_),
                          .max_norm = guarded(&EmbeddingBag::max_norm_),
                          .norm_type = guarded(&EmbeddingBag::norm_type_),
                          .scale_grad_by_freq = guarded(&EmbeddingBag::scale_grad_by_freq_)});
}

}  // namespace declivity::nn
