// Layer 7, private. Unigram models: the most probable segmentation of a text into pieces (Kudo, "Subword
// Regularization", 2018).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bpe.hpp"

namespace declivity::text {

/// Byte trie of the pieces.
class Trie {
  public:
    void reserve(std::size_t bytes) { nodes_.reserve(bytes); }
    void put(std::string_view key, Id value);
    /// Calls function(bytes, value) for each key that is a prefix of the text at a position, from the shortest.
    template <class Function>
    void prefixes(std::string_view text, std::size_t begin, const Function& function) const {
        Id node = 0;
        for (std::size_t end = begin; end < text.size();) {
            const PairMap::Merge next = nodes_.find(node, static_cast<unsigned char>(text[end]));
            if (next.rank == UINT32_MAX) return;
            node = next.id;
            ++end;
            if (values_[node] != UINT32_MAX) function(end - begin, values_[node]);
        }
    }

  private:
    PairMap nodes_;  ///< (node, byte) to node
    std::vector<Id> values_ = std::vector<Id>(1, UINT32_MAX);
};

/// Pieces and their log probabilities.
using ScoredPieces = std::vector<std::pair<std::string, double>>;

struct UnigramSettings {
    std::optional<Id> unk_id = std::nullopt;
    bool byte_fallback = false;
};

class Unigram : public Model {
  public:
    Unigram(UnigramSettings settings, ScoredPieces pieces);

    void tokenize(std::string_view piece, data::Random* dropout, std::vector<ModelToken>& out) const override;
    [[nodiscard]] std::string to_json() const override;
    [[nodiscard]] std::shared_ptr<const Model> train(const Counts& words, const TrainOptions& options) const override;

  private:
    UnigramSettings settings_;
    ScoredPieces pieces_;
    Trie trie_;
    double unknown_score_ = 0;
};

/// Result of the training: the special tokens, then pieces by their scores. @throws ValueError
ScoredPieces train_pieces(const Model::Counts& words, const TrainOptions& options, bool bytes);

}  // namespace declivity::text
