#include "byte_level.hpp"

namespace declivity::text {
namespace {

constexpr bool printable(unsigned byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Table {
    std::array<char32_t, 256> characters{};
    std::array<std::int16_t, 0x144> bytes{};  // -1 for none
};

constexpr Table make_table() {
    Table table;
    for (auto& byte : table.bytes) byte = -1;
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const char32_t c = printable(byte) ? static_cast<char32_t>(byte) : next++;
        table.characters[byte] = c;
        table.bytes[c] = static_cast<std::int16_t>(byte);
    }
    return table;
}

constexpr Table kTable = make_table();

}  // namespace

char32_t byte_character(std::uint8_t byte) noexcept { return kTable.characters[byte]; }

std::optional<std::uint8_t> character_byte(char32_t c) noexcept {
    if (c >= kTable.bytes.size() || kTable.bytes[c] < 0) return std::nullopt;
    return static_cast<std::uint8_t>(kTable.bytes[c]);
}

Pieces to_byte_level(const NormalizedText& text, const std::vector<Range>& pieces) {
    Pieces out;
    out.text.reserve(text.str().size() * 5 / 4 + 8);
    out.pieces.reserve(pieces.size());
    std::size_t size = 0;
    for (const Range& piece : pieces) {
        const std::size_t begin = size;
        for (std::size_t pos = piece.begin; pos < piece.end;) {
            const std::size_t bytes = bytes_of(static_cast<unsigned char>(text.str()[pos]));
            const Offsets from = text.original({pos, pos + bytes});
            for (std::size_t i = 0; i < bytes; ++i) {
                const char32_t c = byte_character(static_cast<std::uint8_t>(text.str()[pos + i]));
                std::array<char, 2> utf8_bytes{static_cast<char>(c)};
                std::size_t length = 1;
                if (c >= 0x80) {
                    utf8_bytes = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
                    length = 2;
                }
                out.text.append({utf8_bytes.data(), length}, from);
                size += length;
            }
            pos += bytes;
        }
        out.pieces.push_back({begin, size});
    }
    return out;
}

std::string from_byte_level(std::string_view token) {
    std::string out;
    for (std::size_t pos = 0; pos < token.size();) {
        const Decoded decoded = decode_at(token, pos);
        const std::optional<std::uint8_t> byte = character_byte(decoded.c);
        if (!byte) return std::string(token);
        out.push_back(static_cast<char>(*byte));
        pos += decoded.size;
    }
    return out;
}

}  // namespace declivity::text
