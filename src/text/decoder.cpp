#include "decoder.hpp"

#include <functional>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "bpe.hpp"
#include "byte_level.hpp"
#include "normalizer.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

using Tokens = std::vector<std::string>;

// Consecutive decoders may each double a text.
constexpr std::size_t kMaxInsertedBytes = std::size_t{64} << 20;

class Function : public Decoder {
  public:
    explicit Function(std::function<void(Tokens&)> function) : function_(std::move(function)) {}
    void apply(Tokens& tokens) const override { function_(tokens); }

  private:
    std::function<void(Tokens&)> function_;
};

std::shared_ptr<const Decoder> function(std::function<void(Tokens&)> implementation) {
    return std::make_shared<const Function>(std::move(implementation));
}

void replace_all(std::string& text, std::string_view pattern, std::string_view replacement) {
    if (pattern.empty()) return;
    std::string out;
    std::size_t done = 0;
    for (std::size_t pos = text.find(pattern); pos != std::string::npos; pos = text.find(pattern, done)) {
        out.append(text, done, pos - done);
        out += replacement;
        done = pos + pattern.size();
    }
    if (done == 0) return;
    out.append(text, done);
    text = std::move(out);
}

/// Removes spaces before punctuation and English contractions.
void clean_up(std::string& text) {
    for (const auto& [pattern, replacement] : {std::pair<std::string_view, std::string_view>{" .", "."},
                                               {" ?", "?"},
                                               {" !", "!"},
                                               {" ,", ","},
                                               {" ' ", "'"},
                                               {" n't", "n't"},
                                               {" 'm", "'m"},
                                               {" do not", " don't"},
                                               {" 's", "'s"},
                                               {" 've", "'ve"},
                                               {" 're", "'re"}})
        replace_all(text, pattern, replacement);
}

std::string concatenate(const Tokens& tokens) {
    std::string out;
    for (const std::string& token : tokens) out += token;
    return out;
}

void byte_level(Tokens& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) bytes += from_byte_level(token);
    tokens = {to_valid(bytes)};
}

void byte_fallback(Tokens& tokens) {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
        if (bytes.empty()) return;
        if (is_valid(bytes)) out.push_back(bytes);
        else out.insert(out.end(), bytes.size(), utf8(kReplacementCharacter));
        bytes.clear();
    };
    for (std::string& token : tokens) {
        if (const auto byte = byte_of_token(token)) {
            bytes.push_back(static_cast<char>(*byte));
            continue;
        }
        flush();
        out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
}

struct WordPiece {
    std::string prefix;
    bool cleanup;
    void operator()(Tokens& tokens) const {
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (i > 0) {
                if (tokens[i].starts_with(prefix)) tokens[i].erase(0, prefix.size());
                else tokens[i] = std::string(1, ' ').append(tokens[i]);
            }
            if (cleanup) clean_up(tokens[i]);
        }
    }
};

struct Metaspace {
    std::string replacement;
    bool strip_first;
    void operator()(Tokens& tokens) const {
        for (std::size_t i = 0; i < tokens.size(); ++i)
            replace_all(tokens[i], replacement, i == 0 && strip_first ? "" : " ");
    }
};

struct Ctc {
    std::string pad, delimiter;
    bool cleanup;
    void operator()(Tokens& tokens) const {
        Tokens out;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (i > 0 && tokens[i] == tokens[i - 1]) continue;
            std::string token = tokens[i];
            replace_all(token, pad, "");
            if (cleanup) {
                clean_up(token);
                replace_all(token, delimiter, " ");
            }
            if (!token.empty()) out.push_back(std::move(token));
        }
        tokens = std::move(out);
    }
};

struct Strip {
    char32_t content;
    std::int64_t start, stop;
    void operator()(Tokens& tokens) const {
        for (std::string& token : tokens) {
            Range range{0, token.size()};
            for (std::int64_t i = 0;
                 i < start && range.begin < token.size() && decode_at(token, range.begin).c == content; ++i)
                range.begin += decode_at(token, range.begin).size;
            for (std::int64_t i = 0;
                 i < stop && range.end > range.begin && decode_before(token, range.end).c == content; ++i)
                range.end -= decode_before(token, range.end).size;
            token = token.substr(range.begin, range.end - range.begin);
        }
    }
};

}  // namespace

std::shared_ptr<const Decoder> make_decoder(const JsonValue& description) {
    const std::string& type = description.type();
    if (type == "Sequence") {
        std::vector<std::shared_ptr<const Decoder>> parts;
        const JsonValue list = description["decoders"];
        for (std::size_t i = 0; i < list.size(); ++i) parts.push_back(make_decoder(list.at(i)));
        return function([parts = std::move(parts)](Tokens& tokens) {
            for (const auto& part : parts) part->apply(tokens);
        });
    }
    if (type == "ByteLevel") return function(byte_level);
    if (type == "ByteFallback") return function(byte_fallback);
    if (type == "Fuse") return function([](Tokens& tokens) { tokens = {concatenate(tokens)}; });
    if (type == "WordPiece")
        return function(WordPiece{description.string("prefix", "##"), description.boolean("cleanup", true)});
    if (type == "Metaspace")
        return function(
            Metaspace{utf8(description.has("replacement") ? description["replacement"].character() : U'\u2581'),
                      description.string("prepend_scheme", "always") != "never" &&
                          description.boolean("add_prefix_space", true)});
    if (type == "BPEDecoder")
        return function([suffix = description.string("suffix", "</w>")](Tokens& tokens) {
            for (std::size_t i = 0; i < tokens.size(); ++i)
                replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
        });
    if (type == "CTC")
        return function(Ctc{description.string("pad_token", "<pad>"), description.string("word_delimiter_token", "|"),
                            description.boolean("cleanup", true)});
    if (type == "Replace")
        return function(
            [pattern = pattern_of(description["pattern"]), content = description["content"].string()](Tokens& tokens) {
                std::size_t inserted_bytes = 0;
                for (std::string& token : tokens) {
                    std::string out;
                    std::size_t done = 0;
                    pattern.for_each(token, [&](Range match) {
                        out.append(token, done, match.begin - done);
                        inserted_bytes += content.size();
                        if (inserted_bytes > kMaxInsertedBytes)
                            throw ValueError(
                                fmt::format("Tokenizer: expected a decoder that inserts at most {} bytes, got "
                                            "more",
                                            kMaxInsertedBytes));
                        out += content;
                        done = match.end;
                    });
                    out.append(token, done);
                    token = std::move(out);
                }
            });
    if (type == "Strip")
        return function(Strip{description["content"].character(), description.integer("start", 0, INT64_C(1) << 40, 0),
                              description.integer("stop", 0, INT64_C(1) << 40, 0)});
    description["type"].fail(fmt::format("'{}' is not a known decoder", type));
}

}  // namespace declivity::text
