// Training of unigram models (Kudo 2018, section 3.2): initialised with frequent substrings; expectation maximisation;
// pieces with the least effect on the likelihood are pruned until the vocabulary size is reached.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "bpe_training.hpp"
#include "unicode.hpp"
#include "unigram.hpp"

namespace declivity::text {
namespace {

struct CountedWord {
    std::string text;
    double count = 0;
};

double digamma(double x) {
    double result = 0;
    for (; x < 7; ++x) result -= 1 / x;
    x -= 0.5;
    const double xx = 1 / x, xx2 = xx * xx, xx4 = xx2 * xx2;
    return result + std::log(x) + (1.0 / 24) * xx2 - (7.0 / 960) * xx4 + (31.0 / 8064) * xx4 * xx2 -
           (127.0 / 30720) * xx4 * xx4;
}

double log_add(double a, double b) {
    if (a == -std::numeric_limits<double>::infinity()) return b;
    if (b == -std::numeric_limits<double>::infinity()) return a;
    const double high = std::max(a, b);
    return high + std::log1p(std::exp(std::min(a, b) - high));
}

class PieceLattice {
  public:
    explicit PieceLattice(ScoredPieces pieces) : pieces_(std::move(pieces)) {
        for (std::size_t i = 0; i < pieces_.size(); ++i) trie_.put(pieces_[i].first, static_cast<Id>(i));
    }
    [[nodiscard]] const ScoredPieces& all() const { return pieces_; }

    /// Adds the expected count of each piece in the word, over its segmentations, to `expected`; returns the log
    /// probability of the word.
    double expect(const CountedWord& word, std::vector<double>& expected) const {
        constexpr double kNone = -std::numeric_limits<double>::infinity();
        const std::size_t size = word.text.size();
        std::vector<double> forward(size + 1, kNone), backward(size + 1, kNone);
        forward[0] = 0;
        backward[size] = 0;
        for (std::size_t pos = 0; pos < size; ++pos)
            if (forward[pos] != kNone)
                trie_.prefixes(word.text, pos, [&](std::size_t length, Id id) {
                    forward[pos + length] = log_add(forward[pos + length], forward[pos] + pieces_[id].second);
                });
        for (std::size_t pos = size; pos-- > 0;)
            trie_.prefixes(word.text, pos, [&](std::size_t length, Id id) {
                if (backward[pos + length] != kNone)
                    backward[pos] = log_add(backward[pos], backward[pos + length] + pieces_[id].second);
            });
        const double log_likelihood = forward[size];
        if (log_likelihood == kNone) return 0;
        for (std::size_t pos = 0; pos < size; ++pos)
            if (forward[pos] != kNone)
                trie_.prefixes(word.text, pos, [&](std::size_t length, Id id) {
                    const double path = forward[pos] + pieces_[id].second + backward[pos + length] - log_likelihood;
                    if (path > -700) expected[id] += word.count * std::exp(path);
                });
        return log_likelihood;
    }

    /// The best segmentation; without one piece, if given. Empty if there is none.
    [[nodiscard]] std::vector<Id> best(std::string_view text, Id excluded = UINT32_MAX) const {
        struct Node {
            double score = -std::numeric_limits<double>::infinity();
            std::size_t begin = 0;
            Id id = 0;
        };
        std::vector<Node> nodes(text.size() + 1);
        nodes[0].score = 0;
        for (std::size_t pos = 0; pos < text.size(); ++pos) {
            if (!std::isfinite(nodes[pos].score)) continue;
            trie_.prefixes(text, pos, [&](std::size_t length, Id id) {
                const double score = nodes[pos].score + pieces_[id].second;
                if (id != excluded && score > nodes[pos + length].score) nodes[pos + length] = {score, pos, id};
            });
        }
        std::vector<Id> out;
        if (!std::isfinite(nodes[text.size()].score)) return out;
        for (std::size_t end = text.size(); end > 0; end = nodes[end].begin) out.push_back(nodes[end].id);
        return out;
    }

  private:
    ScoredPieces pieces_;
    Trie trie_;
};

ScoredPieces seed_pieces(const std::vector<CountedWord>& words, const TrainOptions& options) {
    Model::Counts counts;
    std::vector<std::size_t> boundaries;
    for (const CountedWord& word : words) {
        boundaries.clear();
        for (std::size_t pos = 0; pos < word.text.size(); pos += bytes_of(static_cast<unsigned char>(word.text[pos])))
            boundaries.push_back(pos);
        boundaries.push_back(word.text.size());
        for (std::size_t i = 0; i + 1 < boundaries.size(); ++i)
            for (std::size_t k = i + 1;
                 k < boundaries.size() && k - i <= static_cast<std::size_t>(options.max_piece_length); ++k)
                counts[word.text.substr(boundaries[i], boundaries[k] - boundaries[i])] +=
                    static_cast<std::int64_t>(word.count);
    }
    ScoredPieces single, longer;
    for (const auto& [piece, count] : counts) {
        const std::size_t characters = count_characters(piece);
        if (characters == 1) single.emplace_back(piece, static_cast<double>(count));
        else if (count > 1) longer.emplace_back(piece, static_cast<double>(count) * static_cast<double>(characters));
    }
    const auto better = [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    };
    std::ranges::sort(single, better);
    std::ranges::sort(longer, better);
    const auto max_longer = static_cast<std::size_t>(options.seed_size);
    if (longer.size() > max_longer) longer.resize(max_longer);
    single.insert(single.end(), longer.begin(), longer.end());
    double sum = 0;
    for (const auto& item : single) sum += item.second;
    for (auto& item : single) item.second = std::log(item.second) - std::log(sum);
    return single;
}

/// One iteration of expectation maximisation. Single characters are kept.
ScoredPieces improve(const PieceLattice& pieces, const std::vector<CountedWord>& words) {
    std::vector<double> expected(pieces.all().size());
    for (const CountedWord& word : words) (void)pieces.expect(word, expected);
    constexpr double kMin = 0.5;
    ScoredPieces out;
    double sum = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string& piece = pieces.all()[i].first;
        if (expected[i] < kMin && count_characters(piece) > 1) continue;
        out.emplace_back(piece, std::max(expected[i], kMin));
        sum += out.back().second;
    }
    // The digamma function instead of the logarithm prefers few pieces (a Dirichlet prior).
    for (auto& output : out) output.second = digamma(output.second) - digamma(sum);
    return out;
}

ScoredPieces prune(const PieceLattice& pieces, const std::vector<CountedWord>& words, std::size_t min_count,
                   double shrinking) {
    const std::size_t count = pieces.all().size();
    std::vector<double> frequency(count);
    double sum = 0;
    for (const CountedWord& word : words)
        for (const Id id : pieces.best(word.text)) frequency[id] += word.count, sum += word.count;
    ScoredPieces remaining;
    std::vector<std::pair<double, std::size_t>> losses;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string& piece = pieces.all()[i].first;
        if (count_characters(piece) == 1) {
            remaining.push_back(pieces.all()[i]);
            continue;
        }
        const auto id = static_cast<Id>(i);
        const std::vector<Id> alternative = pieces.best(piece, id);
        // Removes pieces that are no longer the best segmentation of themselves.
        if (frequency[i] == 0 || pieces.best(piece) != std::vector<Id>{id}) continue;
        double loss = std::numeric_limits<double>::infinity();
        if (!alternative.empty()) {
            const double piece_log_p = std::log(frequency[i]) - std::log(sum);
            const double log_sum = std::log(sum + frequency[i] * (static_cast<double>(alternative.size()) - 1));
            double alternative_log_p = 0;
            for (const Id part : alternative) alternative_log_p += std::log(frequency[part] + frequency[i]) - log_sum;
            loss = frequency[i] / sum * (piece_log_p - alternative_log_p);
        }
        losses.emplace_back(loss, i);
    }
    const auto target = std::max(min_count, static_cast<std::size_t>(shrinking * static_cast<double>(count)));
    std::ranges::sort(losses, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (const auto& [loss, i] : losses) {
        if (remaining.size() >= target) break;
        remaining.push_back(pieces.all()[i]);
    }
    return remaining;
}

}  // namespace

ScoredPieces train_pieces(const Model::Counts& counts, const TrainOptions& options, bool bytes) {
    std::vector<CountedWord> words;
    for (const auto& [text, count] : counts)
        if (!text.empty()) words.push_back({text, static_cast<double>(count)});
    std::ranges::sort(words, {}, &CountedWord::text);

    ScoredPieces out;
    std::unordered_set<std::string> seen;
    const auto append = [&](const std::string& token, double score) {
        if (seen.insert(token).second) out.emplace_back(token, score);
    };
    for (const std::string& token : options.special_tokens) append(token, 0);
    if (bytes)
        for (unsigned byte = 0; byte < 256; ++byte) append(byte_token(static_cast<std::uint8_t>(byte)), 0);
    ScoredPieces pieces = seed_pieces(words, options);
    std::vector<std::string> alphabet = options.initial_alphabet;
    for (const auto& [piece, score] : pieces)
        if (count_characters(piece) == 1) alphabet.push_back(piece);
    std::ranges::sort(alphabet);
    alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
    const std::int64_t available = options.vocab_size - static_cast<std::int64_t>(out.size());
    if (available < static_cast<std::int64_t>(alphabet.size()))
        throw ValueError(fmt::format(
            "train_new: expected a vocab_size of at least {}, for {} special tokens and {} characters, got {}",
            out.size() + alphabet.size(), out.size(), alphabet.size(), options.vocab_size));
    const auto piece_count = static_cast<std::size_t>(available);
    // A few more than the target, for the final selection.
    const std::size_t keep_count = piece_count + piece_count / 10;
    for (;;) {
        for (std::int64_t i = 0; i < options.n_sub_iterations; ++i)
            pieces = improve(PieceLattice(std::move(pieces)), words);
        if (pieces.size() <= keep_count) break;
        const std::size_t previous_size = pieces.size();
        pieces = prune(PieceLattice(std::move(pieces)), words, keep_count, options.shrinking_factor);
        if (pieces.size() >= previous_size) break;
    }
    std::ranges::sort(pieces, [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    const double lowest = pieces.empty() ? 0 : pieces.back().second;
    std::unordered_set<std::string> missing_characters(alphabet.begin(), alphabet.end());
    std::size_t remaining = piece_count - alphabet.size();
    for (const auto& [piece, score] : pieces) {
        const bool single = missing_characters.erase(piece) > 0;
        if (!single && remaining == 0) continue;
        if (seen.insert(piece).second) out.emplace_back(piece, score);
        if (!single) --remaining;
    }
    for (const std::string& piece : alphabet)  // characters that do not occur
        if (missing_characters.contains(piece)) append(piece, lowest);
    return out;
}

}  // namespace declivity::text
