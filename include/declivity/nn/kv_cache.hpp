// Layer 4. The cache of keys and values with which a language model writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::nn {

struct KeyValueCacheOptions {
    DType dtype = DType::f32;                              ///< of what is kept; f16 and bf16 beside models of f32
    std::optional<std::int64_t> page_size = std::nullopt;  ///< keys of a page; one block for each sample if none
    /// Pages of a layer, which reserve() gives to samples; if none, as many as all samples can fill, given at once.
    std::optional<std::int64_t> pages = std::nullopt;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

struct CacheAttention {
    std::optional<double> scale = std::nullopt;         ///< of the scores; 1 / sqrt(D) if none
    std::optional<std::int64_t> window = std::nullopt;  ///< a query sees keys less than so many away
};

/// Keys and values of all layers, for `batch` samples of up to max_length tokens each. Memory is taken once. How many
/// tokens each sample has lies on the device, so that a recorded step writes and reads one place further each time it
/// is replayed. A call of a model is: advance(L), and in each layer attend().
///
/// A handle: copies share the cache. It keeps no graph: use it under NoGrad.
class DECLIVITY_API KeyValueCache {
  public:
    /// None.
    KeyValueCache() = default;
    /// @param heads of keys and values
    /// @throws ValueError for a size below 1, TypeError for a type that is not floating
    KeyValueCache(std::int64_t layers, std::int64_t batch, std::int64_t heads, std::int64_t head_dim,
                  std::int64_t max_length, const KeyValueCacheOptions& options = {});

    [[nodiscard]] bool defined() const noexcept { return state_ != nullptr; }
    [[nodiscard]] std::int64_t layers() const;
    [[nodiscard]] std::int64_t batch() const;
    [[nodiscard]] std::int64_t max_length() const;
    [[nodiscard]] bool paged() const;
    /// Bytes of keys and values.
    [[nodiscard]] std::uint64_t bytes() const;

    /// Tokens of each sample, (batch), i64; those that a call has announced count.
    [[nodiscard]] Tensor lengths() const;
    /// For prompts of different lengths, behind a call with rows that are filled up at the end: what counts of them.
    /// @param lengths (batch), whole numbers
    void set_lengths(const Tensor& lengths);
    /// Announces `count` more tokens of each sample.
    /// @throws ValueError where they have no room, as far as calls that are not replays tell
    void advance(std::int64_t count);
    /// Places of the `count` tokens that were announced last, (batch, count), i64, counted from 0.
    [[nodiscard]] Tensor positions(std::int64_t count) const;
    /// Keeps key and value (batch, heads, L, D) of the L tokens that were announced last, and attends, causally, to all
    /// that there are: query (batch, G heads, L, D) -> (batch, G heads, L, D).
    [[nodiscard]] Tensor attend(std::int64_t layer, const Tensor& query, const Tensor& key, const Tensor& value,
                                const CacheAttention& options = {}) const;
    /// Each sample i goes on from the tokens of sample samples[i], as beam search does. Keys and values are copied;
    /// with pages, a sample needs as many as the one that it goes on from.
    /// @param length places that are copied, where no sample has more tokens; all if none
    /// @throws ValueError unless there is a sample of the cache for each of its samples
    void reorder(const std::vector<std::int64_t>& samples, std::optional<std::int64_t> length = std::nullopt);
    /// Forgets all tokens. Pages stay where they are.
    void reset();

    /// Gives pages to a sample, so that it has room for `length` tokens; those that it has stay.
    /// @throws ValueError where there are too few pages, or for a cache without pages
    void reserve(std::int64_t sample, std::int64_t length);
    /// Takes the pages of a sample back, and its tokens with them.
    void release(std::int64_t sample);
    [[nodiscard]] std::int64_t free_pages() const;

    /// For whoever looks at calls of modules.
    friend std::vector<Tensor> tensors_of(const KeyValueCache& cache) {
        return cache.defined() ? std::vector{cache.lengths()} : std::vector<Tensor>{};
    }

  private:
    struct State;
    [[nodiscard]] State& state(const char* function) const;
    std::shared_ptr<State> state_;
};

}  // namespace declivity::nn
