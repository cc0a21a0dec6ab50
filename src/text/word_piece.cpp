// WordPiece: greedy longest match from the left (Schuster and Nakajima, "Japanese and Korean Voice Search", 2012; as in
// BERT).
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "bpe_training.hpp"
#include "model.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

class WordPieceModel : public Model {
  public:
    WordPieceModel(TokenTable table, std::string unk_token, std::string prefix, std::size_t max_characters)
        : unk_token_(std::move(unk_token)), prefix_(std::move(prefix)), max_characters_(max_characters) {
        table_ = std::move(table);
        for (const auto& [token, id] : table_.sorted()) max_token_bytes_ = std::max(max_token_bytes_, token.size());
    }

    void tokenize(std::string_view piece, data::Random*, std::vector<ModelToken>& out) const override {
        if (piece.empty()) return;
        const std::size_t first = out.size();
        const auto size = static_cast<std::uint32_t>(piece.size());
        bool matched = count_characters(piece) <= max_characters_;
        std::string candidate;
        for (std::size_t begin = 0; matched && begin < piece.size();) {
            candidate = begin > 0 ? prefix_ : std::string();
            const std::size_t prefix = candidate.size();
            // No token is longer than the longest.
            std::size_t end = std::min(piece.size(), begin + max_token_bytes_ + 1);
            while (end < piece.size() && (static_cast<unsigned char>(piece[end]) & 0xC0) == 0x80) --end;
            candidate += piece.substr(begin, end - begin);
            std::optional<Id> id;
            while (end > begin && !(id = table_.id(candidate))) {
                end -= decode_before(piece, end).size;
                candidate.resize(prefix + end - begin);
            }
            matched = id.has_value();
            if (matched) out.push_back({*id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
            begin = end;
        }
        if (matched) return;
        out.resize(first);
        const std::optional<Id> unknown = table_.id(unk_token_);
        if (!unknown)
            throw ValueError(
                fmt::format("Tokenizer: expected the unknown token '{}' in the vocabulary, got a vocabulary without it",
                            unk_token_));
        out.push_back({*unknown, 0, size});
    }

    [[nodiscard]] std::string to_json() const override {
        return fmt::format(R"({{"type":"WordPiece","unk_token":{},"continuing_subword_prefix":{},)"
                           R"("max_input_chars_per_word":{},"vocab":{}}})",
                           json_string(unk_token_), json_string(prefix_), max_characters_, vocab_json(table_));
    }

    [[nodiscard]] std::shared_ptr<const Model> train(const Counts& words, const TrainOptions& options) const override {
        TrainedMerges trained = train_merges(words, options, prefix_, "");
        return std::make_shared<const WordPieceModel>(std::move(trained.table), unk_token_, prefix_, max_characters_);
    }

  private:
    std::string unk_token_, prefix_;
    std::size_t max_characters_, max_token_bytes_ = 0;
};

class WordLevel : public Model {
  public:
    WordLevel(TokenTable table, std::string unk_token) : unk_token_(std::move(unk_token)) { table_ = std::move(table); }

    void tokenize(std::string_view piece, data::Random*, std::vector<ModelToken>& out) const override {
        std::optional<Id> id = table_.id(piece);
        if (!id) id = table_.id(unk_token_);
        if (!id)
            throw ValueError(
                fmt::format("Tokenizer: expected the unknown token '{}' in the vocabulary, got a vocabulary without it",
                            unk_token_));
        out.push_back({*id, 0, static_cast<std::uint32_t>(piece.size())});
    }

    [[nodiscard]] std::string to_json() const override {
        return fmt::format(R"({{"type":"WordLevel","vocab":{},"unk_token":{}}})", vocab_json(table_),
                           json_string(unk_token_));
    }

    [[nodiscard]] std::shared_ptr<const Model> train(const Counts& words, const TrainOptions& options) const override {
        std::vector<std::pair<std::string, std::int64_t>> order(words.begin(), words.end());
        std::ranges::sort(order, [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        TokenTable table;
        for (const std::string& token : options.special_tokens) table.add(token);
        for (const auto& [word, count] : order) {
            if (static_cast<std::int64_t>(table.size()) >= options.vocab_size) break;
            if (count >= options.min_frequency) table.add(word);
        }
        return std::make_shared<const WordLevel>(std::move(table),
                                                 options.unk_token.empty() ? unk_token_ : options.unk_token);
    }

  private:
    std::string unk_token_;
};

}  // namespace

std::shared_ptr<const Model> make_word_piece(const JsonValue& description) {
    // Each prefix of a word is looked up until one is a token.
    constexpr std::size_t kMaxTokenBytes = 1000;
    TokenTable table = read_vocab(description["vocab"]);
    for (const auto& [token, id] : table.sorted())
        if (token.size() > kMaxTokenBytes)
            description["vocab"].fail(
                fmt::format("expected tokens of at most {} bytes, got one of {}", kMaxTokenBytes, token.size()));
    return std::make_shared<const WordPieceModel>(
        std::move(table), description.string("unk_token", "[UNK]"),
        description.string("continuing_subword_prefix", "##"),
        static_cast<std::size_t>(description.integer("max_input_chars_per_word", 0, INT64_C(1) << 40, 100)));
}

std::shared_ptr<const Model> make_word_level(const JsonValue& description) {
    return std::make_shared<const WordLevel>(read_vocab(description["vocab"]),
                                             description.string("unk_token", "<unk>"));
}

}  // namespace declivity::text
