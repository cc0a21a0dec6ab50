// Layer 7. Tokenizer: converts text to ids and back, as defined by Hugging Face's tokenizer.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/text/corpus.hpp>
#include <declivity/text/encoding.hpp>

namespace declivity::text {

/// @addtogroup text
/// @{

/// A token outside of the model's vocabulary, matched in the text before pre-tokenization.
struct AddedToken {
    std::string content;
    bool special = false;      ///< omitted by decode(..., skip_special_tokens = true)
    bool single_word = false;  ///< not matched inside of a word
    bool lstrip = false;       ///< includes the white space on its left
    bool rstrip = false;       ///< includes the white space on its right
    bool normalized = true;    ///< matched in the normalized text; special tokens are matched in the raw text
};

struct EncodeOptions {
    bool add_special_tokens = true;  ///< those of the post-processor, such as [CLS] and [SEP]
    /// For BPE models with dropout: seed for randomly skipping merges. If none, no merges are skipped.
    std::optional<std::uint64_t> dropout_seed = std::nullopt;
};

struct TrainOptions {
    std::int64_t vocab_size = 30000;  ///< maximum size including special tokens; at least 1
    std::int64_t min_frequency = 0;   ///< minimum count of a merged pair (BPE, WordPiece) or a word (WordLevel)
    /// Take the first ids, in order; must not be empty.
    std::vector<std::string> special_tokens = {};
    /// Characters that are in the vocabulary even if they do not occur.
    std::vector<std::string> initial_alphabet = {};
    std::optional<std::int64_t> limit_alphabet = std::nullopt;  ///< keeps only the most frequent characters
    /// Maximum number of characters of a token, for BPE and WordPiece models.
    std::optional<std::int64_t> max_token_length = std::nullopt;
    std::string unk_token = {};          ///< Unigram and WordLevel; that of the model if empty
    double shrinking_factor = 0.75;      ///< Unigram: fraction of pieces kept in each round
    std::int64_t n_sub_iterations = 2;   ///< Unigram: rounds of expectation maximisation before each pruning
    std::int64_t max_piece_length = 16;  ///< Unigram: maximum number of characters of a piece
    std::int64_t seed_size = 1000000;    ///< Unigram: initial number of pieces
};

/// Tokenizer pipeline: normalizer, pre-tokenizer, model, post-processor and decoder, with added tokens, truncation and
/// padding. Copies are cheap and share the model. const functions are thread-safe.
///
/// Texts are UTF-8; invalid sequences are replaced by U+FFFD. Results equal those of the Python package tokenizers,
/// except that offsets are in bytes.
class DECLIVITY_API Tokenizer {
  public:
    // A moved-from tokenizer keeps its parts: a move is a copy.
    Tokenizer(const Tokenizer&) = default;
    Tokenizer& operator=(const Tokenizer&) = default;
    /// Reads a tokenizer.json.
    /// Normalizers: BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, ByteLevel,
    /// Nmt, Precompiled, Sequence. Pre-tokenizers: ByteLevel, BertPreTokenizer, Whitespace, WhitespaceSplit, Split,
    /// Metaspace, Digits, Punctuation, CharDelimiterSplit, FixedLength, Sequence. Models: BPE, WordPiece, Unigram,
    /// WordLevel. Post-processors: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence.
    /// Decoders: ByteLevel, WordPiece, Metaspace, BPEDecoder, CTC, Replace, Fuse, Strip, ByteFallback, Sequence.
    /// Limits: 100 MiB and 16 million JSON values; reading temporarily uses up to 40 times the file's size in memory.
    /// Patterns have at most 32 KiB; verbs of PCRE2 such as (*LIMIT_MATCH=), callouts and `\\C` are not supported.
    /// encode and decode throw ValueError if a pattern needs more than 10 million steps at one position of a text or
    /// 256 MiB, and if normalizers produce more than 64 times the bytes of a text and 16 MiB.
    /// @throws IoError; FormatError naming file, byte and JSON pointer for malformed or unsupported contents, and for
    /// an id shared by two tokens
    static Tokenizer from_file(const std::filesystem::path& path);
    /// Reads a tokenizer.json from a string. @param name is used in errors
    static Tokenizer from_json(std::string_view json, const std::string& name = "tokenizer.json");
    [[nodiscard]] std::string to_json() const;
    /// Writes a tokenizer.json, which the Python package can read. @throws IoError
    void save(const std::filesystem::path& path) const;

    /// @throws ValueError if a token is unknown and the model has no unknown token, or if truncation leaves no room
    [[nodiscard]] Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
    [[nodiscard]] Encoding encode(std::string_view text, std::string_view pair,
                                  const EncodeOptions& options = {}) const;
    /// Padded to a common length if padding is set.
    [[nodiscard]] std::vector<Encoding> encode_batch(std::span<const std::string> texts,
                                                     const EncodeOptions& options = {}) const;
    [[nodiscard]] std::vector<Encoding> encode_batch(std::span<const std::pair<std::string, std::string>> pairs,
                                                     const EncodeOptions& options = {}) const;
    /// Returns only the ids, without truncation and padding: faster.
    [[nodiscard]] std::vector<std::int64_t> ids(std::string_view text, const EncodeOptions& options = {}) const;

    /// Ids out of range are skipped.
    [[nodiscard]] std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

    [[nodiscard]] std::optional<std::int64_t> token_to_id(std::string_view token) const;
    [[nodiscard]] std::optional<std::string> id_to_token(std::int64_t id) const;
    /// Number of tokens, including added ones.
    [[nodiscard]] std::int64_t vocab_size() const;
    [[nodiscard]] std::map<std::string, std::int64_t> vocab() const;

    /// Tokens that are in the vocabulary keep their ids, others get the next ones. Returns the number of new tokens.
    std::int64_t add_tokens(std::span<const AddedToken> tokens);
    /// Adds special tokens, which are matched in the raw text.
    std::int64_t add_special_tokens(const std::vector<std::string>& tokens);
    [[nodiscard]] std::vector<std::pair<std::int64_t, AddedToken>> added_tokens() const;

    /// @throws ValueError unless max_length >= 0 and 0 <= stride < max_length
    void set_truncation(std::optional<Truncation> truncation);
    /// @throws ValueError for a length outside of [0, 2^20], or a multiple outside of [1, 2^20]
    void set_padding(std::optional<Padding> padding);
    [[nodiscard]] const std::optional<Truncation>& truncation() const noexcept;
    [[nodiscard]] const std::optional<Padding>& padding() const noexcept;

    /// Returns a tokenizer with the same parts and a model trained on a corpus. Added tokens are not copied; list the
    /// ones to keep in TrainOptions::special_tokens.
    /// BPE: Sennrich, Haddow, Birch (2016). WordPiece: merges of the most frequent pairs, as in the package tokenizers.
    /// Unigram: Kudo (2018), expectation maximisation over pieces of frequent substrings, with iterative pruning.
    /// @throws ValueError for options out of range, and a vocabulary too small for its alphabet (Unigram)
    [[nodiscard]] Tokenizer train_new(const Corpus& corpus, const TrainOptions& options) const;

    struct State;

  private:
    explicit Tokenizer(std::shared_ptr<State> state) : state_(std::move(state)) {}
    State& own();
    std::shared_ptr<State> state_;
};

/// Tokenizer of the 256 bytes in GPT-2's representation, in order of these characters, after the special tokens.
DECLIVITY_API Tokenizer byte_tokenizer(const std::vector<std::string>& special_tokens = {});
/// Tokenizer of the most frequent characters of a corpus. TrainOptions::unk_token stands for all others; "[UNK]" if
/// empty.
DECLIVITY_API Tokenizer train_character(const Corpus& corpus, TrainOptions options = {});
/// Tokenizer of words, and of runs of punctuation. TrainOptions::unk_token stands for all others; "[UNK]" if empty.
DECLIVITY_API Tokenizer train_word(const Corpus& corpus, TrainOptions options = {});
/// BERT's tokenizer (WordPiece): lower case without accents, words and word pieces ("##ing"), enclosed in [CLS] and
/// [SEP]. Default special tokens are [PAD], [UNK], [CLS], [SEP], [MASK].
DECLIVITY_API Tokenizer train_word_piece(const Corpus& corpus, TrainOptions options = {});
/// GPT-2's tokenizer: byte-level BPE within words; decoding is lossless for any text.
DECLIVITY_API Tokenizer train_byte_level_bpe(const Corpus& corpus, TrainOptions options = {});
/// Llama 2's tokenizer: BPE of characters, spaces as "▁", byte fallback `<0x00>` .. `<0xFF>` for characters that are
/// not in the vocabulary. Default special tokens are `<unk>`, `<s>`, `</s>`.
DECLIVITY_API Tokenizer train_sentencepiece_bpe(const Corpus& corpus, TrainOptions options = {});
/// SentencePiece's Unigram model: the most probable segmentation. The default special token is `<unk>`.
DECLIVITY_API Tokenizer train_unigram(const Corpus& corpus, TrainOptions options = {});

/// Streaming decoder for ids from text generation: a multi-byte character is returned when it is complete.
class DECLIVITY_API StreamDecoder {
  public:
    explicit StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens = true);
    /// Returns the text added by this id; empty while a character is incomplete.
    std::string step(std::int64_t id);
    /// Returns the remaining text, if the ids end within a character.
    std::string finish();

  private:
    Tokenizer tokenizer_;
    bool skip_special_tokens_;
    std::vector<std::int64_t> ids_;
    std::size_t known_ = 0;  ///< number of ids that were decoded completely
    std::string given_;      ///< the text of these ids
};

/// @}

}  // namespace declivity::text
