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
constexpr std::size_t kLongestText = INT32_MAX;

}  // namespace

NormalizedText::NormalizedText(std::string_view original, std::size_t base) : base_(base) {
    if (original.size() > kLongestText)
        throw ValueError(
            fmt::format("Tokenizer: expected a text of at most {} bytes, got {}", kLongestText, original.size()));
    most_ = std::min(kMaxGrowth * original.size() + kFreeGrowth, kLongestText);
    if (is_valid(original)) {
        text_ = original;
        return;
    }
    reserve(original.size() + 16);
    for (std::size_t at = 0; at < original.size();) {
        const Decoded one = decode_any(original, at);
        append(one.valid ? std::string(original.substr(at, one.size)) : utf8(one.c), {base + at, base + at + one.size});
        at += one.size;
    }
}

NormalizedText::NormalizedText(const NormalizedText& whole, Range part) : text_(whole.view(part)), most_(whole.most_) {
    if (whole.spans_.empty()) base_ = whole.base_ + part.begin;
    else
        spans_.assign(whole.spans_.begin() + static_cast<std::ptrdiff_t>(part.begin),
                      whole.spans_.begin() + static_cast<std::ptrdiff_t>(part.end));
}

void NormalizedText::check_growth(std::size_t bytes) const {
    if (bytes > most_)
        throw ValueError(
            fmt::format("Tokenizer: expected a normalized text of at most {} bytes, got {}", most_, bytes));
}

void NormalizedText::assign(NormalizedText&& other) {
    check_growth(other.text_.size());
    const std::size_t most = most_;
    *this = std::move(other);
    most_ = most;
}

void NormalizedText::expand() {
    spans_.reserve(text_.size());
    for (std::size_t at = 0; at < text_.size();) {
        const std::size_t size = bytes_of(static_cast<unsigned char>(text_[at]));
        spans_.insert(spans_.end(), size, Offsets{base_ + at, base_ + at + size});
        at += size;
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
    for (std::size_t at = part.begin; at < part.end;) {
        const std::size_t size = bytes_of(static_cast<unsigned char>(other.text_[at]));
        spans_.insert(spans_.end(), size, Offsets{other.base_ + at, other.base_ + at + size});
        at += size;
    }
}

void NormalizedText::transform(std::span<const Change> changes) {
    NormalizedText out;
    out.reserve(text_.size() + 16);
    std::size_t at = 0;  // of what remains to be replaced
    std::string characters;
    const auto size_at = [&] { return at < text_.size() ? bytes_of(static_cast<unsigned char>(text_[at])) : 0; };
    for (const Change& item : changes) {
        Offsets from;
        if (item.change > 0) {
            if (at > 0) from = original({at - 1, at});
            if (at > 0 && spans_.empty()) {  // if a byte of it is included, the whole character is
                const std::size_t size = decode_before(text_, at).size;
                from = {base_ + at - size, base_ + at};
            }
        } else {
            const std::size_t size = size_at();
            from = original({at, at + size});
            at += size;
            for (std::int32_t left = item.change; left < 0; ++left) at += size_at();
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
    std::u32string made;
    std::string characters;
    for (std::size_t at = 0; at < text_.size();) {
        const Decoded one = decode_at(text_, at);
        made.clear();
        function(one.c, made);
        characters.clear();
        for (const char32_t c : made) text::append(characters, c);
        if (!characters.empty()) out.append(characters, original({at, at + one.size}));
        at += one.size;
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

void NormalizedText::replace(const Regex& pattern, std::string_view by) {
    NormalizedText out;
    std::size_t done = 0;
    bool any = false;
    pattern.for_each(text_, [&](Range match) {
        any = true;
        out.append(*this, {done, match.begin});
        Offsets from;
        if (match.end > 0) {
            const std::size_t size = decode_before(text_, match.end).size;
            from = original({match.end - size, match.end});
        }
        check_growth(out.text_.size() + by.size());
        out.append(by, from);
        done = match.end;
    });
    if (!any) return;
    out.append(*this, {done, text_.size()});
    assign(std::move(out));
}

void NormalizedText::keep(Range part) {
    if (part.begin == 0 && part.end == text_.size()) return;
    NormalizedText kept(*this, part);
    assign(std::move(kept));
}

}  // namespace declivity::text
