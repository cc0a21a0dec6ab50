#include "unicode.hpp"

#include <algorithm>
#include <array>

#include <utf8proc.h>

namespace declivity::text {
namespace {

utf8proc_category_t category(char32_t c) noexcept { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_continuation(std::string_view text, std::size_t pos) {
    return pos < text.size() && (static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80;
}

int combining_class(char32_t c) {
    return c < 0x300 ? 0 : utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

/// Canonical composition of two characters; 0 if there is none.
char32_t composed(char32_t first, char32_t second) {
    if (second < 0x300) return 0;  // no character below is the second of a composition
    std::array<utf8proc_int32_t, 2> pair{static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return utf8proc_normalize_utf32(pair.data(), 2, options) == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

std::vector<Change> decompose(std::string_view text, bool compatible) {
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
    std::vector<Change> out;
    out.reserve(text.size());
    std::array<utf8proc_int32_t, 32> parts{};  // 18 is the maximum
    std::size_t sorted = 0;                    // characters up to here are in order
    std::vector<int> classes;
    for (std::size_t pos = 0; pos < text.size();) {
        const Decoded decoded = decode_at(text, pos);
        pos += decoded.size;
        if (decoded.c < 0x80) {
            out.push_back({decoded.c, 0});
            continue;
        }
        int boundary = 0;
        const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(decoded.c), parts.data(),
                                                   static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
        for (utf8proc_ssize_t i = 0; i < count; ++i)
            out.push_back({static_cast<char32_t>(parts[static_cast<std::size_t>(i)]), i > 0});
    }
    // Combining marks are sorted by their combining classes.
    for (std::size_t i = 0; i <= out.size(); ++i) {
        if (i < out.size() && combining_class(out[i].c) != 0) continue;
        if (i - sorted > 1) {
            const auto begin = out.begin() + static_cast<std::ptrdiff_t>(sorted);
            std::stable_sort(begin, out.begin() + static_cast<std::ptrdiff_t>(i), [](const Change& a, const Change& b) {
                return combining_class(a.c) < combining_class(b.c);
            });
        }
        sorted = i + 1;
    }
    return out;
}

void compose(std::vector<Change>& changes) {
    std::size_t count = 0, starter = 0;
    bool has_starter = false;
    int last_class = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const Change current = changes[i];
        const int current_class = combining_class(current.c);
        if (has_starter) {
            // Blocked if a mark in between has the same or a higher class.
            const bool can_compose = count == starter + 1 || (last_class < current_class && last_class != 0);
            if (const char32_t c = can_compose ? composed(changes[starter].c, current.c) : 0; c != 0) {
                changes[starter] = {c, changes[starter].change + current.change - 1};
                continue;
            }
        }
        if (current_class == 0) {
            has_starter = true;
            starter = count;
        }
        last_class = current_class;
        changes[count++] = current;
    }
    changes.resize(count);
}

}  // namespace

Decoded decode_any(std::string_view text, std::size_t pos) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[pos + i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return {first, 1};
    std::uint32_t length = 0;
    unsigned low = 0x80, high = 0xBF;  // of the second byte
    if (first >= 0xC2 && first <= 0xDF) length = 2;
    else if (first >= 0xE0 && first <= 0xEF)
        length = 3, low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    else if (first >= 0xF0 && first <= 0xF4)
        length = 4, low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    if (length == 0 || pos + 1 >= text.size() || byte(1) < low || byte(1) > high)
        return {kReplacementCharacter, 1, false};
    for (std::uint32_t i = 2; i < length; ++i)
        if (!is_continuation(text, pos + i)) return {kReplacementCharacter, i, false};
    return decode_at(text, pos);
}

Decoded decode_before(std::string_view text, std::size_t pos) noexcept {
    std::size_t begin = pos - 1;
    while (begin > 0 && is_continuation(text, begin)) --begin;
    return decode_at(text, begin);
}

void append(std::string& text, char32_t c) {
    const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
    if (c < 0x80) return put(c);
    if (c < 0x800) put(0xC0 | c >> 6);
    else if (c < 0x10000) put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F));
    else put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
}

std::string utf8(char32_t c) {
    std::string out;
    append(out, c);
    return out;
}

std::size_t count_characters(std::string_view text) noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_valid(std::string_view text) noexcept {
    for (std::size_t pos = 0; pos < text.size();) {
        if (static_cast<unsigned char>(text[pos]) < 0x80) {
            ++pos;
            continue;
        }
        const Decoded decoded = decode_any(text, pos);
        if (!decoded.valid) return false;
        pos += decoded.size;
    }
    return true;
}

std::string to_valid(std::string_view text) {
    if (is_valid(text)) return std::string(text);
    std::string out;
    for (std::size_t pos = 0; pos < text.size();) {
        const Decoded decoded = decode_any(text, pos);
        append(out, decoded.c);
        pos += decoded.size;
    }
    return out;
}

bool is_whitespace(char32_t c) noexcept {
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_punctuation(char32_t c) noexcept {
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    const auto cat = category(c);
    return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
}

bool is_numeric(char32_t c) noexcept {
    const auto cat = category(c);
    return cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t c) noexcept {
    const auto cat = category(c);
    return cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) noexcept { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_other(char32_t c) noexcept { return category(c) >= UTF8PROC_CATEGORY_CC; }

bool is_chinese(char32_t c) noexcept {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_word(char32_t c) {
    if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    const auto cat = category(c);
    if (cat <= UTF8PROC_CATEGORY_ND && cat != UTF8PROC_CATEGORY_CN) return true;  // letters, marks, decimal digits
    if (cat == UTF8PROC_CATEGORY_PC || cat == UTF8PROC_CATEGORY_NL || c == 0x200C || c == 0x200D) return true;
    // A few symbols are alphabetic: letters in circles and squares.
    return cat == UTF8PROC_CATEGORY_SO && ((c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                                           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189));
}

void append_lower(std::u32string& out, char32_t c) {
    if (c == 0x130) {  // the only character with two lower-case ones, whatever its context
        out += U"i\u0307";
        return;
    }
    out.push_back(c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c)
                           : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::vector<Change> normalize(std::string_view text, NormalForm form) {
    std::vector<Change> out = decompose(text, form == NormalForm::nfkc || form == NormalForm::nfkd);
    if (form == NormalForm::nfc || form == NormalForm::nfkc) compose(out);
    return out;
}

std::vector<std::size_t> grapheme_ends(std::string_view text) {
    std::vector<std::size_t> out;
    utf8proc_int32_t state = 0;
    char32_t previous = 0;
    for (std::size_t pos = 0; pos < text.size();) {
        const Decoded decoded = decode_at(text, pos);
        if (pos > 0 && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                                        static_cast<utf8proc_int32_t>(decoded.c), &state))
            out.push_back(pos);
        previous = decoded.c;
        pos += decoded.size;
    }
    if (!text.empty()) out.push_back(text.size());
    return out;
}

}  // namespace declivity::text
