// Layer 7, private. State of a tokenizer.
#pragma once

#include <declivity/text/tokenizer.hpp>

#include "added_vocabulary.hpp"
#include "decoder.hpp"
#include "model.hpp"
#include "normalizer.hpp"
#include "post_processor.hpp"
#include "pre_tokenizer.hpp"

namespace declivity::text {

/// Maximum number of tokens after padding; each takes about 100 bytes of an encoding.
inline constexpr std::int64_t kMaxPaddedLength = INT64_C(1) << 20;

struct Tokenizer::State {
    // JSON descriptions of the components, null for none, and the components.
    Json normalizer_json, pre_tokenizer_json, post_processor_json, decoder_json;
    std::shared_ptr<const Normalizer> normalizer;
    std::shared_ptr<const PreTokenizer> pre_tokenizer;
    std::shared_ptr<const Model> model;
    std::shared_ptr<const PostProcessor> post_processor;
    std::shared_ptr<const Decoder> decoder;
    AddedVocabulary added;
    std::optional<Truncation> truncation;
    std::optional<Padding> padding;

    /// Part of a split text: text between added tokens, or such a token.
    struct Part {
        Pieces pieces;
        std::optional<Id> token;  ///< an added token, instead of pieces
    };
    [[nodiscard]] std::vector<Part> parts_of(std::string_view text) const;
    [[nodiscard]] Encoding encode(std::string_view text, std::int64_t type, const EncodeOptions& options) const;
    /// The final steps: truncation and special tokens.
    [[nodiscard]] Encoding finish(std::vector<Encoding> encodings, std::span<const std::string_view> texts,
                                  const EncodeOptions& options) const;
    /// All steps, for one text or a pair.
    [[nodiscard]] Encoding encode(std::span<const std::string_view> texts, const EncodeOptions& options) const;
    void pad_all(std::vector<Encoding>& encodings) const;
};

/// Creates the components that a tokenizer.json describes. @throws FormatError
std::shared_ptr<Tokenizer::State> read_tokenizer(const JsonValue& description);

}  // namespace declivity::text
