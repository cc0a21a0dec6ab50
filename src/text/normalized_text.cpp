#include "normalized_text.hpp"

#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::text {
namespace {

// A tokenizer.json may describe consecutive changes that each double a text.
constexpr std::size_t kMaxGrowth = 64, kFreeGrowth = std::size_t{16} << 20;
// Positions within a text are 32 bits.
constexpr std::size_t kMaxTextBytes = INT32_MAX;

}  // namespace

NormalizedText::NormalizedText(std::string_view original, std::size_t base) : base_(base) {
    if (original.size() > kMaxTextBytes)
        throw ValueError(
            fmt::format("Tokenizer: expected a text of at most {} bytes, got {}", kMaxTextBytes, original.size()));
    max_bytes_ = std::min(kMaxGrowth * original.size() + kFreeGrowth, kMaxTextBytes);
    if (is_valid(original)) {
        text_ = original;
        return;
    }
    reserve(original.size() + 16);
    for (std::size_t pos = 0; pos < original.size();) {
        const Decoded decoded = decode_any(original, pos);
        append(decoded.valid ? std::string(original.substr(pos, decoded.size)) : utf8(decoded.c),
               {base + pos, base + pos + decoded.size});
        pos += decoded.size;
    }
}

NormalizedText::NormalizedText(const NormalizedText& source, Range part)
    : text_(source.view(part)), max_bytes_(source.max_bytes_) {
    if (source.spans_.empty()) base_ = source.base_ + part.begin;
    else
        spans_.assign(source.spans_.begin() + static_cast<std::ptrdiff_t>(part.begin),
                      source.spans_.begin() + static_cast<std::ptrdiff_t>(part.end));
}

void NormalizedText::check_growth(std::size_t bytes) const {
    if (bytes > max_bytes_)
        throw ValueError(
            fmt::format("Tokenizer: expected a normalized text of at most {} bytes, got {}", max_bytes_, bytes));
}

void NormalizedText::assign(NormalizedText&& other) {
    check_growth(other.text_.size());
    const std::size_t max_bytes = max_bytes_;
    *this = std::move(other);
    max_bytes_ = max_bytes;
}

void NormalizedText::expand() {
    spans_.reserve(text_.size());
    for (std::size_t pos = 0; pos < text_.size();) {
        const std::size_t size = bytes_of(static_cast<unsigned char>(text_[pos]));
        spans_.insert(spans_.end(), size, Offsets{base_ + pos, base_ + pos + size});
        pos += size;
    }
}

void NormalizedText::append(const NormalizedText& other, Range part) {
    if (spans_.size() != text_.size()) expand();
    text_ += other.view(part);
    if (!other.spans_.empty()) {
        spans_.insert(spans_.end(), other.spans_.begin() + static_cast<std::ptrdiff_t>(part.begin),
                      other.spans_.begin() + static_cast<std::ptrdiff_t>(part.end));
        return;
    }
    for (std::size_t pos = part.begin; pos < part.end;) {
        const std::size_t size = bytes_of(static_cast<unsigned char>(other.text_[pos]));
        spans_.insert(spans_.end(), size, Offsets{other.base_ + pos, other.base_ + pos + size});
        pos += size;
    }
}

void NormalizedText::transform(std::span<const Change> changes) {
    NormalizedText out;
    out.reserve(text_.size() + 16);
    std::size_t pos = 0;  // of what remains to be replaced
    std::string characters;
    const auto size_at = [&] { return pos < text_.size() ? bytes_of(static_cast<unsigned char>(text_[pos])) : 0; };
    for (const Change& item : changes) {
        Offsets from;
        if (item.change > 0) {
            if (pos > 0) from = original({pos - 1, pos});
            if (pos > 0 && spans_.empty()) {  // if a byte of it is included, the whole character is
                const std::size_t size = decode_before(text_, pos).size;
                from = {base_ + pos - size, base_ + pos};
            }
        } else {
            const std::size_t size = size_at();
            from = original({pos, pos + size});
            pos += size;
            for (std::int32_t remaining = item.change; remaining < 0; ++remaining) pos += size_at();
        }
        characters.clear();
        text::append(characters, item.c);
        out.append(characters, from);
    }
    assign(std::move(out));
}

void NormalizedText::map(const std::function<void(char32_t, std::u32string&)>& function) {
    NormalizedText out;
    out.reserve(text_.size() + 16);
    std::u32string mapped;
    std::string characters;
    for (std::size_t pos = 0; pos < text_.size();) {
        const Decoded decoded = decode_at(text_, pos);
        mapped.clear();
        function(decoded.c, mapped);
        characters.clear();
        for (const char32_t c : mapped) text::append(characters, c);
        if (!characters.empty()) out.append(characters, original({pos, pos + decoded.size}));
        pos += decoded.size;
    }
    assign(std::move(out));
}

void NormalizedText::prepend(std::string_view front) {
    if (text_.empty() || front.empty()) return;
    NormalizedText out;
    out.reserve(text_.size() + front.size());
    out.append(front, original({0, bytes_of(static_cast<unsigned char>(text_[0]))}));
    out.append(*this, {0, text_.size()});
    assign(std::move(out));
}

void NormalizedText::replace(const Regex& pattern, std::string_view replacement) {
    NormalizedText out;
    std::size_t done = 0;
    bool changed = false;
    pattern.for_each(text_, [&](Range match) {
        changed = true;
        out.append(*this, {done, match.begin});
        Offsets from;
        if (match.end > 0) {
            const std::size_t size = decode_before(text_, match.end).size;
            from = original({match.end - size, match.end});
        }
        check_growth(out.text_.size() + replacement.size());
        out.append(replacement, from);
        done = match.end;
    });
    if (!changed) return;
    out.append(*this, {done, text_.size()});
    assign(std::move(out));
}

void NormalizedText::crop(Range part) {
    if (part.begin == 0 && part.end == text_.size()) return;
    NormalizedText selected(*this, part);
    assign(std::move(selected));
}

}  // namespace declivity::text
