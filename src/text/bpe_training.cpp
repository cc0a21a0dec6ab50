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
        for (std::size_t at = 0; at < word.size();) {
            const Decoded one = decode_at(word, at);
            counts[one.c] += count;
            at += one.size;
        }
    // The initial alphabet comes before all others.
    for (const std::string& text : options.initial_alphabet)
        if (!text.empty()) counts[decode_any(text, 0).c] = INT64_MAX;
    std::vector<std::pair<char32_t, std::int64_t>> kept(counts.begin(), counts.end());
    const auto most = static_cast<std::size_t>(options.limit_alphabet.value_or(INT64_MAX));
    if (kept.size() > most) {
        std::ranges::sort(kept, [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        kept.resize(most);
    }
    std::ranges::sort(kept);
    for (const auto& [c, count] : kept) table.add(utf8(c));
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
        for (std::size_t at = 0; at < text.size();) {
            const Decoded one = decode_at(text, at);
            std::string token = text.substr(at, one.size);
            const bool first = at == 0;
            at += one.size;
            if (!table.id(token)) continue;  // not in the alphabet
            if (!first) token = prefix + token;
            if (at == text.size()) token += suffix;
            word.symbols.push_back(table.add(token));
        }
        out.push_back(std::move(word));
    }
    return out;
}

}  // namespace

void check_train_options(const TrainOptions& options) {
    const auto require = [](bool holds, const char* name, auto got, const char* wanted) {
        if (!holds) throw ValueError(fmt::format("train_new: expected {} {}, got {}", name, wanted, got));
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
    const auto after = [](const Entry& a, const Entry& b) {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(after)> queue(after);
    for (const auto& [key, pair] : pairs)
        if (pair.count > 0) queue.emplace(pair.count, key);

    const auto longest = static_cast<std::size_t>(options.max_token_length.value_or(INT64_MAX));
    std::vector<Id> merged;
    while (static_cast<std::int64_t>(out.table.size()) < options.vocab_size && !queue.empty()) {
        const auto [count, key] = queue.top();
        queue.pop();
        const std::int64_t now = pairs[key].count;
        if (count != now) {  // other merges have used up some occurrences
            if (now > 0) queue.emplace(now, key);
            continue;
        }
        if (count < 1 || count < options.min_frequency) break;
        const auto left = static_cast<Id>(key >> 32), right = static_cast<Id>(key);
        const std::string& front = *out.table.token(left);
        const std::string& back = *out.table.token(right);
        const std::string both = front + (back.starts_with(prefix) ? back.substr(prefix.size()) : back);
        if (count_characters(both) > longest) {  // it remains two tokens
            pairs[key].count = 0;
            continue;
        }
        const Id id = out.table.add(both);
        out.merges.push_back({left, right});
        out.merged.push_back(id);

        const std::unordered_set<std::uint32_t> where = std::move(pairs[key].words);
        std::unordered_set<std::uint64_t> grown;
        const auto change = [&](Id a, Id b, std::int64_t by, std::uint32_t w) {
            const std::uint64_t of = key_of(a, b);
            Pair& pair = pairs[of];
            pair.count += by;
            if (by > 0) pair.words.insert(w), grown.insert(of);
        };
        for (const std::uint32_t w : where) {
            Word& word = words[w];
            merged.clear();
            for (std::size_t i = 0; i < word.symbols.size(); ++i) {
                const bool here =
                    i + 1 < word.symbols.size() && word.symbols[i] == left && word.symbols[i + 1] == right;
                if (!here) {
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
        for (const std::uint64_t of : grown)
            if (pairs[of].count > 0) queue.emplace(pairs[of].count, of);
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
