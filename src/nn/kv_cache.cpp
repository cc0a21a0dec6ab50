#include <declivity/nn/kv_cache.hpp>

#include <algorithm>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/attention.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

ops::View rows_of(const Tensor& x) {
    const ops::View view = x.view();
    return view.shape[3] <= 1 || view.strides[3] == 1 ? view : x.clone().view();
}

void require_size(const char* what, std::int64_t size) {
    if (size < 1) throw ValueError(fmt::format("KeyValueCache: expected {} of at least 1, got {}", what, size));
}

}  // namespace

struct KeyValueCache::State {
    std::int64_t batch, heads, head_dim, max_length;
    std::optional<std::int64_t> page_size = std::nullopt;
    std::vector<Tensor> keys = {}, values = {};  // one per layer
    Tensor lengths = {}, table = {};
    std::vector<std::int64_t> free = {};                // free pages
    std::vector<std::vector<std::int64_t>> owned = {};  // pages of each sample
    std::int64_t announced = 0;                         // tokens announced by calls that were not replays
    bool is_prefill = true;                             // the last call started with an empty cache
    std::int64_t last_count = 0;                        // tokens of the last call
    [[nodiscard]] std::int64_t pages_per_sample() const { return (max_length + *page_size - 1) / *page_size; }

    void write_table() {
        std::vector<std::int64_t> page_indices;
        for (const auto& pages : owned)
            // Pages that a sample does not own are never read or written.
            for (std::int64_t i = 0; i < pages_per_sample(); ++i)
                page_indices.push_back(i < static_cast<std::int64_t>(pages.size()) ? pages[static_cast<std::size_t>(i)]
                                                                                   : -1);
        table.copy_(Tensor::from(page_indices, {batch, pages_per_sample()}, table.device()));
    }

    void reserve(std::int64_t sample, std::int64_t length) {
        auto& pages = owned.at(static_cast<std::size_t>(sample));
        const std::int64_t required = (std::min(length, max_length) + *page_size - 1) / *page_size,
                           missing = required - static_cast<std::int64_t>(pages.size());
        if (missing > static_cast<std::int64_t>(free.size()))
            throw ValueError(fmt::format("KeyValueCache::reserve: expected {} more free pages for sample {}, got {}",
                                         missing, sample, free.size()));
        for (std::int64_t i = 0; i < missing; ++i) {
            pages.push_back(free.back());
            free.pop_back();
        }
    }
};

KeyValueCache::State& KeyValueCache::state(const char* function) const {
    if (state_ == nullptr)
        throw ValueError(fmt::format("KeyValueCache::{}: expected a cache, got a default-constructed one", function));
    return *state_;
}

KeyValueCache::KeyValueCache(std::int64_t layers, std::int64_t batch, std::int64_t heads, std::int64_t head_dim,
                             std::int64_t max_length, const KeyValueCacheOptions& options)
    : state_(std::make_shared<State>(
          State{.batch = batch, .heads = heads, .head_dim = head_dim, .max_length = max_length})) {
    require_size("layers", layers);
    require_size("batch", batch);
    require_size("heads", heads);
    require_size("head_dim", head_dim);
    require_size("max_length", max_length);
    if (!is_floating(options.dtype))
        throw TypeError(fmt::format("KeyValueCache: expected a floating type, got {}", name_of(options.dtype)));
    State& cache = *state_;
    const TensorOptions cache_options{options.dtype, options.device}, index_options{DType::i64, options.device};
    cache.lengths = zeros({batch}, index_options).clone();
    Shape shape{batch, heads, max_length, head_dim};
    if (options.page_size || options.pages) {
        cache.page_size = options.page_size.value_or(16);
        require_size("page_size", *cache.page_size);
        const std::int64_t pages = options.pages.value_or(batch * cache.pages_per_sample());
        require_size("pages", pages);
        shape = {pages, heads, *cache.page_size, head_dim};
        for (std::int64_t page = pages; page-- > 0;) cache.free.push_back(page);
        cache.owned.resize(static_cast<std::size_t>(batch));
        cache.table = zeros({batch, cache.pages_per_sample()}, index_options).clone();
        if (!options.pages)
            for (std::int64_t sample = 0; sample < batch; ++sample) cache.reserve(sample, max_length);
        cache.write_table();
    }
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        cache.keys.push_back(zeros(shape, cache_options).clone());
        cache.values.push_back(zeros(shape, cache_options).clone());
    }
}

std::int64_t KeyValueCache::layers() const { return static_cast<std::int64_t>(state("layers").keys.size()); }
std::int64_t KeyValueCache::batch() const { return state("batch").batch; }
std::int64_t KeyValueCache::max_length() const { return state("max_length").max_length; }
bool KeyValueCache::paged() const { return state("paged").page_size.has_value(); }
Tensor KeyValueCache::lengths() const { return state("lengths").lengths; }
std::int64_t KeyValueCache::free_pages() const { return static_cast<std::int64_t>(state("free_pages").free.size()); }

std::uint64_t KeyValueCache::bytes() const {
    const State& cache = state("bytes");
    return 2 * cache.keys.size() * ops::bytes_of(cache.keys[0].shape(), cache.keys[0].dtype());
}

void KeyValueCache::set_lengths(const Tensor& lengths) {
    const State& cache = state("set_lengths");
    ops::require_shape("KeyValueCache::set_lengths", "lengths", lengths.shape(), {cache.batch});
    if (lengths.dtype() != DType::i64 && lengths.dtype() != DType::i32)
        throw TypeError(fmt::format("KeyValueCache::set_lengths: expected lengths of i64 or i32, got {}",
                                    name_of(lengths.dtype())));
    Tensor cache_lengths = cache.lengths;
    cache_lengths.copy_(lengths.to(DType::i64));
}

void KeyValueCache::advance(std::int64_t count) {
    State& cache = state("advance");
    require_size("tokens of a call", count);
    if (cache.announced + count > cache.max_length)
        throw ValueError(fmt::format("KeyValueCache::advance: expected up to {} tokens, got {} after {}",
                                     cache.max_length, count, cache.announced));
    cache.is_prefill = cache.announced == 0;
    cache.announced += count;
    cache.last_count = count;
    cache.lengths += count;
}

Tensor KeyValueCache::positions(std::int64_t count) const {
    const State& cache = state("positions");
    return unsqueeze(cache.lengths, 1) + arange(-count, 0, 1, {DType::i64, cache.lengths.device()});
}

Tensor KeyValueCache::attend(std::int64_t layer, const Tensor& query, const Tensor& key, const Tensor& value,
                             const CacheAttention& options) const {
    const State& cache = state("attend");
    if (layer < 0 || layer >= layers())
        throw ValueError(
            fmt::format("KeyValueCache::attend: expected a layer index below {}, got {}", layers(), layer));
    const Shape expected{cache.batch, cache.heads, key.size(2), cache.head_dim};
    ops::require_shape("KeyValueCache::attend", "key", key.shape(), expected);
    ops::require_shape("KeyValueCache::attend", "value", value.shape(), expected);
    if (key.size(2) != cache.last_count)
        throw ShapeError(
            fmt::format("KeyValueCache::attend: expected keys of the {} tokens passed to advance(), got {}",
                        cache.last_count, key.shape().str()));
    const NoGrad no_grad;
    const Tensor &keys = cache.keys[static_cast<std::size_t>(layer)],
                 &values = cache.values[static_cast<std::size_t>(layer)];
    const DType compute = compute_type(query.dtype());
    ops::attention_append(rows_of(key.to(compute)), rows_of(value.to(compute)),
                          {{},
                           keys.view(),
                           values.view(),
                           cache.lengths.view(),
                           cache.table.defined() ? cache.table.view() : ops::View{}});
    if (cache.is_prefill)
        return scaled_dot_product_attention(query, key, value,
                                            {.is_causal = true,
                                             .scale = options.scale,
                                             .enable_gqa = query.size(1) != key.size(1),
                                             .window = options.window});
    return cached_attention(query, keys, values, cache.lengths,
                            {.scale = options.scale, .window = options.window, .block_table = cache.table});
}

void KeyValueCache::reorder(const std::vector<std::int64_t>& samples, std::optional<std::int64_t> length) {
    State& cache = state("reorder");
    if (static_cast<std::int64_t>(samples.size()) != cache.batch)
        throw ValueError(
            fmt::format("KeyValueCache::reorder: expected {} samples, got {}", cache.batch, samples.size()));
    for (const std::int64_t sample : samples)
        if (sample < 0 || sample >= cache.batch)
            throw ValueError(
                fmt::format("KeyValueCache::reorder: expected a sample index below {}, got {}", cache.batch, sample));
    const NoGrad no_grad;
    std::vector<std::int64_t> blocks = samples;
    if (cache.page_size) {
        // A page that no sample owns, or that keeps its tokens, is copied onto itself.
        blocks.resize(static_cast<std::size_t>(cache.keys[0].size(0)));
        for (std::size_t page = 0; page < blocks.size(); ++page) blocks[page] = static_cast<std::int64_t>(page);
        for (std::size_t to = 0; to < samples.size(); ++to) {
            const auto &target_pages = cache.owned[to],
                       &source_pages = cache.owned[static_cast<std::size_t>(samples[to])];
            if (target_pages.size() < source_pages.size())
                throw ValueError(fmt::format("KeyValueCache::reorder: expected {} pages of sample {}, got {}",
                                             source_pages.size(), to, target_pages.size()));
            for (std::size_t i = 0; i < source_pages.size(); ++i)
                blocks[static_cast<std::size_t>(target_pages[i])] = source_pages[i];
        }
    }
    const Device device = cache.lengths.device();
    const auto count = [](const std::vector<std::int64_t>& values) {
        return Shape{static_cast<std::int64_t>(values.size())};
    };
    const Tensor index = Tensor::from(blocks, count(blocks), device);
    const std::int64_t capacity = cache.page_size.value_or(cache.max_length),
                       positions = cache.page_size ? capacity
                                                   : std::clamp<std::int64_t>(length.value_or(capacity), 1, capacity);
    for (auto* const tensors : {&cache.keys, &cache.values})
        for (const Tensor& item : *tensors) {
            Tensor used = slice(item, 2, 0, positions);
            used.copy_(index_select(used, 0, index));
        }
    cache.lengths.copy_(index_select(cache.lengths, 0, Tensor::from(samples, count(samples), device)));
}

void KeyValueCache::reset() {
    State& cache = state("reset");
    cache.lengths.fill_(0);
    cache.announced = 0;
}

void KeyValueCache::reserve(std::int64_t sample, std::int64_t length) {
    State& cache = state("reserve");
    if (!cache.page_size) throw ValueError("KeyValueCache::reserve: the cache has no pages");
    if (sample < 0 || sample >= cache.batch)
        throw ValueError(
            fmt::format("KeyValueCache::reserve: expected a sample index below {}, got {}", cache.batch, sample));
    if (length < 0 || length > cache.max_length)
        throw ValueError(
            fmt::format("KeyValueCache::reserve: expected a length in 0 .. {}, got {}", cache.max_length, length));
    cache.reserve(sample, length);
    cache.write_table();
}

void KeyValueCache::release(std::int64_t sample) {
    State& cache = state("release");
    if (!cache.page_size) throw ValueError("KeyValueCache::release: the cache has no pages");
    if (sample < 0 || sample >= cache.batch)
        throw ValueError(
            fmt::format("KeyValueCache::release: expected a sample index below {}, got {}", cache.batch, sample));
    auto& pages = cache.owned[static_cast<std::size_t>(sample)];
    cache.free.insert(cache.free.end(), pages.rbegin(), pages.rend());
    pages.clear();
    cache.write_table();
    slice(cache.lengths, 0, sample, sample + 1).fill_(0);
}

}  // namespace declivity::nn
