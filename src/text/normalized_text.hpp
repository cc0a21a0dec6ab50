// Layer 5, private. A text that was changed, each byte of which knows the part of the original that it comes from.
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
    /// A part of the original that begins at `base`. What is not valid becomes U+FFFD.
    NormalizedText(std::string_view original, std::size_t base);
    /// A part of another one.
    NormalizedText(const NormalizedText& whole, Range part);

    [[nodiscard]] const std::string& str() const noexcept { return text_; }
    [[nodiscard]] std::string_view view(Range part) const noexcept {
        return std::string_view(text_).substr(part.begin, part.end - part.begin);
    }
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    /// The part of the original that a part comes from.
    [[nodiscard]] Offsets original(Range part) const noexcept {
        if (part.begin >= part.end) return {original_begin(part.begin), original_begin(part.begin)};
        if (spans_.empty()) return {base_ + part.begin, base_ + part.end};
        return {spans_[part.begin].begin, spans_[part.end - 1].end};
    }

    // Changes of the whole text.
    void transform(std::span<const Change> changes);
    /// Characters become those that the function appends; those after the first come from where the first does.
    void map(const std::function<void(char32_t c, std::u32string& out)>& function);
    void prepend(std::string_view front);
    /// Each match becomes `by`, which comes from where the last character of the match does.
    void replace(const Regex& pattern, std::string_view by);
    void keep(Range part);
    /// Another text of the same origin in place of this one. @throws ValueError for one that outgrows the original
    void assign(NormalizedText&& other);
    /// To be called before a change. @throws ValueError where it makes so many bytes that it outgrows the original
    void check_growth(std::size_t bytes) const;

    // Writing a new text out of an old one.
    /// Appends characters that come from one part.
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
    [[nodiscard]] std::size_t original_begin(std::size_t at) const noexcept {
        if (spans_.empty()) return base_ + at;
        return at < spans_.size() ? spans_[at].begin : spans_.back().end;
    }
    /// Gives each byte its own span.
    void expand();
    std::string text_;
    std::vector<Offsets> spans_;  ///< of each byte; empty while byte i is byte base_ + i of the original
    std::size_t base_ = 0;
    std::size_t most_ = SIZE_MAX;  ///< bytes that changes of the original may make of it
};

}  // namespace declivity::text
