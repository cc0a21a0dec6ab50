#include <declivity/text/encoding.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "post_processor.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

/// Calls the function with each pair of per-token vectors of both.
template <class Function>
void for_each_field(Encoding& to, const Encoding& from, const Function& function) {
    function(to.ids, from.ids);
    function(to.tokens, from.tokens);
    function(to.offsets, from.offsets);
    function(to.type_ids, from.type_ids);
    function(to.attention_mask, from.attention_mask);
    function(to.special_tokens_mask, from.special_tokens_mask);
    function(to.word_ids, from.word_ids);
    function(to.sequence_ids, from.sequence_ids);
}

Encoding sub_encoding(const Encoding& encoding, std::size_t begin, std::size_t end) {
    Encoding out;
    for_each_field(out, encoding, [&](auto& to, const auto& from) {
        to.assign(from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end));
    });
    return out;
}

}  // namespace

Offsets in_characters(std::string_view text, Offsets bytes) {
    if (bytes.begin > bytes.end || bytes.end > text.size())
        throw ValueError(fmt::format("in_characters: expected a span in a text of {} bytes, got {} to {}", text.size(),
                                     bytes.begin, bytes.end));
    // An invalid sequence is one character, U+FFFD.
    std::size_t characters = 0;
    Offsets out;
    for (std::size_t pos = 0; pos < bytes.end;) {
        const std::size_t next = pos + decode_any(text, pos).size;
        if (next <= bytes.begin) out.begin = characters + 1;
        ++characters;
        pos = next;
    }
    out.end = std::max(characters, out.begin);
    if (bytes.begin == bytes.end) out.end = out.begin;
    return out;
}

io::HostArray stack(const std::vector<Encoding>& encodings, std::vector<std::int64_t> Encoding::*list) {
    if (encodings.empty()) throw ValueError("stack: expected at least one encoding, got none");
    std::vector<std::int64_t> values;
    const std::size_t length = encodings[0].size();
    for (std::size_t i = 0; i < encodings.size(); ++i) {
        if (encodings[i].size() != length)
            throw ShapeError(
                fmt::format("stack: expected encodings of {} tokens, like the first, got {} in number {} "
                            "(see Tokenizer::set_padding)",
                            length, encodings[i].size(), i));
        values.insert(values.end(), (encodings[i].*list).begin(), (encodings[i].*list).end());
    }
    return io::HostArray::of({static_cast<std::int64_t>(encodings.size()), static_cast<std::int64_t>(length)}, values);
}

void set_sequence(Encoding& encoding, std::int64_t id) {
    encoding.sequence_ids.assign(encoding.size(), id);
    for (Encoding& item : encoding.overflowing) set_sequence(item, id);
}

void set_type(Encoding& encoding, std::int64_t id) {
    encoding.type_ids.assign(encoding.size(), id);
    for (Encoding& item : encoding.overflowing) set_type(item, id);
}

void merge(Encoding& encoding, const Encoding& other) {
    const auto concatenated = [](const Encoding& a, const Encoding& b) {
        Encoding out = sub_encoding(a, 0, a.size());
        for_each_field(out, b, [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); });
        return out;
    };
    // Each overflowing piece of one is paired with each of the other: templates with many texts would multiply them.
    constexpr std::size_t kMaxPieces = std::size_t{1} << 20;
    if ((encoding.overflowing.size() + 1) > kMaxPieces / (other.overflowing.size() + 1))
        throw ValueError(fmt::format("Tokenizer: expected at most {} pieces of truncated texts, got {} x {}",
                                     kMaxPieces, encoding.overflowing.size() + 1, other.overflowing.size() + 1));
    std::vector<Encoding> overflowing;
    for (const Encoding& left : encoding.overflowing) {
        overflowing.push_back(concatenated(left, other));
        for (const Encoding& right : other.overflowing) overflowing.push_back(concatenated(left, right));
    }
    for (const Encoding& right : other.overflowing) overflowing.push_back(concatenated(encoding, right));
    for_each_field(encoding, other, [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); });
    encoding.overflowing = std::move(overflowing);
}

void truncate(Encoding& encoding, std::size_t length, std::size_t stride, Side direction) {
    const std::size_t size = encoding.size();
    if (length >= size) return;
    if (length == 0) {
        Encoding empty;
        empty.overflowing.push_back(std::move(encoding));
        encoding = std::move(empty);
        return;
    }
    if (stride >= length)
        throw ValueError(
            fmt::format("Tokenizer: expected a stride below the {} tokens that truncation leaves for the text, got {}",
                        length, stride));
    // A stride close to the length gives many pieces, which share most of their tokens.
    constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
    if ((size - stride) / (length - stride) > std::max(kMaxTokens, size) / length)
        throw ValueError(
            fmt::format("Tokenizer: expected pieces of truncated texts of at most {} tokens together, got "
                        "{} tokens in pieces of {} with a stride of {}",
                        kMaxTokens, size, length, stride));
    std::vector<Encoding> parts;
    const std::size_t step = length - stride;
    if (direction == Side::right) {
        for (std::size_t begin = 0;; begin += step) {
            const std::size_t end = std::min(begin + length, size);
            parts.push_back(sub_encoding(encoding, begin, end));
            if (end == size) break;
        }
    } else {
        for (std::size_t end = size;; end -= step) {
            const std::size_t begin = end < length ? 0 : end - length;
            parts.push_back(sub_encoding(encoding, begin, end));
            if (begin == 0) break;
        }
    }
    encoding = std::move(parts.front());
    encoding.overflowing.assign(std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
}

void pad(Encoding& encoding, std::size_t length, const Padding& padding) {
    for (Encoding& item : encoding.overflowing) pad(item, length, padding);
    if (encoding.size() >= length) return;
    Encoding filling;
    const std::size_t count = length - encoding.size();
    filling.ids.assign(count, padding.pad_id);
    filling.tokens.assign(count, padding.pad_token);
    filling.offsets.assign(count, Offsets{});
    filling.type_ids.assign(count, padding.pad_type_id);
    filling.attention_mask.assign(count, 0);
    filling.special_tokens_mask.assign(count, 1);
    filling.word_ids.assign(count, -1);
    filling.sequence_ids.assign(count, -1);
    for_each_field(encoding, filling, [&](auto& to, const auto& from) {
        to.insert(padding.direction == Side::left ? to.begin() : to.end(), from.begin(), from.end());
    });
}

}  // namespace declivity::text
