#include "post_processor.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "byte_level.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

Encoding special(const std::vector<std::pair<std::int64_t, std::string>>& tokens, std::int64_t type) {
    Encoding out;
    for (const auto& [id, token] : tokens) {
        out.ids.push_back(id);
        out.tokens.push_back(token);
    }
    const std::size_t count = tokens.size();
    out.offsets.assign(count, Offsets{});
    out.type_ids.assign(count, type);
    out.attention_mask.assign(count, 1);
    out.special_tokens_mask.assign(count, 1);
    out.word_ids.assign(count, -1);
    out.sequence_ids.assign(count, -1);
    return out;
}

using Texts = std::span<const std::string_view>;

/// Position so many characters after a position, in arbitrary bytes.
std::size_t advance(std::string_view text, std::size_t pos, std::size_t characters) {
    for (; characters > 0 && pos < text.size(); --characters) pos += decode_any(text, pos).size;
    return pos;
}

/// Position so many characters before a position; none if there are fewer.
std::optional<std::size_t> retreat(std::string_view text, std::size_t pos, std::size_t characters) {
    for (; characters > 0; --characters) {
        if (pos == 0) return std::nullopt;
        do --pos;
        while (pos > 0 && (static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80);
    }
    return pos;
}

/// Excludes the spaces around tokens from their offsets.
void trim_offsets(Encoding& encoding, Texts texts, bool add_prefix_space) {
    for (Encoding& item : encoding.overflowing) trim_offsets(item, texts, add_prefix_space);
    for (std::size_t i = 0; i < encoding.size(); ++i) {
        if (encoding.sequence_ids[i] < 0) continue;
        const std::string_view text = texts[static_cast<std::size_t>(encoding.sequence_ids[i])];
        const std::string& token = encoding.tokens[i];
        Offsets& span = encoding.offsets[i];
        const auto is_space = [](char32_t c) { return c == byte_character(' ') || is_whitespace(c); };
        std::size_t leading = 0, trailing = 0;
        for (std::size_t pos = 0; pos < token.size() && is_space(decode_at(token, pos).c);
             pos += decode_at(token, pos).size)
            ++leading;
        for (std::size_t pos = token.size(); pos > 0 && is_space(decode_before(token, pos).c);
             pos -= decode_before(token, pos).size)
            ++trailing;
        // One space before the first word may have been added, and is not part of the text.
        if (leading == 1 && (i == 0 || span.begin == 0) && add_prefix_space) leading = 0;
        if (leading > 0) span.begin = std::min(advance(text, span.begin, leading), span.end);
        if (trailing > 0)
            if (const auto end = retreat(text, span.end, trailing)) span.end = std::max(*end, span.begin);
    }
}

class ByteLevel : public PostProcessor {
  public:
    ByteLevel(bool trim, bool add_prefix_space) : trim_(trim), add_prefix_space_(add_prefix_space) {}
    [[nodiscard]] std::size_t added_count(bool) const override { return 0; }
    void apply(std::vector<Encoding>& encodings, Texts texts, bool) const override {
        if (trim_)
            for (Encoding& encoding : encodings) trim_offsets(encoding, texts, add_prefix_space_);
        for (std::size_t i = 0; i < encodings.size(); ++i) set_sequence(encodings[i], static_cast<std::int64_t>(i));
    }

  private:
    bool trim_, add_prefix_space_;
};

/// Texts and special tokens in the order of a template.
class Template : public PostProcessor {
  public:
    struct Piece {
        std::size_t sequence = 0;  ///< if it is not a special token
        std::int64_t type = 0;
        std::vector<std::pair<std::int64_t, std::string>> tokens = {};
        bool special = false;
    };
    Template(std::vector<Piece> single, std::vector<Piece> pair) : single_(std::move(single)), pair_(std::move(pair)) {}

    [[nodiscard]] std::size_t added_count(bool pair) const override {
        std::size_t count = 0;
        for (const Piece& piece : pair ? pair_ : single_) count += piece.tokens.size();
        return count;
    }
    void apply(std::vector<Encoding>& encodings, Texts, bool add_special_tokens) const override {
        std::vector<Encoding> out;
        for (const Piece& piece : encodings.size() == 2 ? pair_ : single_) {
            if (piece.special) {
                if (add_special_tokens) out.push_back(special(piece.tokens, piece.type));
                continue;
            }
            if (piece.sequence >= encodings.size()) continue;
            out.push_back(encodings[piece.sequence]);
            set_type(out.back(), piece.type);
            set_sequence(out.back(), static_cast<std::int64_t>(piece.sequence));
        }
        encodings = std::move(out);
    }

  private:
    std::vector<Piece> single_, pair_;
};

/// BERT's [CLS] A [SEP] B [SEP], or RoBERTa's <s> A </s></s> B </s>, whose types are all 0.
class BertPostProcessor : public PostProcessor {
  public:
    using Token = std::pair<std::int64_t, std::string>;
    BertPostProcessor(Token cls, Token sep, bool roberta, bool trim, bool add_prefix_space)
        : cls_(std::move(cls)),
          sep_(std::move(sep)),
          roberta_(roberta),
          trim_(trim),
          add_prefix_space_(add_prefix_space) {}

    [[nodiscard]] std::size_t added_count(bool pair) const override { return pair ? (roberta_ ? 4 : 3) : 2; }
    void apply(std::vector<Encoding>& encodings, Texts texts, bool add_special_tokens) const override {
        std::vector<Encoding> out;
        for (std::size_t i = 0; i < encodings.size(); ++i) {
            Encoding& encoding = encodings[i];
            if (trim_) trim_offsets(encoding, texts, add_prefix_space_);
            const std::int64_t type = roberta_ ? 0 : static_cast<std::int64_t>(i);
            if (roberta_ || add_special_tokens) set_type(encoding, type);
            set_sequence(encoding, static_cast<std::int64_t>(i));
            if (add_special_tokens && i == 0) out.push_back(special({cls_}, type));
            if (add_special_tokens && i == 1 && roberta_) out.push_back(special({sep_}, type));
            out.push_back(std::move(encoding));
            if (add_special_tokens) out.push_back(special({sep_}, type));
        }
        encodings = std::move(out);
    }

  private:
    Token cls_, sep_;
    bool roberta_, trim_, add_prefix_space_;
};

class Sequence : public PostProcessor {
  public:
    explicit Sequence(std::vector<std::shared_ptr<const PostProcessor>> parts) : parts_(std::move(parts)) {}
    [[nodiscard]] std::size_t added_count(bool pair) const override {
        std::size_t count = 0;
        for (const auto& part : parts_) count += part->added_count(pair);
        return count;
    }
    void apply(std::vector<Encoding>& encodings, Texts texts, bool add_special_tokens) const override {
        for (const auto& part : parts_) part->apply(encodings, texts, add_special_tokens);
    }

  private:
    std::vector<std::shared_ptr<const PostProcessor>> parts_;
};

constexpr std::int64_t kMaxId = UINT32_MAX;

std::vector<Template::Piece> read_template(const JsonValue& list, const JsonValue& tokens) {
    // The template multiplies the length of an encoding.
    constexpr std::size_t kMaxTexts = 16, kMaxTokens = std::size_t{1} << 16;
    std::size_t sequences = 0, specials = 0;
    std::vector<Template::Piece> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const JsonValue entry = list.at(i);
        Template::Piece piece;
        piece.special = entry.has("SpecialToken");
        const JsonValue content = entry[piece.special ? "SpecialToken" : "Sequence"];
        piece.type = content.integer("type_id", 0, kMaxId, 0);
        const std::string& id = content["id"].string();
        if (piece.special) {
            const JsonValue token = tokens.at(id);
            const JsonValue ids = token["ids"], texts = token["tokens"];
            if (ids.size() != texts.size())
                token.fail(fmt::format("expected as many tokens as ids, got {} and {}", texts.size(), ids.size()));
            if ((specials += ids.size()) > kMaxTokens)
                entry.fail(fmt::format("expected a template of at most {} special tokens, got more", kMaxTokens));
            for (std::size_t k = 0; k < ids.size(); ++k)
                piece.tokens.emplace_back(ids.at(k).integer(0, kMaxId), texts.at(k).string());
        } else {
            if (++sequences > kMaxTexts)
                entry.fail(fmt::format("expected a template of at most {} texts, got more", kMaxTexts));
            if (id != "A" && id != "B") content["id"].fail(fmt::format("expected A or B, got '{}'", id));
            piece.sequence = id == "B" ? 1 : 0;
        }
        out.push_back(std::move(piece));
    }
    return out;
}

}  // namespace

std::shared_ptr<const PostProcessor> make_post_processor(const JsonValue& description) {
    const std::string& type = description.type();
    if (type == "Sequence") {
        std::vector<std::shared_ptr<const PostProcessor>> parts;
        const JsonValue list = description["processors"];
        for (std::size_t i = 0; i < list.size(); ++i) parts.push_back(make_post_processor(list.at(i)));
        return std::make_shared<const Sequence>(std::move(parts));
    }
    if (type == "ByteLevel")
        return std::make_shared<const ByteLevel>(description.boolean("trim_offsets", true),
                                                 description.boolean("add_prefix_space", true));
    if (type == "TemplateProcessing")
        return std::make_shared<const Template>(read_template(description["single"], description["special_tokens"]),
                                                read_template(description["pair"], description["special_tokens"]));
    if (type == "BertProcessing" || type == "RobertaProcessing") {
        const bool roberta = type == "RobertaProcessing";
        const auto token = [&](const char* name) {
            return BertPostProcessor::Token(description[name].at(1).integer(0, kMaxId),
                                            description[name].at(std::size_t{0}).string());
        };
        return std::make_shared<const BertPostProcessor>(token("cls"), token("sep"), roberta,
                                                         roberta && description.boolean("trim_offsets", true),
                                                         description.boolean("add_prefix_space", true));
    }
    description["type"].fail(fmt::format("'{}' is not a known post-processor", type));
}

}  // namespace declivity::text
