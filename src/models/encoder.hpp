// Layer 7, private. Encoder attention and its layers, with the parameter names of BERT and ViT.
#pragma once

#include <cstdint>
#include <utility>

#include <declivity/nn/dropout.hpp>

#include "activation.hpp"
#include "parts.hpp"

namespace declivity::models {

/// A linear layer with its parameters under "dense", followed by an activation.
class Dense : public nn::Layer {
  public:
    Dense(std::int64_t in, std::int64_t out, const ModelOptions& options, Activation activation = nullptr)
        : dense_(add("dense", nn::Linear(in, out, linear_options(true, options)))), activation_(activation) {}
    [[nodiscard]] std::string type_name() const override { return "Dense"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Dense); }

  protected:
    Tensor forward(Tensor x) override {
        x = dense_(std::move(x));
        return activation_ == nullptr ? x : activation_(std::move(x));
    }

  private:
    nn::Linear& dense_;
    Activation activation_;
};

/// Multi-head self-attention over x (N, L, width); mask (N, 1, 1, L), bool, true takes part.
class SelfAttention : public nn::Callable<Tensor(Tensor, Tensor)> {
  public:
    SelfAttention(std::int64_t width, std::int64_t heads, bool bias, double dropout, const ModelOptions& options)
        : query_(add("query", nn::Linear(width, width, linear_options(bias, options)))),
          key_(add("key", nn::Linear(width, width, linear_options(bias, options)))),
          value_(add("value", nn::Linear(width, width, linear_options(bias, options)))),
          heads_(heads),
          dropout_(dropout) {}
    [[nodiscard]] std::string type_name() const override { return "SelfAttention"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(SelfAttention); }

  protected:
    Tensor forward(Tensor x, Tensor mask) override {
        return merge_heads(scaled_dot_product_attention(
            split_heads(query_(x), heads_), split_heads(key_(x), heads_), split_heads(value_(x), heads_),
            {.attn_mask = std::move(mask), .dropout_p = training() ? dropout_ : 0}));
    }

  private:
    nn::Linear &query_, &key_, &value_;
    std::int64_t heads_;
    double dropout_;
};

/// Pools the first token, (N, L, width) -> (N, out).
class BERTPooler : public nn::Layer {
  public:
    BERTPooler(std::int64_t width, std::int64_t out, Activation activation, const ModelOptions& options)
        : dense_(add("dense", nn::Linear(width, out, linear_options(true, options)))), activation_(activation) {}
    [[nodiscard]] std::string type_name() const override { return "BERTPooler"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTPooler); }

  protected:
    Tensor forward(Tensor x) override { return activation_(dense_(select(x, 1, 0))); }

  private:
    nn::Linear& dense_;
    Activation activation_;
};

}  // namespace declivity::models
