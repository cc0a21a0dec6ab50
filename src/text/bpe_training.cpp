#include "bpe_training.hpp"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

struct Word {
    std::vector<Id> symbols;
    std::int64_t count = 0;
};

std::uint64_t key_of(Id left, Id right) { return static_cast<std::uint64_t>(left) << 32 | right; }

/// Adds tokens for the characters that are kept: the initial alphabet and the most frequent ones, in order of code
/// points.
void add_alphabet(TokenTable& table, const Model::Counts& words, const TrainOptions& options) {
    std::unordered_map<char32_t, std::int64_t> counts;
    for (const auto& [word, count] : words)
        for (std::size_t pos = 0; pos < word.size();) {
            const Decoded decoded = decode_at(word, pos);
            counts[decoded.c] += count;
            pos += decoded.size;
        }
    // The initial alphabet comes before all others.
    for (const std::string& text : options.initial_alphabet)
        if (!text.empty()) counts[decode_any(text, 0).c] = INT64_MAX;
    std::vector<std::pair<char32_t, std::int64_t>> alphabet(counts.begin(), counts.end());
    const auto max_characters = static_cast<std::size_t>(options.limit_alphabet.value_or(INT64_MAX));
    if (alphabet.size() > max_characters) {
        std::ranges::sort(alphabet, [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        alphabet.resize(max_characters);
    }
    std::ranges::sort(alphabet);
    for (const auto& [c, count] : alphabet) table.add(utf8(c));
}

std::vector<Word> words_of(TokenTable& table, const Model::Counts& counts, const std::string& prefix,
                           const std::string& suffix) {
    // In a deterministic order, independent of the map's.
    std::vector<const Model::Counts::value_type*> order;
    for (const auto& count : counts) order.push_back(&count);
    std::ranges::sort(order, [](const auto* a, const auto* b) { return a->first < b->first; });
    std::vector<Word> out;
    for (const auto* entry : order) {
        const std::string& text = entry->first;
        Word word{{}, entry->second};
        for (std::size_t pos = 0; pos < text.size();) {
            const Decoded decoded = decode_at(text, pos);
            std::string token = text.substr(pos, decoded.size);
            const bool first = pos == 0;
            pos += decoded.size;
            if (!table.id(token)) continue;  // not in the alphabet
            if (!first) token = prefix + token;
            if (pos == text.size()) token += suffix;
            word.symbols.push_back(table.add(token));
        }
        out.push_back(std::move(word));
    }
    return out;
}

}  // namespace

void check_train_options(const TrainOptions& options) {
    const auto require = [](bool condition, const char* name, auto got, const char* requirement) {
        if (!condition) throw ValueError(fmt::format("train_new: expected {} {}, got {}", name, requirement, got));
    };
    require(options.vocab_size >= 1 && options.vocab_size < INT64_C(1) << 31, "vocab_size", options.vocab_size,
            "from 1 to 2^31 - 1");
    require_not_empty("train_new", "special_tokens", options.special_tokens);
    require_not_empty("train_new", "initial_alphabet", options.initial_alphabet);
    require(options.min_frequency >= 0, "min_frequency", options.min_frequency, "of at least 0");
    require(options.limit_alphabet.value_or(0) >= 0, "limit_alphabet", options.limit_alphabet.value_or(0),
            "of at least 0");
    require(options.max_token_length.value_or(1) >= 1, "max_token_length", options.max_token_length.value_or(1),
            "of at least 1");
    require(options.shrinking_factor > 0 && options.shrinking_factor < 1, "shrinking_factor", options.shrinking_factor,
            "between 0 and 1");
    require(options.n_sub_iterations >= 1, "n_sub_iterations", options.n_sub_iterations, "of at least 1");
    require(options.max_piece_length >= 1, "max_piece_length", options.max_piece_length, "of at least 1");
    require(options.seed_size >= 1, "seed_size", options.seed_size, "of at least 1");
}

TrainedMerges train_merges(const Model::Counts& counts, const TrainOptions& options, const std::string& prefix,
                           const std::string& suffix) {
    TrainedMerges out;
    for (const std::string& token : options.special_tokens) out.table.add(token);
    add_alphabet(out.table, counts, options);
    std::vector<Word> words = words_of(out.table, counts, prefix, suffix);

    struct Pair {
        std::int64_t count = 0;
        std::unordered_set<std::uint32_t> words = {};  ///< words that contain it, or did
    };
    std::unordered_map<std::uint64_t, Pair> pairs;
    for (std::size_t w = 0; w < words.size(); ++w)
        for (std::size_t i = 0; i + 1 < words[w].symbols.size(); ++i) {
            Pair& pair = pairs[key_of(words[w].symbols[i], words[w].symbols[i + 1])];
            pair.count += words[w].count;
            pair.words.insert(static_cast<std::uint32_t>(w));
        }
    using Entry = std::pair<std::int64_t, std::uint64_t>;
    // The top is the most frequent pair, then the one with the lowest ids.
    const auto lower_priority = [](const Entry& a, const Entry& b) {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(lower_priority)> queue(lower_priority);
    for (const auto& [key, pair] : pairs)
        if (pair.count > 0) queue.emplace(pair.count, key);

    const auto max_length = static_cast<std::size_t>(options.max_token_length.value_or(INT64_MAX));
    std::vector<Id> merged;
    while (static_cast<std::int64_t>(out.table.size()) < options.vocab_size && !queue.empty()) {
        const auto [count, key] = queue.top();
        queue.pop();
        const std::int64_t current_count = pairs[key].count;
        if (count != current_count) {  // other merges have used up some occurrences
            if (current_count > 0) queue.emplace(current_count, key);
            continue;
        }
        if (count < 1 || count < options.min_frequency) break;
        const auto left = static_cast<Id>(key >> 32), right = static_cast<Id>(key);
        const std::string& front = *out.table.token(left);
        const std::string& back = *out.table.token(right);
        const std::string merged_token = front + (back.starts_with(prefix) ? back.substr(prefix.size()) : back);
        if (count_characters(merged_token) > max_length) {  // it remains two tokens
            pairs[key].count = 0;
            continue;
        }
        const Id id = out.table.add(merged_token);
        out.merges.push_back({left, right});
        out.merged.push_back(id);

        const std::unordered_set<std::uint32_t> affected_words = std::move(pairs[key].words);
        std::unordered_set<std::uint64_t> increased;
        const auto change = [&](Id a, Id b, std::int64_t delta, std::uint32_t w) {
            const std::uint64_t pair_key = key_of(a, b);
            Pair& pair = pairs[pair_key];
            pair.count += delta;
            if (delta > 0) pair.words.insert(w), increased.insert(pair_key);
        };
        for (const std::uint32_t w : affected_words) {
            Word& word = words[w];
            merged.clear();
            for (std::size_t i = 0; i < word.symbols.size(); ++i) {
                const bool matches =
                    i + 1 < word.symbols.size() && word.symbols[i] == left && word.symbols[i + 1] == right;
                if (!matches) {
                    merged.push_back(word.symbols[i]);
                    continue;
                }
                // The symbol before is already merged, the one after is not.
                if (!merged.empty()) {
                    change(merged.back(), left, -word.count, w);
                    change(merged.back(), id, word.count, w);
                }
                if (i + 2 < word.symbols.size()) {
                    change(right, word.symbols[i + 2], -word.count, w);
                    change(id, word.symbols[i + 2], word.count, w);
                }
                merged.push_back(id);
                ++i;
            }
            word.symbols = merged;
        }
        pairs[key].count = 0;
        for (const std::uint64_t pair_key : increased)
            if (pairs[pair_key].count > 0) queue.emplace(pairs[pair_key].count, pair_key);
    }
    return out;
}

std::shared_ptr<const Model> Bpe::train(const Counts& words, const TrainOptions& options) const {
    TrainedMerges trained =
        train_merges(words, options, settings_.continuing_subword_prefix, settings_.end_of_word_suffix);
    BpeSettings settings = settings_;
    if (!options.unk_token.empty()) settings.unk_token = options.unk_token;
    return std::make_shared<const Bpe>(std::move(settings), std::move(trained.table), std::move(trained.merges),
                                       trained.merged);
}

}  // namespace declivity::text
