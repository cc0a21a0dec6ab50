#include "bpe.hpp"

#include <algorithm>
#include <charconv>
#include <queue>
#include <mutex>
#include <shared_mutex>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "unicode.hpp"

namespace declivity::text {
namespace {

constexpr std::size_t kCachedPieces = 1 << 16;
constexpr std::size_t kMaxCachedBytes = 256;
constexpr std::size_t kMaxLinearSearch = 24;  // symbols up to which a linear search is used

}  // namespace

void PairMap::reserve(std::size_t pairs) {
    std::size_t slot_count = 16;
    while (slot_count < 2 * pairs) slot_count *= 2;
    if (slot_count <= slots_.size()) return;
    std::vector<Slot> old(slot_count);
    old.swap(slots_);
    for (const Slot& slot : old) {
        if (slot.merge.rank == UINT32_MAX) continue;
        std::size_t index = slot_of(slot.key);
        while (slots_[index].merge.rank != UINT32_MAX) index = (index + 1) & (slots_.size() - 1);
        slots_[index] = slot;
    }
}

void PairMap::put(Id left, Id right, Merge merge) {
    if (2 * (used_ + 1) > slots_.size()) reserve(slots_.size());
    const std::uint64_t key = key_of(left, right);
    std::size_t index = slot_of(key);
    while (slots_[index].merge.rank != UINT32_MAX && slots_[index].key != key)
        index = (index + 1) & (slots_.size() - 1);
    if (slots_[index].merge.rank == UINT32_MAX) ++used_;
    slots_[index] = {key, merge};
}

std::string byte_token(std::uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<std::uint8_t> byte_of_token(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
    std::uint8_t byte = 0;
    const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
    if (error != std::errc() || end != token.data() + 5) return std::nullopt;
    return byte;
}

/// Cache of pieces and their tokens. Other threads may read while none writes; pieces that do not fit are recomputed.
struct Bpe::Cache {
    std::shared_mutex mutex;
    std::unordered_map<std::string, std::vector<ModelToken>, StringHash, std::equal_to<>> pieces;
};

Bpe::Bpe(BpeSettings settings, TokenTable table, std::vector<Merge> merges, const std::vector<Id>& merged)
    : settings_(std::move(settings)), merges_(std::move(merges)), cache_(std::make_shared<Cache>()) {
    table_ = std::move(table);
    pairs_.reserve(merges_.size());
    for (std::size_t rank = 0; rank < merges_.size(); ++rank)
        pairs_.put(merges_[rank].left, merges_[rank].right, {static_cast<std::uint32_t>(rank), merged[rank]});
    if (settings_.byte_fallback)
        for (unsigned byte = 0; byte < 256; ++byte)
            byte_ids_[byte] = table_.id(byte_token(static_cast<std::uint8_t>(byte)));
    for (char32_t c = 0; c < character_ids_.size(); ++c) character_ids_[c] = table_.id(utf8(c));
}

Id Bpe::unknown() const {
    if (const auto id = table_.id(settings_.unk_token)) return *id;
    throw ValueError(
        fmt::format("Tokenizer: expected the unknown token '{}' in the vocabulary, got a vocabulary without it",
                    settings_.unk_token));
}

void Bpe::symbols_of(std::string_view piece, std::vector<Symbol>& symbols) const {
    const bool plain = settings_.continuing_subword_prefix.empty() && settings_.end_of_word_suffix.empty();
    std::uint32_t unknown_length = 0;
    const auto add = [&](Id id, std::uint32_t length) {
        const auto index = static_cast<std::int32_t>(symbols.size());
        if (index > 0) symbols.back().next = index;
        symbols.push_back({id, length, index - 1, -1});
    };
    const auto add_unknown = [&] {
        if (unknown_length > 0) add(unknown(), unknown_length);
        unknown_length = 0;
    };
    std::string decorated;
    for (std::size_t pos = 0; pos < piece.size();) {
        const Decoded decoded = decode_at(piece, pos);
        const std::size_t end = pos + decoded.size;
        std::string_view character = piece.substr(pos, decoded.size);
        if (!plain) {
            decorated = pos > 0 ? settings_.continuing_subword_prefix : std::string();
            decorated += character;
            if (end == piece.size()) decorated += settings_.end_of_word_suffix;
            character = decorated;
        }
        const std::optional<Id> id =
            !plain || decoded.c >= character_ids_.size() ? table_.id(character) : character_ids_[decoded.c];
        pos = end;
        if (id) {
            add_unknown();
            add(*id, decoded.size);
            continue;
        }
        if (settings_.byte_fallback && std::ranges::all_of(character, [&](char c) {
                return byte_ids_[static_cast<unsigned char>(c)].has_value();
            })) {
            for (const char c : character) add(*byte_ids_[static_cast<unsigned char>(c)], 1);
            continue;
        }
        if (settings_.unk_token.empty()) continue;
        if (!settings_.fuse_unk) add_unknown();
        unknown_length += decoded.size;
    }
    add_unknown();
}

/// For few symbols: repeatedly searches for the pair of the lowest rank from the left.
void Bpe::merge_short(std::vector<Symbol>& symbols) const {
    std::array<PairMap::Merge, kMaxLinearSearch> next;  // of symbol i and the one after it
    std::size_t count = symbols.size();
    for (std::size_t i = 0; i + 1 < count; ++i) next[i] = pairs_.find(symbols[i].id, symbols[i + 1].id);
    while (count > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < count; ++i)
            if (next[i].rank < next[best].rank) best = i;
        if (next[best].rank == UINT32_MAX) break;
        symbols[best].id = next[best].id;
        symbols[best].length += symbols[best + 1].length;
        for (std::size_t i = best + 1; i + 1 < count; ++i) symbols[i] = symbols[i + 1], next[i] = next[i + 1];
        --count;
        if (best > 0) next[best - 1] = pairs_.find(symbols[best - 1].id, symbols[best].id);
        if (best + 1 < count) next[best] = pairs_.find(symbols[best].id, symbols[best + 1].id);
    }
    symbols.resize(count);
}

void Bpe::merge(std::vector<Symbol>& symbols, data::Random* dropout) const {
    if (symbols.size() < 2) return;
    if (symbols.size() <= kMaxLinearSearch && dropout == nullptr) return merge_short(symbols);
    struct Candidate {
        std::uint32_t rank;
        std::int32_t position;
        Id id;
        bool operator<(const Candidate& other) const {  // the queue's top is the lowest rank, the leftmost
            return std::tie(rank, position) > std::tie(other.rank, other.position);
        }
    };
    std::priority_queue<Candidate> queue;
    const auto offer = [&](std::int32_t position) {
        const Symbol& left = symbols[static_cast<std::size_t>(position)];
        if (left.next < 0) return;
        const PairMap::Merge merge = pairs_.find(left.id, symbols[static_cast<std::size_t>(left.next)].id);
        if (merge.rank != UINT32_MAX) queue.push({merge.rank, position, merge.id});
    };
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<std::int32_t>(i));
    std::vector<Candidate> skipped;
    while (!queue.empty()) {
        const Candidate top = queue.top();
        queue.pop();
        if (dropout != nullptr && dropout->uniform() < settings_.dropout) {
            skipped.push_back(top);
            continue;
        }
        for (const Candidate& candidate : skipped) queue.push(candidate);
        skipped.clear();
        Symbol& left = symbols[static_cast<std::size_t>(top.position)];
        if (left.length == 0 || left.next < 0) continue;
        Symbol& right = symbols[static_cast<std::size_t>(left.next)];
        // It may have changed since it was queued.
        const PairMap::Merge current = pairs_.find(left.id, right.id);
        if (current.rank != top.rank) continue;
        left.id = top.id;
        left.length += right.length;
        right.length = 0;
        left.next = right.next;
        if (right.next >= 0) symbols[static_cast<std::size_t>(right.next)].previous = top.position;
        if (left.previous >= 0) offer(left.previous);
        offer(top.position);
    }
    std::erase_if(symbols, [](const Symbol& symbol) { return symbol.length == 0; });
}

void Bpe::tokenize(std::string_view piece, data::Random* dropout, std::vector<ModelToken>& out) const {
    if (piece.empty()) return;
    if (settings_.dropout <= 0) dropout = nullptr;
    if (settings_.ignore_merges && dropout == nullptr)
        if (const auto id = table_.id(piece)) {
            out.push_back({*id, 0, static_cast<std::uint32_t>(piece.size())});
            return;
        }
    const bool cacheable = dropout == nullptr && piece.size() <= kMaxCachedBytes;
    if (cacheable) {
        const std::shared_lock lock(cache_->mutex);
        if (const auto found = cache_->pieces.find(piece); found != cache_->pieces.end()) {
            out.insert(out.end(), found->second.begin(), found->second.end());
            return;
        }
    }
    thread_local std::vector<Symbol> symbols;
    symbols.clear();
    symbols_of(piece, symbols);
    merge(symbols, dropout);
    const std::size_t first = out.size();
    std::uint32_t pos = 0;
    for (const Symbol& symbol : symbols) {
        out.push_back({symbol.id, pos, pos + symbol.length});
        pos += symbol.length;
    }
    if (cacheable) {
        const std::unique_lock lock(cache_->mutex, std::try_to_lock);
        if (lock && cache_->pieces.size() < kCachedPieces)
            cache_->pieces.try_emplace(std::string(piece), out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
    }
}

std::string Bpe::to_json() const {
    const auto text = [](const std::string& value) { return value.empty() ? std::string("null") : json_string(value); };
    std::string out = fmt::format(
        R"({{"type":"BPE","dropout":{},"unk_token":{},"continuing_subword_prefix":{},"end_of_word_suffix":{},)"
        R"("fuse_unk":{},"byte_fallback":{},"ignore_merges":{},"vocab":{},"merges":[)",
        settings_.dropout > 0 ? fmt::format("{}", settings_.dropout) : "null", text(settings_.unk_token),
        text(settings_.continuing_subword_prefix), text(settings_.end_of_word_suffix), settings_.fuse_unk,
        settings_.byte_fallback, settings_.ignore_merges, vocab_json(table_));
    for (std::size_t i = 0; i < merges_.size(); ++i)
        out += fmt::format("{}[{},{}]", i == 0 ? "" : ",", json_string(*table_.token(merges_[i].left)),
                           json_string(*table_.token(merges_[i].right)));
    return out + "]}";
}

std::shared_ptr<const Model> make_bpe(const JsonValue& description) {
    BpeSettings settings{.unk_token = description.string("unk_token", ""),
                         .continuing_subword_prefix = description.string("continuing_subword_prefix", ""),
                         .end_of_word_suffix = description.string("end_of_word_suffix", ""),
                         .dropout = description.has("dropout") ? description["dropout"].number() : 0,
                         .fuse_unk = description.boolean("fuse_unk", false),
                         .byte_fallback = description.boolean("byte_fallback", false),
                         .ignore_merges = description.boolean("ignore_merges", false)};
    if (!(settings.dropout >= 0 && settings.dropout <= 1))
        description["dropout"].fail(fmt::format("expected 0 to 1, got {}", settings.dropout));
    TokenTable table = read_vocab(description["vocab"]);
    const JsonValue list = description["merges"];
    std::vector<Bpe::Merge> merges;
    std::vector<Id> merged;
    merges.reserve(list.size());
    merged.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Json& entry = list.json()[i];
        std::string_view left, right;
        if (entry.is_string()) {  // "left right"
            const std::string_view text = entry.get_ref<const std::string&>();
            const std::size_t space = text.find(' ');
            if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
                list.at(i).fail(fmt::format("expected two tokens and one space, got '{}'", text));
            left = text.substr(0, space);
            right = text.substr(space + 1);
        } else {
            const JsonValue pair = list.at(i);
            if (pair.size() != 2) pair.fail(fmt::format("expected two tokens, got {}", pair.size()));
            left = entry[0].is_string() ? std::string_view(entry[0].get_ref<const std::string&>())
                                        : pair.at(std::size_t{0}).string();
            right =
                entry[1].is_string() ? std::string_view(entry[1].get_ref<const std::string&>()) : pair.at(1).string();
        }
        const auto id = [&](std::string_view token) {
            if (const auto found = table.id(token)) return *found;
            list.at(i).fail(fmt::format("the token '{}' is not in the vocabulary", token));
        };
        std::string merged_token(left);
        merged_token += right.starts_with(settings.continuing_subword_prefix)
                            ? right.substr(settings.continuing_subword_prefix.size())
                            : right;
        merges.push_back({id(left), id(right)});
        merged.push_back(id(merged_token));
    }
    return std::make_shared<const Bpe>(std::move(settings), std::move(table), std::move(merges), merged);
}

}  // namespace declivity::text
