#include <declivity/nn/embedding.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingOptions& options)
    : padding_idx_(options.padding_idx) {
    if (num_embeddings < 1 || embedding_dim < 1)
        throw ValueError(fmt::format("Embedding: wants num_embeddings and embedding_dim of at least 1, got {} and {}",
                                     num_embeddings, embedding_dim));
    if (padding_idx_ && (*padding_idx_ < -num_embeddings || *padding_idx_ >= num_embeddings))
        throw ValueError(
            fmt::format("Embedding: wants a padding_idx of one of {} rows, got {}", num_embeddings, *padding_idx_));
    if (padding_idx_ && *padding_idx_ < 0) *padding_idx_ += num_embeddings;
    Tensor table = normal({num_embeddings, embedding_dim}, 0, 1, {options.dtype, options.device});
    if (padding_idx_)
        table =
            select_scatter(std::move(table), zeros({embedding_dim}, {table.dtype(), table.device()}), 0, *padding_idx_);
    weight_ = parameter("weight", table);
}

Tensor Embedding::forward(Tensor indices) {
    const Tensor rows = embedding(indices, weight_);
    if (!padding_idx_ || !rows.requires_grad()) return rows;
    Shape column = indices.shape();
    column.push_back(1);
    return where(reshape(indices == *padding_idx_, column), rows.detach(), rows);
}

}  // namespace declivity::nn
