#include "pre_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "normalizer.hpp"

namespace declivity::text {
namespace {

/// Treatment of the matches when a text is split.
enum class Behavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const JsonValue& value) {
    constexpr std::array<std::pair<std::string_view, Behavior>, 5> kNames{
        {{"Removed", Behavior::removed},
         {"Isolated", Behavior::isolated},
         {"MergedWithPrevious", Behavior::merged_with_previous},
         {"MergedWithNext", Behavior::merged_with_next},
         {"Contiguous", Behavior::contiguous}}};
    for (const auto& [name, behavior] : kNames)
        if (value.string() == name) return behavior;
    value.fail(fmt::format(
        "'{}' is not a behavior: expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
        value.string()));
}

struct Part {
    Range range;
    bool match = false;
};
using Parts = std::vector<Part>;
/// Appends the parts of a piece, which cover it in order.
using Find = std::function<void(std::string_view piece, Parts& parts)>;

Find find_regex(Regex regex, bool invert) {
    return [regex = std::move(regex), invert](std::string_view piece, Parts& parts) {
        std::size_t done = 0;
        regex.for_each(piece, [&](Range match) {
            if (done != match.begin) parts.push_back({{done, match.begin}, invert});
            parts.push_back({match, !invert});
            done = match.end;
        });
        if (done != piece.size()) parts.push_back({{done, piece.size()}, invert});
    };
}

/// Each character of a class is a match of its own.
template <class Predicate>
Find find_characters(Predicate predicate) {
    return [predicate](std::string_view piece, Parts& parts) {
        std::size_t done = 0;
        for (std::size_t pos = 0; pos < piece.size();) {
            const Decoded decoded = decode_at(piece, pos);
            if (predicate(decoded.c)) {
                if (done < pos) parts.push_back({{done, pos}, false});
                parts.push_back({{pos, pos + decoded.size}, true});
                done = pos + decoded.size;
            }
            pos += decoded.size;
        }
        if (done < piece.size()) parts.push_back({{done, piece.size()}, false});
    };
}

/// Joins parts according to the behavior, and appends the result, shifted by `base`.
void merge_parts(const Parts& parts, Behavior behavior, std::size_t base, std::vector<Range>& out) {
    const std::size_t first = out.size();
    const auto put = [&](Range range) { out.push_back({range.begin + base, range.end + base}); };
    bool previous_match = false;
    if (behavior == Behavior::merged_with_next) {
        // From the right: a match is joined with the part after it.
        for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
            if (part->match && !previous_match && out.size() > first) out.back().begin = part->range.begin + base;
            else put(part->range);
            previous_match = part->match;
        }
        std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
    } else {
        for (const Part& part : parts) {
            const bool merges =
                out.size() > first && ((behavior == Behavior::merged_with_previous && part.match && !previous_match) ||
                                       (behavior == Behavior::contiguous && part.match == previous_match));
            if (merges) out.back().end = part.range.end + base;
            else if (behavior != Behavior::removed || !part.match) put(part.range);
            previous_match = part.match;
        }
    }
    std::erase_if(out, [](const Range& range) { return range.begin == range.end; });
}

class Split : public PreTokenizer {
  public:
    Split(Find find, Behavior behavior) : find_(std::move(find)), behavior_(behavior) {}
    void apply(Pieces& pieces) const override {
        std::vector<Range> out, piece_ranges;
        out.reserve(pieces.text.str().size() / 4 + 4);
        Parts parts;
        for (const Range& piece : pieces.pieces) {
            parts.clear();
            find_(pieces.text.view(piece), parts);
            piece_ranges.clear();
            merge_parts(parts, behavior_, piece.begin, piece_ranges);
            out.insert(out.end(), piece_ranges.begin(), piece_ranges.end());
        }
        pieces.pieces = std::move(out);
    }

  private:
    Find find_;
    Behavior behavior_;
};

std::shared_ptr<const PreTokenizer> split(Find find, Behavior behavior) {
    return std::make_shared<const Split>(std::move(find), behavior);
}

/// Rewrites the text piece by piece: write(piece's text, its range, out) appends the replacement.
template <class Write>
void rewrite(Pieces& pieces, const Write& write) {
    NormalizedText out;
    out.reserve(pieces.text.str().size() + 16);
    for (Range& piece : pieces.pieces) {
        const std::size_t begin = out.str().size();
        write(piece, out);
        piece = {begin, out.str().size()};
    }
    pieces.text.assign(std::move(out));
    std::erase_if(pieces.pieces, [](const Range& range) { return range.begin == range.end; });
}

/// Span of the first character of a piece.
Offsets first_character_span(const NormalizedText& text, Range piece) {
    return text.original({piece.begin, piece.begin + bytes_of(static_cast<unsigned char>(text.str()[piece.begin]))});
}

class ByteLevelPreTokenizer : public PreTokenizer {
  public:
    ByteLevelPreTokenizer(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space) {
        if (use_regex) split_ = split(find_regex(Regex(kByteLevelPattern), false), Behavior::isolated);
    }
    void apply(Pieces& pieces) const override {
        if (add_prefix_space_)
            rewrite(pieces, [&](Range piece, NormalizedText& out) {
                if (pieces.text.str()[piece.begin] != ' ') out.append(" ", first_character_span(pieces.text, piece));
                out.append(pieces.text, piece);
            });
        if (split_) split_->apply(pieces);
        Pieces encoded = to_byte_level(pieces.text, pieces.pieces);
        pieces.text.assign(std::move(encoded.text));
        pieces.pieces = std::move(encoded.pieces);
    }

  private:
    bool add_prefix_space_;
    std::shared_ptr<const PreTokenizer> split_;
};

class MetaspacePreTokenizer : public PreTokenizer {
  public:
    explicit MetaspacePreTokenizer(const JsonValue& description)
        : replacement_(utf8(description.has("replacement") ? description["replacement"].character() : U'\u2581')) {
        std::string scheme = description.string("prepend_scheme", "always");
        // Files of earlier versions of the format.
        if (!description.boolean("add_prefix_space", true)) scheme = "never";
        if (scheme != "always" && scheme != "first" && scheme != "never")
            description["prepend_scheme"].fail(fmt::format("expected always, first or never, got '{}'", scheme));
        always_ = scheme == "always";
        first_ = scheme == "first";
        const char32_t c = decode_at(replacement_, 0).c;
        if (description.boolean("split", true))
            split_ = split(find_characters([c](char32_t item) { return item == c; }), Behavior::merged_with_next);
    }
    void apply(Pieces& pieces) const override {
        rewrite(pieces, [&](Range piece, NormalizedText& out) {
            const std::string_view text = pieces.text.view(piece);
            const bool has_prefix = text.starts_with(replacement_) || text.starts_with(' ');
            if (!has_prefix && (always_ || (first_ && first_character_span(pieces.text, piece).begin == 0)))
                out.append(replacement_, first_character_span(pieces.text, piece));
            std::size_t done = piece.begin;
            for (std::size_t pos = piece.begin; pos < piece.end; ++pos) {
                if (pieces.text.str()[pos] != ' ') continue;
                out.append(pieces.text, {done, pos});
                out.append(replacement_, pieces.text.original({pos, pos + 1}));
                done = pos + 1;
            }
            out.append(pieces.text, {done, piece.end});
        });
        if (split_) split_->apply(pieces);
    }

  private:
    std::string replacement_;
    bool always_ = false, first_ = false;
    std::shared_ptr<const PreTokenizer> split_;
};

class PreTokenizerSequence : public PreTokenizer {
  public:
    explicit PreTokenizerSequence(std::vector<std::shared_ptr<const PreTokenizer>> parts) : parts_(std::move(parts)) {}
    void apply(Pieces& pieces) const override {
        for (const auto& part : parts_) part->apply(pieces);
    }

  private:
    std::vector<std::shared_ptr<const PreTokenizer>> parts_;
};

/// Words and runs of characters that are neither word characters nor spaces: \w+|[^\w\s]+.
void find_words(std::string_view piece, Parts& parts) {
    const auto kind = [](char32_t c) { return is_word(c) ? 1 : is_whitespace(c) ? 0 : 2; };
    for (std::size_t pos = 0, begin = 0; pos < piece.size();) {
        const Decoded decoded = decode_at(piece, pos);
        const int current_kind = kind(decoded.c);
        pos += decoded.size;
        if (pos < piece.size() && kind(decode_at(piece, pos).c) == current_kind) continue;
        parts.push_back({{begin, pos}, current_kind == 0});
        begin = pos;
    }
}

Find find_lengths(std::size_t length) {
    return [length](std::string_view piece, Parts& parts) {
        std::size_t begin = 0, characters = 0;
        for (std::size_t pos = 0; pos < piece.size();) {
            pos += bytes_of(static_cast<unsigned char>(piece[pos]));
            if (++characters % length != 0 && pos < piece.size()) continue;
            parts.push_back({{begin, pos}, false});
            begin = pos;
        }
    };
}

}  // namespace

std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& description) {
    const std::string& type = description.type();
    if (type == "Sequence") {
        std::vector<std::shared_ptr<const PreTokenizer>> parts;
        const JsonValue list = description["pretokenizers"];
        for (std::size_t i = 0; i < list.size(); ++i) parts.push_back(make_pre_tokenizer(list.at(i)));
        return std::make_shared<const PreTokenizerSequence>(std::move(parts));
    }
    if (type == "ByteLevel")
        return std::make_shared<const ByteLevelPreTokenizer>(description.boolean("add_prefix_space", true),
                                                             description.boolean("use_regex", true));
    if (type == "Metaspace") return std::make_shared<const MetaspacePreTokenizer>(description);
    if (type == "Whitespace") return split(find_words, Behavior::removed);
    if (type == "WhitespaceSplit") return split(find_characters(is_whitespace), Behavior::removed);
    if (type == "BertPreTokenizer")
        return std::make_shared<const PreTokenizerSequence>(
            std::vector{split(find_characters(is_whitespace), Behavior::removed),
                        split(find_characters(is_punctuation), Behavior::isolated)});
    if (type == "Digits")
        return split(find_characters(is_numeric),
                     description.boolean("individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
    if (type == "Punctuation")
        return split(find_characters(is_punctuation),
                     description.has("behavior") ? behavior_of(description["behavior"]) : Behavior::isolated);
    if (type == "CharDelimiterSplit")
        return split(
            find_characters([c = description["delimiter"].character()](char32_t character) { return character == c; }),
            Behavior::removed);
    if (type == "Split")
        return split(find_regex(pattern_of(description["pattern"]), description.boolean("invert", false)),
                     behavior_of(description["behavior"]));
    if (type == "FixedLength")
        return split(find_lengths(static_cast<std::size_t>(description.integer("length", 1, INT64_C(1) << 40, 5))),
                     Behavior::isolated);
    description["type"].fail(fmt::format("'{}' is not a known pre-tokenizer", type));
}

}  // namespace declivity::text
