#include "unigram.hpp"

#include <algorithm>
#include <limits>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "unicode.hpp"

namespace declivity::text {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

void Trie::put(std::string_view key, Id value) {
    Id node = 0;
    for (const char c : key) {
        const auto byte = static_cast<unsigned char>(c);
        PairMap::Merge next = nodes_.find(node, byte);
        if (next.rank == UINT32_MAX) {
            next = {0, static_cast<Id>(values_.size())};
            nodes_.put(node, byte, next);
            values_.push_back(UINT32_MAX);
        }
        node = next.id;
    }
    values_[node] = value;
}

Unigram::Unigram(UnigramSettings settings, ScoredPieces pieces) : settings_(settings), pieces_(std::move(pieces)) {
    double lowest = std::numeric_limits<double>::infinity();
    table_.reserve(pieces_.size());
    std::size_t bytes = 0;
    for (const auto& [piece, score] : pieces_) bytes += piece.size();
    trie_.reserve(bytes);
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
        table_.put(pieces_[id].first, static_cast<Id>(id));
        if (!pieces_[id].first.empty()) trie_.put(pieces_[id].first, static_cast<Id>(id));
        lowest = std::min(lowest, pieces_[id].second);
    }
    unknown_score_ = lowest - kUnknownPenalty;
}

void Unigram::tokenize(std::string_view piece, data::Random*, std::vector<ModelToken>& out) const {
    struct Node {
        double score = 0;
        std::uint32_t begin = UINT32_MAX;  // last piece of the best path up to here; marks none
        Id id = 0;
    };
    constexpr Id kUnknown = UINT32_MAX;
    thread_local std::vector<Node> best;
    best.assign(piece.size() + 1, Node{});
    for (std::size_t pos = 0; pos < piece.size();) {
        const double prefix_score = best[pos].score;
        const std::size_t size = bytes_of(static_cast<unsigned char>(piece[pos]));
        bool has_single = false;
        const auto offer = [&](std::size_t length, Id id, double score) {
            Node& node = best[pos + length];
            if (node.begin == UINT32_MAX || score > node.score) node = {score, static_cast<std::uint32_t>(pos), id};
        };
        trie_.prefixes(piece, pos, [&](std::size_t length, Id id) {
            offer(length, id, prefix_score + pieces_[id].second);
            has_single = has_single || length == size;
        });
        if (!has_single) {
            if (!settings_.unk_id)
                throw ValueError(
                    "Tokenizer: expected characters of the vocabulary, since the model has no unk_id, got another one");
            offer(size, kUnknown, prefix_score + unknown_score_);
        }
        pos += size;
    }
    // Backtracks along the best path; adjacent unknown characters become one token.
    const std::size_t first = out.size();
    const auto is_unknown = [&](Id id) { return id == kUnknown || id == settings_.unk_id; };
    for (auto end = static_cast<std::uint32_t>(piece.size()); end > 0;) {
        const Node& node = best[end];
        if (is_unknown(node.id) && out.size() > first && out.back().id == kUnknown) out.back().begin = node.begin;
        else out.push_back({is_unknown(node.id) ? kUnknown : node.id, node.begin, end});
        end = node.begin;
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
    for (std::size_t i = first; i < out.size(); ++i) {
        if (out[i].id != kUnknown) continue;
        const ModelToken unknown = out[i];
        const std::string_view text = piece.substr(unknown.begin, unknown.end - unknown.begin);
        // A known piece is not unknown text: a literal "<unk>", or unknown characters that form a piece.
        if (const auto piece_id = table_.id(text)) {
            out[i].id = *piece_id;
            continue;
        }
        std::vector<ModelToken> bytes;
        if (settings_.byte_fallback)
            for (const char c : text)
                if (const auto id = table_.id(byte_token(static_cast<std::uint8_t>(c))))
                    bytes.push_back({*id, unknown.begin, unknown.end});
        if (settings_.byte_fallback && bytes.size() == text.size()) {
            out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
            out.insert(out.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin(), bytes.end());
            i += bytes.size() - 1;
        } else {
            out[i].id = *settings_.unk_id;
            out[i].literal = true;
        }
    }
}

std::string Unigram::to_json() const {
    std::string out = fmt::format(R"({{"type":"Unigram","unk_id":{},"vocab":[)",
                                  settings_.unk_id ? std::to_string(*settings_.unk_id) : "null");
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        out +=
            fmt::format("{}[{},{}]", i == 0 ? "" : ",", json_string(pieces_[i].first), Json(pieces_[i].second).dump());
    return out + fmt::format("],\"byte_fallback\":{}}}", settings_.byte_fallback);
}

std::shared_ptr<const Model> Unigram::train(const Counts& words, const TrainOptions& options) const {
    TrainOptions train_options = options;
    std::optional<Id> unknown;
    std::string token = options.unk_token;
    if (token.empty() && settings_.unk_id) token = pieces_[*settings_.unk_id].first;
    if (!token.empty()) {
        auto position = std::ranges::find(train_options.special_tokens, token);
        if (position == train_options.special_tokens.end())
            position = train_options.special_tokens.insert(position, token);
        unknown = static_cast<Id>(position - train_options.special_tokens.begin());
    }
    return std::make_shared<const Unigram>(UnigramSettings{unknown, settings_.byte_fallback},
                                           train_pieces(words, train_options, settings_.byte_fallback));
}

std::shared_ptr<const Model> make_unigram(const JsonValue& description) {
    const JsonValue list = description["vocab"];
    ScoredPieces pieces;
    pieces.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const JsonValue entry = list.at(i);
        if (entry.size() != 2) entry.fail(fmt::format("expected a piece and a score, got {} values", entry.size()));
        check_piece(entry.at(std::size_t{0}));
        pieces.emplace_back(entry.at(std::size_t{0}).string(), entry.at(1).number());
    }
    UnigramSettings settings{std::nullopt, description.boolean("byte_fallback", false)};
    if (description.has("unk_id"))
        settings.unk_id =
            static_cast<Id>(description["unk_id"].integer(0, static_cast<std::int64_t>(pieces.size()) - 1));
    return std::make_shared<const Unigram>(settings, std::move(pieces));
}

}  // namespace declivity::text
