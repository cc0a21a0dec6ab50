#include "text_stream.hpp"

#include <algorithm>

namespace declivity::text {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD: invalid bytes, or an incomplete character

/// Length of a text without an incomplete character at its end.
std::size_t complete_size(std::string_view text) {
    while (text.ends_with(kReplacement)) text.remove_suffix(kReplacement.size());
    // The first byte of the last character determines its length.
    for (std::size_t back = 1; back <= std::min<std::size_t>(4, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xC0U) == 0x80U) continue;
        const std::size_t size = byte < 0x80U ? 1 : byte < 0xE0U ? 2 : byte < 0xF0U ? 3 : 4;
        return size > back ? text.size() - back : text.size();
    }
    return text.size();
}

/// Number of bytes at the end of a text that are a prefix of a stop string.
std::size_t partial_stop_size(std::string_view text, std::string_view stop) {
    for (std::size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size)
        if (text.ends_with(stop.substr(0, size))) return size;
    return 0;
}

}  // namespace

bool TextStream::update(std::span<const std::int64_t> tokens) {
    if (!options_->decode) return false;
    text_ = options_->decode(tokens);
    std::size_t first = std::string::npos;
    for (const std::string& stop : options_->stop_strings) first = std::min(first, text_.find(stop));
    if (first == std::string::npos) return false;
    text_.resize(first);
    return true;
}

std::string_view TextStream::take(bool last) {
    std::size_t end = text_.size();
    if (!last) {
        end = complete_size(text_);
        std::size_t withheld = 0;
        for (const std::string& stop : options_->stop_strings)
            withheld = std::max(withheld, partial_stop_size(std::string_view(text_).substr(0, end), stop));
        end -= withheld;
    }
    if (end <= emitted_) return {};
    const std::string_view out = std::string_view(text_).substr(emitted_, end - emitted_);
    emitted_ = end;
    return out;
}

}  // namespace declivity::text
