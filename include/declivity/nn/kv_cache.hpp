// Layer 6. KV cache for text generation with a transformer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::nn {

/// @addtogroup nn_attention
/// @{

struct KeyValueCacheOptions {
    DType dtype = DType::f32;  ///< type of the cache; f16 and bf16 are allowed with f32 models
    std::optional<std::int64_t> page_size = std::nullopt;  ///< tokens per page of a paged cache; contiguous if none
    /// Pages per layer, which reserve() assigns to samples; if none, enough for all samples, assigned at once.
    std::optional<std::int64_t> pages = std::nullopt;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

struct CacheAttention {
    std::optional<double> scale = std::nullopt;         ///< scale of the scores; 1 / sqrt(D) if none
    std::optional<std::int64_t> window = std::nullopt;  ///< sliding window: attends to keys less than this far away
};

/// Keys and values of all layers, for `batch` samples of up to max_length tokens each. Memory is allocated once. The
/// number of tokens of each sample is in device memory, so that each replay of a captured step appends at the next
/// position. A call of a model does advance(L), and attend() in each layer.
///
/// A handle: copies share the cache. It records no gradients: use it under NoGrad.
class DECLIVITY_API KeyValueCache {
  public:
    /// Null handle.
    KeyValueCache() = default;
    /// @param heads number of key/value heads
    /// @throws ValueError for a size below 1, TypeError for a type that is not floating
    KeyValueCache(std::int64_t layers, std::int64_t batch, std::int64_t heads, std::int64_t head_dim,
                  std::int64_t max_length, const KeyValueCacheOptions& options = {});

    [[nodiscard]] bool defined() const noexcept { return state_ != nullptr; }
    [[nodiscard]] std::int64_t layers() const;
    [[nodiscard]] std::int64_t batch() const;
    [[nodiscard]] std::int64_t max_length() const;
    [[nodiscard]] bool paged() const;
    /// Memory of keys and values in bytes.
    [[nodiscard]] std::uint64_t bytes() const;

    /// Number of tokens of each sample, (batch), i64, including those of advance().
    [[nodiscard]] Tensor lengths() const;
    /// Sets the number of tokens of each sample, after a call with prompts of different lengths that are padded at the
    /// end.
    /// @param lengths (batch), i32 or i64
    void set_lengths(const Tensor& lengths);
    /// Advances the position of each sample by `count` tokens, whose keys and values attend() appends.
    /// @throws ValueError if max_length is exceeded, as far as it is known without counting replays
    void advance(std::int64_t count);
    /// Positions of the last `count` tokens, (batch, count), i64, from 0.
    [[nodiscard]] Tensor positions(std::int64_t count) const;
    /// Appends key and value (batch, heads, L, D) of the last L tokens to the cache, and computes causal attention to
    /// all cached tokens: query (batch, G heads, L, D) -> (batch, G heads, L, D).
    [[nodiscard]] Tensor attend(std::int64_t layer, const Tensor& query, const Tensor& key, const Tensor& value,
                                const CacheAttention& options = {}) const;
    /// Makes each sample i continue from the tokens of sample samples[i], for beam search. Keys and values are copied;
    /// with pages, a sample needs as many as its source.
    /// @param length number of positions to copy, if no sample has more tokens; all if none
    /// @throws ValueError unless there is one valid index for each sample
    void reorder(const std::vector<std::int64_t>& samples, std::optional<std::int64_t> length = std::nullopt);
    /// Removes all tokens. Assigned pages are kept.
    void reset();

    /// Assigns pages to a sample, so that it has room for `length` tokens; its existing pages are kept.
    /// @throws ValueError if there are too few free pages, or for a cache without pages
    void reserve(std::int64_t sample, std::int64_t length);
    /// Frees the pages of a sample, including its tokens.
    void release(std::int64_t sample);
    [[nodiscard]] std::int64_t free_pages() const;

    /// For observers of module calls.
    friend std::vector<Tensor> tensors_of(const KeyValueCache& cache) {
        return cache.defined() ? std::vector{cache.lengths()} : std::vector<Tensor>{};
    }

  private:
    struct State;
    [[nodiscard]] State& state(const char* function) const;
    std::shared_ptr<State> state_;
};

/// @}

}  // namespace declivity::nn
