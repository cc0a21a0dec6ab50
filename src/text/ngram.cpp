#include <declivity/text/ngram.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/text/generation.hpp>
#include <declivity/text/metrics.hpp>
#include <fmt/format.h>

#include "io/checksum.hpp"

namespace declivity::text {
namespace {

using Key = std::u32string;  ///< tokens
using Counts = std::unordered_map<Key, std::int64_t>;

constexpr int kMaxOrder = 8;
constexpr std::array<char, 8> kMagic{'D', 'C', 'N', 'G', 'R', 'A', 'M', '2'};

/// Statistics of a context.
struct Context {
    double total = 0;                  ///< sum of the counts
    std::array<double, 3> distinct{};  ///< number of tokens with count 1, 2, 3 or more
    double seen_probability = 0;       ///< backoff: weight of the shorter context's distribution
};

/// One order of the model.
struct Order {
    Counts counts;  ///< counts of n-grams; for lower orders with Kneser-Ney, the number of different tokens before them
    std::unordered_map<Key, Context> contexts;
    std::array<double, 3> discounts{};
};

std::array<double, 3> discounts_of(const Counts& counts) {
    std::array<double, 5> counts_of_counts{};  // number of n-grams with the counts 1, 2, 3, 4
    for (const auto& [key, count] : counts)
        if (count < 5) counts_of_counts[static_cast<std::size_t>(count)] += 1;
    // With too little data for an estimate, a discount of 0.5 is used.
    if (counts_of_counts[1] == 0 || counts_of_counts[2] == 0) return {0.5, 0.5, 0.5};
    const double y = counts_of_counts[1] / (counts_of_counts[1] + 2 * counts_of_counts[2]);
    if (counts_of_counts[3] == 0 || counts_of_counts[4] == 0) return {y, y, y};
    std::array<double, 3> out{};
    for (std::size_t i = 0; i < 3; ++i) {
        const double n = static_cast<double>(i) + 1;
        out[i] = std::clamp(n - (n + 1) * y * counts_of_counts[i + 2] / counts_of_counts[i + 1], 0.0, n);
    }
    // Without any discount unseen tokens would have no probability.
    return out[0] + out[1] + out[2] > 0 ? out : std::array<double, 3>{0.5, 0.5, 0.5};
}

std::size_t discount_class(std::int64_t count) {
    return static_cast<std::size_t>(std::min<std::int64_t>(count, 3)) - 1;
}

template <class T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class Reader {
  public:
    Reader(std::string file, std::span<const std::byte> bytes) : file_(std::move(file)), bytes_(bytes) {}
    template <class T>
    T read(const char* what) {
        if (bytes_.size() - position_ < sizeof(T)) fail(fmt::format("the file ends within {}", what));
        T value;
        std::memcpy(&value, bytes_.data() + position_, sizeof value);
        position_ += sizeof value;
        return value;
    }
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }
    [[noreturn]] void fail(const std::string& what) const { throw FormatError(file_, position_, what); }

  private:
    std::string file_;
    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
};

}  // namespace

struct NgramModel::State {
    std::int64_t size = 0;
    NgramOptions options;
    std::vector<Counts> counts;  ///< [n - 1] counts of n-grams

    // Computed from the counts on demand.
    mutable std::mutex mutex;
    mutable std::shared_ptr<const std::vector<Order>> cached_orders;

    State(std::int64_t vocab_size, const NgramOptions& ngram_options)
        : size(vocab_size), options(ngram_options), counts(static_cast<std::size_t>(ngram_options.order)) {}
    State(const State& other) : size(other.size), options(other.options), counts(other.counts) {}
    State& operator=(const State&) = delete;

    void check_token(const char* function, std::int64_t token) const {
        if (token < 0 || token >= size)
            throw ValueError(
                fmt::format("NgramModel::{}: expected tokens from 0 to {}, got {}", function, size - 1, token));
    }
    [[nodiscard]] Key key_of(const char* function, std::span<const std::int64_t> tokens) const {
        Key out;
        for (const std::int64_t token : tokens) {
            check_token(function, token);
            out.push_back(static_cast<char32_t>(token));
        }
        return out;
    }
    /// The tokens of a context that are used.
    [[nodiscard]] Key context_of(const char* function, std::span<const std::int64_t> context) const {
        const auto max_context = static_cast<std::size_t>(options.order) - 1;
        if (context.size() >= max_context) return key_of(function, context.last(max_context));
        Key out = key_of(function, context);
        if (options.bos_id && (out.empty() || out[0] != static_cast<char32_t>(*options.bos_id)))
            out.insert(out.begin(), static_cast<char32_t>(*options.bos_id));
        return out;
    }
    void add(std::span<const std::int64_t> sequence) {
        Key padded;
        if (options.bos_id) padded.push_back(static_cast<char32_t>(*options.bos_id));
        padded += key_of("train", sequence);
        if (options.eos_id) padded.push_back(static_cast<char32_t>(*options.eos_id));
        for (std::size_t end = options.bos_id ? 2 : 1; end <= padded.size(); ++end)
            for (std::size_t n = 1; n <= counts.size() && n <= end; ++n) ++counts[n - 1][padded.substr(end - n, n)];
    }

    [[nodiscard]] std::shared_ptr<const std::vector<Order>> orders() const {
        const std::scoped_lock lock(mutex);
        if (!cached_orders) cached_orders = compute_orders();
        return cached_orders;
    }
    [[nodiscard]] std::shared_ptr<const std::vector<Order>> compute_orders() const {
        auto out = std::make_shared<std::vector<Order>>(counts.size());
        for (std::size_t n = counts.size(); n-- > 0;) {
            Order& order = (*out)[n];
            if (options.smoothing != NgramSmoothing::kneser_ney || n + 1 == counts.size()) {
                order.counts = counts[n];
            } else {
                for (const auto& [key, count] : counts[n + 1]) ++order.counts[key.substr(1)];
                // No token precedes the beginning of a sequence.
                for (const auto& [key, count] : counts[n])
                    if (options.bos_id && key[0] == static_cast<char32_t>(*options.bos_id)) order.counts[key] = count;
            }
            order.discounts = discounts_of(order.counts);
        }
        for (std::size_t n = 0; n < out->size(); ++n) {
            Order& order = (*out)[n];
            for (const auto& [key, count] : order.counts) {
                Context& context = order.contexts[key.substr(0, n)];
                context.total += static_cast<double>(count);
                context.distinct[discount_class(count)] += 1;
                if (options.smoothing == NgramSmoothing::backoff && n > 0)
                    context.seen_probability += probability(*out, key.substr(1, n - 1), key[n]);
            }
        }
        return out;
    }

    /// Probability of a token after exactly these.
    [[nodiscard]] double probability(const std::vector<Order>& orders, const Key& context, char32_t token) const {
        const std::size_t n = context.size();
        const Order& order = orders[n];
        const auto found = order.contexts.find(context);
        const Context& statistics = found != order.contexts.end() ? found->second : Context{};
        const auto entry = order.counts.find(context + token);
        const std::int64_t count = entry != order.counts.end() ? entry->second : 0;
        const auto uniform = 1 / static_cast<double>(size);
        switch (options.smoothing) {
            case NgramSmoothing::add_k:
                return (static_cast<double>(count) + options.k) /
                       (statistics.total + options.k * static_cast<double>(size));
            case NgramSmoothing::backoff: {
                if (n == 0) return (static_cast<double>(count) + 1) / (statistics.total + static_cast<double>(size));
                if (statistics.total == 0) return probability(orders, context.substr(1), token);
                const double normalizer = 1 + options.backoff_factor * std::max(1 - statistics.seen_probability, 0.0);
                return (count > 0 ? static_cast<double>(count) / statistics.total
                                  : options.backoff_factor * probability(orders, context.substr(1), token)) /
                       normalizer;
            }
            case NgramSmoothing::kneser_ney:
                break;
        }
        const double lower_order = n == 0 ? uniform : probability(orders, context.substr(1), token);
        if (statistics.total == 0) return lower_order;
        double discount_mass = 0;
        for (std::size_t i = 0; i < 3; ++i) discount_mass += order.discounts[i] * statistics.distinct[i];
        const double discounted_count =
            count > 0 ? std::max(static_cast<double>(count) - order.discounts[discount_class(count)], 0.0) : 0;
        return (discounted_count + discount_mass * lower_order) / statistics.total;
    }
};

NgramModel::NgramModel(std::int64_t vocab_size, const NgramOptions& options) {
    const auto require = [](bool condition, const char* expectation, auto got) {
        if (!condition) throw ValueError(fmt::format("NgramModel: expected {}, got {}", expectation, got));
    };
    require(vocab_size >= 1 && vocab_size <= INT64_C(1) << 31, "a vocab_size from 1 to 2^31", vocab_size);
    require(options.order >= 1 && options.order <= kMaxOrder, "an order from 1 to 8", options.order);
    require(options.k > 0 && std::isfinite(options.k), "a k above 0", options.k);
    require(options.backoff_factor > 0 && options.backoff_factor <= 1, "a backoff_factor above 0 and at most 1",
            options.backoff_factor);
    for (const auto& id : {options.bos_id, options.eos_id})
        if (id) require(*id >= 0 && *id < vocab_size, "bos_id and eos_id in the vocabulary", *id);
    state_ = std::make_shared<State>(vocab_size, options);
}

void NgramModel::train(std::span<const std::vector<std::int64_t>> sequences) {
    for (const auto& sequence : sequences) train(sequence);
}

void NgramModel::train(std::span<const std::int64_t> sequence) {
    if (state_.use_count() > 1) state_ = std::make_shared<State>(*state_);
    state_->cached_orders.reset();
    state_->add(sequence);
}

double NgramModel::log_probability(std::int64_t token, std::span<const std::int64_t> context) const {
    state_->check_token("log_probability", token);
    return std::log(state_->probability(*state_->orders(), state_->context_of("log_probability", context),
                                        static_cast<char32_t>(token)));
}

std::vector<double> NgramModel::log_probabilities(std::span<const std::int64_t> sequence) const {
    std::vector<double> out;
    for (std::size_t i = 0; i < sequence.size(); ++i) out.push_back(log_probability(sequence[i], sequence.first(i)));
    if (options().eos_id) out.push_back(log_probability(*options().eos_id, sequence));
    return out;
}

double NgramModel::perplexity(std::span<const std::vector<std::int64_t>> sequences) const {
    std::vector<double> values;
    for (const auto& sequence : sequences) {
        const std::vector<double> sequence_values = log_probabilities(sequence);
        values.insert(values.end(), sequence_values.begin(), sequence_values.end());
    }
    return text::perplexity(values);
}

std::vector<float> NgramModel::logits(std::span<const std::int64_t> context) const {
    const auto orders = state_->orders();
    const Key key = state_->context_of("logits", context);
    std::vector<float> out(static_cast<std::size_t>(state_->size));
    for (std::size_t token = 0; token < out.size(); ++token)
        out[token] = static_cast<float>(std::log(state_->probability(*orders, key, static_cast<char32_t>(token))));
    return out;
}

std::vector<std::int64_t> NgramModel::sample(std::int64_t count, data::Random& random,
                                             std::span<const std::int64_t> context) const {
    std::vector<std::int64_t> history(context.begin(), context.end()), out;
    while (static_cast<std::int64_t>(out.size()) < count) {
        const std::int64_t token = text::sample(logits(history), random);
        if (options().eos_id == token) break;
        history.push_back(token);
        out.push_back(token);
    }
    return out;
}

std::int64_t NgramModel::vocab_size() const noexcept { return state_->size; }
const NgramOptions& NgramModel::options() const noexcept { return state_->options; }

std::int64_t NgramModel::count(std::span<const std::int64_t> ngram) const {
    if (ngram.empty() || ngram.size() > state_->counts.size())
        throw ValueError(
            fmt::format("NgramModel::count: expected 1 to {} tokens, got {}", state_->counts.size(), ngram.size()));
    const Counts& counts = state_->counts[ngram.size() - 1];
    const auto found = counts.find(state_->key_of("count", ngram));
    return found == counts.end() ? 0 : found->second;
}

void NgramModel::save(const std::filesystem::path& path) const {
    const FunctionScope function("NgramModel::save");
    std::string out(kMagic.data(), kMagic.size());
    const NgramOptions& model_options = state_->options;
    put(out, state_->size);
    put(out, static_cast<std::int64_t>(model_options.order));
    put(out, static_cast<std::int64_t>(model_options.smoothing));
    put(out, model_options.k);
    put(out, model_options.backoff_factor);
    put(out, model_options.bos_id.value_or(-1));
    put(out, model_options.eos_id.value_or(-1));
    for (const Counts& counts : state_->counts) {
        put(out, static_cast<std::uint64_t>(counts.size()));
        std::vector<std::pair<Key, std::int64_t>> order(counts.begin(), counts.end());
        std::ranges::sort(order);  // sorted, so that the same model gives the same file
        for (const auto& [key, count] : order) {
            for (const char32_t token : key) put(out, static_cast<std::uint32_t>(token));
            put(out, count);
        }
    }
    put(out, io::crc32_of(std::as_bytes(std::span(out))));
    io::write_file(path, std::as_bytes(std::span(out)));
}

NgramModel NgramModel::load(const std::filesystem::path& path) {
    const FunctionScope function("NgramModel::load");
    const std::vector<std::byte> bytes = io::read_file(path);
    const std::size_t content = bytes.size() - std::min(bytes.size(), sizeof(std::uint32_t));
    Reader in(path.string(), std::span(bytes).first(content));
    if (in.read<std::array<char, 8>>("the header") != kMagic)
        throw FormatError(path.string(), 0, "not an n-gram model");
    Reader end(path.string(), std::span(bytes).subspan(content));
    if (const std::uint32_t computed = io::crc32_of(std::span(bytes).first(content)),
        stored = end.read<std::uint32_t>("the checksum");
        computed != stored)
        throw FormatError(
            path.string(), content,
            fmt::format("the file is damaged: expected content with checksum {:08x}, got {:08x}", stored, computed));
    const auto size = in.read<std::int64_t>("the header");
    NgramOptions options;
    const auto order = in.read<std::int64_t>("the header"), smoothing = in.read<std::int64_t>("the header");
    options.k = in.read<double>("the header");
    options.backoff_factor = in.read<double>("the header");
    const auto bos = in.read<std::int64_t>("the header"), eos = in.read<std::int64_t>("the header");
    if (order < 1 || order > kMaxOrder) in.fail(fmt::format("expected an order from 1 to 8, got {}", order));
    if (smoothing < 0 || smoothing > 2) in.fail(fmt::format("expected a smoothing from 0 to 2, got {}", smoothing));
    options.order = static_cast<int>(order);
    options.smoothing = static_cast<NgramSmoothing>(smoothing);
    if (bos != -1) options.bos_id = bos;
    if (eos != -1) options.eos_id = eos;
    NgramModel out = [&] {
        try {
            return NgramModel(size, options);
        } catch (const ValueError& error) {
            in.fail(error.what());
        }
    }();
    for (std::size_t n = 0; n < out.state_->counts.size(); ++n) {
        Counts& counts = out.state_->counts[n];
        const auto ngram_count = in.read<std::uint64_t>("the number of n-grams");
        const std::size_t entry_bytes = (n + 1) * sizeof(std::uint32_t) + sizeof(std::int64_t);
        if (ngram_count > in.remaining() / entry_bytes)
            in.fail(fmt::format("{} n-grams of {} bytes do not fit into the {} bytes that are left", ngram_count,
                                entry_bytes, in.remaining()));
        counts.reserve(ngram_count);
        for (std::uint64_t i = 0; i < ngram_count; ++i) {
            Key key;
            for (std::size_t k = 0; k <= n; ++k) {
                const auto token = in.read<std::uint32_t>("an n-gram");
                if (token >= size) in.fail(fmt::format("expected tokens below {}, got {}", size, token));
                key.push_back(static_cast<char32_t>(token));
            }
            const auto count = in.read<std::int64_t>("an n-gram");
            if (count < 1 || !counts.emplace(std::move(key), count).second)
                in.fail("expected each n-gram once, with a count of at least 1");
        }
    }
    if (in.remaining() != 0) in.fail(fmt::format("expected the end of the file, got {} more bytes", in.remaining()));
    return out;
}

}  // namespace declivity::text
