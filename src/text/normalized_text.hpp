// Layer 7, private. A modified text with the span in the original that each byte comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/text/encoding.hpp>

#include "regex.hpp"
#include "unicode.hpp"

namespace declivity::text {

class NormalizedText {
  public:
    NormalizedText() = default;
    /// A part of the original that starts at `base`. Invalid bytes become U+FFFD.
    NormalizedText(std::string_view original, std::size_t base);
    /// A part of another normalized text.
    NormalizedText(const NormalizedText& source, Range part);

    [[nodiscard]] const std::string& str() const noexcept { return text_; }
    [[nodiscard]] std::string_view view(Range part) const noexcept {
        return std::string_view(text_).substr(part.begin, part.end - part.begin);
    }
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    /// Span in the original that a part comes from.
    [[nodiscard]] Offsets original(Range part) const noexcept {
        if (part.begin >= part.end) return {original_begin(part.begin), original_begin(part.begin)};
        if (spans_.empty()) return {base_ + part.begin, base_ + part.end};
        return {spans_[part.begin].begin, spans_[part.end - 1].end};
    }

    // Changes of the whole text.
    void transform(std::span<const Change> changes);
    /// Replaces each character by those that the function appends, all of which have its span.
    void map(const std::function<void(char32_t c, std::u32string& out)>& function);
    void prepend(std::string_view front);
    /// Replaces each match by `replacement`, which has the span of the match's last character.
    void replace(const Regex& pattern, std::string_view replacement);
    void crop(Range part);
    /// Replaces this text by another one with the same original. @throws ValueError if it exceeds the growth limit
    void assign(NormalizedText&& other);
    /// To be called before a change. @throws ValueError if this many bytes exceed the growth limit
    void check_growth(std::size_t bytes) const;

    // Writing a new text from an old one.
    /// Appends characters with one span.
    void append(std::string_view characters, Offsets from) {
        if (spans_.size() != text_.size()) expand();
        text_ += characters;
        spans_.insert(spans_.end(), characters.size(), from);
    }
    /// Appends a part of another one.
    void append(const NormalizedText& other, Range part);
    void reserve(std::size_t bytes) {
        text_.reserve(bytes);
        spans_.reserve(bytes);
    }

  private:
    [[nodiscard]] std::size_t original_begin(std::size_t pos) const noexcept {
        if (spans_.empty()) return base_ + pos;
        return pos < spans_.size() ? spans_[pos].begin : spans_.back().end;
    }
    /// Stores a span for each byte.
    void expand();
    std::string text_;
    std::vector<Offsets> spans_;  ///< of each byte; empty while byte i is byte base_ + i of the original
    std::size_t base_ = 0;
    std::size_t max_bytes_ = SIZE_MAX;  ///< maximum number of bytes after changes
};

}  // namespace declivity::text
