#include "normalizer.hpp"

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "byte_level.hpp"

namespace declivity::text {
namespace {

/// A normalizer implemented by a function.
class FunctionNormalizer : public Normalizer {
  public:
    explicit FunctionNormalizer(std::function<void(NormalizedText&)> function) : function_(std::move(function)) {}
    void apply(NormalizedText& text) const override { function_(text); }

  private:
    std::function<void(NormalizedText&)> function_;
};

std::shared_ptr<const Normalizer> function(std::function<void(NormalizedText&)> implementation) {
    return std::make_shared<const FunctionNormalizer>(std::move(implementation));
}

std::shared_ptr<const Normalizer> form(NormalForm normal_form) {
    return function([normal_form](NormalizedText& text) {
        bool ascii = true;
        for (const char c : text.str()) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
        if (!ascii) text.transform(normalize(text.str(), normal_form));
    });
}

void lowercase(NormalizedText& text) {
    text.map([](char32_t c, std::u32string& out) { append_lower(out, c); });
}

template <class Predicate>
void drop(NormalizedText& text, const Predicate& predicate) {
    text.map([&](char32_t c, std::u32string& out) {
        if (!predicate(c)) out.push_back(c);
    });
}

void strip(NormalizedText& text, bool left, bool right) {
    Range part{0, text.str().size()};
    while (left && part.begin < part.end && is_whitespace(decode_at(text.str(), part.begin).c))
        part.begin += decode_at(text.str(), part.begin).size;
    while (right && part.begin < part.end && is_whitespace(decode_before(text.str(), part.end).c))
        part.end -= decode_before(text.str(), part.end).size;
    text.crop(part);
}

struct Bert {
    bool clean_text, chinese, strip_accents, lower;

    void operator()(NormalizedText& text) const {
        if (clean_text || chinese)
            text.map([&](char32_t c, std::u32string& out) {
                const bool space = is_whitespace(c);
                if (clean_text &&
                    (c == 0 || c == kReplacementCharacter || (c != '\t' && c != '\n' && c != '\r' && is_other(c))))
                    return;
                if (chinese && is_chinese(c)) {
                    out += {U' ', c, U' '};
                    return;
                }
                out.push_back(clean_text && space ? U' ' : c);
            });
        if (strip_accents) {
            form(NormalForm::nfd)->apply(text);
            drop(text, is_nonspacing_mark);
        }
        if (lower) lowercase(text);
    }
};

/// The rule that sentencepiece's training calls nmt.
void nmt(NormalizedText& text) {
    text.map([](char32_t c, std::u32string& out) {
        if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
        const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
        out.push_back(space ? U' ' : c);
    });
}

}  // namespace

std::string escape_regex(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("\\.+*?()|[]{}^$#&-~").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

Regex pattern_of(const JsonValue& pattern) {
    pattern.require_object();
    const bool literal = pattern.has("String");
    if (!literal && !pattern.has("Regex")) pattern.fail("expected {\"String\": ...} or {\"Regex\": ...}");
    const JsonValue value = pattern[literal ? "String" : "Regex"];
    try {
        return Regex(literal ? escape_regex(value.string()) : value.string());
    } catch (const ValueError& error) {
        value.fail(error.what());
    }
}

std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& description) {
    const std::string& type = description.type();
    if (type == "Sequence") {
        std::vector<std::shared_ptr<const Normalizer>> parts;
        const JsonValue list = description["normalizers"];
        for (std::size_t i = 0; i < list.size(); ++i) parts.push_back(make_normalizer(list.at(i)));
        return function([parts = std::move(parts)](NormalizedText& text) {
            for (const auto& part : parts) part->apply(text);
        });
    }
    constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms{
        {{"NFC", NormalForm::nfc}, {"NFD", NormalForm::nfd}, {"NFKC", NormalForm::nfkc}, {"NFKD", NormalForm::nfkd}}};
    for (const auto& [name, normal_form] : kForms)
        if (type == name) return form(normal_form);
    if (type == "Lowercase") return function(lowercase);
    if (type == "StripAccents") return function([](NormalizedText& text) { drop(text, is_mark); });
    if (type == "Strip")
        return function(
            [left = description.boolean("strip_left", true),
             right = description.boolean("strip_right", true)](NormalizedText& text) { strip(text, left, right); });
    if (type == "Prepend")
        return function([front = description["prepend"].string()](NormalizedText& text) { text.prepend(front); });
    if (type == "Replace")
        return function([pattern = pattern_of(description["pattern"]), content = description["content"].string()](
                            NormalizedText& text) { text.replace(pattern, content); });
    if (type == "ByteLevel")
        return function([](NormalizedText& text) {
            text.assign(std::move(to_byte_level(text, {{0, text.str().size()}}).text));
        });
    if (type == "Nmt") return function(nmt);
    if (type == "Precompiled") return make_precompiled(description);
    if (type == "BertNormalizer") {
        const bool lower = description.boolean("lowercase", true);
        return function(Bert{description.boolean("clean_text", true), description.boolean("handle_chinese_chars", true),
                             description.boolean("strip_accents", lower), lower});
    }
    description["type"].fail(fmt::format("'{}' is not a known normalizer", type));
}

}  // namespace declivity::text
