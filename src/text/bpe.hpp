// Layer 7, private. Byte-pair encoding: Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword
// Units" (2016).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model.hpp"

namespace declivity::text {

/// Hash map of id pairs with open addressing, for the most frequent look-up.
class PairMap {
  public:
    struct Merge {
        std::uint32_t rank = UINT32_MAX;  ///< marks an empty entry
        Id id = 0;
    };
    void reserve(std::size_t pairs);
    void put(Id left, Id right, Merge merge);
    [[nodiscard]] Merge find(Id left, Id right) const noexcept {
        const std::uint64_t key = key_of(left, right);
        for (std::size_t index = slot_of(key);; index = (index + 1) & (slots_.size() - 1)) {
            const Slot& slot = slots_[index];
            if (slot.key == key || slot.merge.rank == UINT32_MAX) return slot.merge;
        }
    }

  private:
    struct Slot {
        std::uint64_t key = 0;
        Merge merge;
    };
    static std::uint64_t key_of(Id left, Id right) noexcept { return static_cast<std::uint64_t>(left) << 32 | right; }
    [[nodiscard]] std::size_t slot_of(std::uint64_t key) const noexcept {
        return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 20) & (slots_.size() - 1);
    }
    std::vector<Slot> slots_ = std::vector<Slot>(16);
    std::size_t used_ = 0;
};

struct BpeSettings {
    std::string unk_token = {};
    std::string continuing_subword_prefix = {};
    std::string end_of_word_suffix = {};
    double dropout = 0;
    bool fuse_unk = false;
    bool byte_fallback = false;
    bool ignore_merges = false;
};

class Bpe : public Model {
  public:
    struct Merge {
        Id left = 0, right = 0;
    };
    /// @param merges of tokens of the table, which also contains the merged forms
    Bpe(BpeSettings settings, TokenTable table, std::vector<Merge> merges, const std::vector<Id>& merged);

    void tokenize(std::string_view piece, data::Random* dropout, std::vector<ModelToken>& out) const override;
    [[nodiscard]] std::string to_json() const override;
    [[nodiscard]] std::shared_ptr<const Model> train(const Counts& words, const TrainOptions& options) const override;

  private:
    struct Symbol {
        Id id = 0;
        std::uint32_t length = 0;
        std::int32_t previous = -1, next = -1;  ///< neighbours; length 0 marks merged symbols
    };
    void symbols_of(std::string_view piece, std::vector<Symbol>& symbols) const;
    void merge(std::vector<Symbol>& symbols, data::Random* dropout) const;
    void merge_short(std::vector<Symbol>& symbols) const;
    [[nodiscard]] Id unknown() const;

    BpeSettings settings_;
    std::vector<Merge> merges_;
    PairMap pairs_;
    std::array<std::optional<Id>, 256> byte_ids_;         ///< of <0x00> .. <0xFF>
    std::array<std::optional<Id>, 0x800> character_ids_;  ///< of characters of one or two bytes

    // Cache of the tokens of pieces.
    struct Cache;
    std::shared_ptr<Cache> cache_;
};

/// The token <0x00> .. <0xFF> of a byte.
std::string byte_token(std::uint8_t byte);
/// The byte of such a token.
std::optional<std::uint8_t> byte_of_token(std::string_view token);

}  // namespace declivity::text
