// SentencePiece's precompiled character map: a size in bytes, a double-array trie of that size over the replaced texts,
// and the replacements, each terminated by a zero byte. The trie's units are those of the library Darts-clone: offset,
// label, and whether a leaf follows.
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "normalizer.hpp"

namespace declivity::text {
namespace {

std::string from_base64(const JsonValue& value) {
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : value.string()) {
        if (c == '=') break;
        std::uint32_t six = 0;
        if (c >= 'A' && c <= 'Z') six = static_cast<std::uint32_t>(c - 'A');
        else if (c >= 'a' && c <= 'z') six = static_cast<std::uint32_t>(c - 'a') + 26;
        else if (c >= '0' && c <= '9') six = static_cast<std::uint32_t>(c - '0') + 52;
        else if (c == '+') six = 62;
        else if (c == '/') six = 63;
        else value.fail(fmt::format("'{}' is not a base64 character", c));
        bits = bits << 6 | six;
        if ((count += 6) >= 8) out.push_back(static_cast<char>(static_cast<unsigned char>(bits >> (count -= 8))));
    }
    return out;
}

class Precompiled : public Normalizer {
  public:
    explicit Precompiled(const JsonValue& value) {
        const std::string bytes = from_base64(value);
        std::uint32_t size = 0;
        if (bytes.size() < sizeof size) value.fail("the table is truncated");
        std::memcpy(&size, bytes.data(), sizeof size);  // little-endian, like every supported machine
        if (size % 4 != 0 || size == 0 || size > bytes.size() - sizeof size)
            value.fail(fmt::format("expected a trie of {} bytes in a table of {}", size, bytes.size()));
        trie_.resize(size / 4);
        std::memcpy(trie_.data(), bytes.data() + sizeof size, size);
        texts_ = bytes.substr(sizeof size + size);
        if (!is_valid(texts_)) value.fail("the table's texts are not valid UTF-8");
    }

    void apply(NormalizedText& text) const override {
        std::vector<Change> changes;
        changes.reserve(text.str().size());
        bool changed = false;
        std::size_t begin = 0;
        for (const std::size_t end : grapheme_ends(text.str())) {
            const std::string_view cluster = text.view({begin, end});
            begin = end;
            text.check_growth(changes.size());
            // A short grapheme cluster is looked up as a whole, otherwise character by character.
            if (cluster.size() < 6 && look_up(cluster, changes)) {
                changed = true;
                continue;
            }
            for (std::size_t pos = 0; pos < cluster.size();) {
                const Decoded decoded = decode_at(cluster, pos);
                if (look_up(cluster.substr(pos, decoded.size), changes)) changed = true;
                else changes.push_back({decoded.c, 0});
                pos += decoded.size;
            }
        }
        if (changed) text.transform(changes);
    }

  private:
    /// Appends the replacement of a text, or of its shortest prefix in the table, as sentencepiece does.
    bool look_up(std::string_view part, std::vector<Change>& changes) const {
        const auto unit = [&](std::size_t i) { return i < trie_.size() ? trie_[i] : 0; };
        const auto offset = [](std::uint32_t unit_bits) {
            return static_cast<std::size_t>(unit_bits >> 10) << ((unit_bits & 1U << 9) >> 6);
        };
        std::size_t node = offset(unit(0));
        for (const char byte : part) {
            const auto c = static_cast<unsigned char>(byte);
            if (c == 0) return false;
            node ^= c;
            const std::uint32_t node_unit = unit(node);
            if ((node_unit & (1U << 31 | 0xFF)) != c) return false;
            node ^= offset(node_unit);
            if ((node_unit >> 8 & 1) != 0) {
                const std::size_t begin = unit(node) & ~(1U << 31);
                if (begin > texts_.size() || count_characters(texts_.substr(begin, 1)) == 0) return false;
                const std::size_t end = std::min(texts_.find('\0', begin), texts_.size());
                put(part, std::string_view(texts_).substr(begin, end - begin), changes);
                return true;
            }
        }
        return false;
    }
    static void put(std::string_view original, std::string_view replacement, std::vector<Change>& changes) {
        const auto growth = static_cast<std::int64_t>(count_characters(replacement)) -
                            static_cast<std::int64_t>(count_characters(original));
        for (std::size_t pos = 0; pos < replacement.size();) {
            const Decoded decoded = decode_at(replacement, pos);
            changes.push_back({decoded.c, 0});
            pos += decoded.size;
        }
        if (growth > 0)
            for (std::size_t i = changes.size() - static_cast<std::size_t>(growth); i < changes.size(); ++i)
                changes[i].change = 1;
        // Removed characters are attributed to the character before them.
        if (growth < 0 && !changes.empty()) changes.back().change += static_cast<std::int32_t>(growth);
    }

    std::vector<std::uint32_t> trie_;
    std::string texts_;
};

}  // namespace

std::shared_ptr<const Normalizer> make_precompiled(const JsonValue& description) {
    return std::make_shared<const Precompiled>(description["precompiled_charsmap"]);
}

}  // namespace declivity::text
