// Layer 5. Tokenizer: from text to ids and back, as Hugging Face's tokenizer.json describes it.
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

/// A token beside the model's vocabulary, found in the text before it is cut into pieces.
struct AddedToken {
    std::string content;
    bool special = false;      ///< left out by decode(..., skip_special_tokens = true)
    bool single_word = false;  ///< not inside of a word
    bool lstrip = false;       ///< takes the white space on its left along
    bool rstrip = false;       ///< takes the white space on its right along
    bool normalized = true;    ///< looked for in the normalized text; special tokens are looked for in the text itself
};

struct EncodeOptions {
    bool add_special_tokens = true;  ///< those of the post-processor, such as [CLS] and [SEP]
    /// Where the model is byte-pair with a dropout: merges are left out at random, from this seed. None are otherwise.
    std::optional<std::uint64_t> dropout_seed = std::nullopt;
};

struct TrainOptions {
    std::int64_t vocab_size = 30000;  ///< at most, special tokens counted; at least 1
    std::int64_t min_frequency = 0;   ///< of a pair to be merged (BPE, WordPiece), of a word (WordLevel)
    /// Get the first ids, in order; none is empty.
    std::vector<std::string> special_tokens = {};
    /// Characters that are in the vocabulary, whether they occur or not.
    std::vector<std::string> initial_alphabet = {};
    std::optional<std::int64_t> limit_alphabet = std::nullopt;  ///< the most frequent characters only
    /// Characters of a token at most, where the model is byte-pair or WordPiece.
    std::optional<std::int64_t> max_token_length = std::nullopt;
    std::string unk_token = {};          ///< Unigram and WordLevel; that of the model if empty
    double shrinking_factor = 0.75;      ///< Unigram: share of pieces kept in each round
    std::int64_t n_sub_iterations = 2;   ///< Unigram: rounds of expectation and maximisation before each pruning
    std::int64_t max_piece_length = 16;  ///< Unigram: characters
    std::int64_t seed_size = 1000000;    ///< Unigram: pieces to begin with
};

/// Normalizer, pre-tokenizer, model, post-processor and decoder, with added tokens, truncation and padding. Copies are
/// cheap and share the model. const functions may be called by several threads at once.
///
/// Texts are UTF-8; what is not valid in it reads as U+FFFD. The result equals that of the Python package tokenizers,
/// but that offsets count bytes.
class DECLIVITY_API Tokenizer {
  public:
    // What is moved from keeps its parts: a move is a copy.
    Tokenizer(const Tokenizer&) = default;
    Tokenizer& operator=(const Tokenizer&) = default;
    /// Reads a tokenizer.json.
    /// Normalizers: BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, ByteLevel,
    /// Nmt, Precompiled, Sequence. Pre-tokenizers: ByteLevel, BertPreTokenizer, Whitespace, WhitespaceSplit, Split,
    /// Metaspace, Digits, Punctuation, CharDelimiterSplit, FixedLength, Sequence. Models: BPE, WordPiece, Unigram,
    /// WordLevel. Post-processors: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence.
    /// Decoders: ByteLevel, WordPiece, Metaspace, BPEDecoder, CTC, Replace, Fuse, Strip, ByteFallback, Sequence.
    /// At most 100 MiB and 16 million JSON values; reading takes up to 40 times the file's size in memory for a while.
    /// Patterns have at most 32 KiB; verbs of PCRE2 such as (*LIMIT_MATCH=), callouts and `\\C` are not supported.
    /// encode and decode throw ValueError where a pattern takes more than 10 million steps at one place of a text or
    /// 256 MiB, and where normalizers make more than 64 times the bytes of a text and 16 MiB.
    /// @throws IoError; FormatError naming file, byte and JSON pointer for what is malformed or none of these, and for
    /// an id that two tokens have
    static Tokenizer from_file(const std::filesystem::path& path);
    /// The same of a text. @param name is used in errors
    static Tokenizer from_json(std::string_view json, const std::string& name = "tokenizer.json");
    [[nodiscard]] std::string to_json() const;
    /// Writes a tokenizer.json, which the Python package reads as well. @throws IoError
    void save(const std::filesystem::path& path) const;

    /// @throws ValueError where a token is unknown and the model has none for that, or where truncation leaves no room
    [[nodiscard]] Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
    [[nodiscard]] Encoding encode(std::string_view text, std::string_view pair,
                                  const EncodeOptions& options = {}) const;
    /// Padded to one length where there is a padding.
    [[nodiscard]] std::vector<Encoding> encode_batch(std::span<const std::string> texts,
                                                     const EncodeOptions& options = {}) const;
    [[nodiscard]] std::vector<Encoding> encode_batch(std::span<const std::pair<std::string, std::string>> pairs,
                                                     const EncodeOptions& options = {}) const;
    /// The ids alone, without truncation and padding: faster.
    [[nodiscard]] std::vector<std::int64_t> ids(std::string_view text, const EncodeOptions& options = {}) const;

    /// Ids that there are not are left out.
    [[nodiscard]] std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

    [[nodiscard]] std::optional<std::int64_t> token_to_id(std::string_view token) const;
    [[nodiscard]] std::optional<std::string> id_to_token(std::int64_t id) const;
    /// Number of tokens, added ones too.
    [[nodiscard]] std::int64_t vocab_size() const;
    [[nodiscard]] std::map<std::string, std::int64_t> vocab() const;

    /// Tokens that are in the vocabulary keep their ids, others get the next ones. Returns how many were new.
    std::int64_t add_tokens(std::span<const AddedToken> tokens);
    /// The same of tokens that are special, and looked for in the text as it is.
    std::int64_t add_special_tokens(const std::vector<std::string>& tokens);
    [[nodiscard]] std::vector<std::pair<std::int64_t, AddedToken>> added_tokens() const;

    /// @throws ValueError unless max_length >= 0 and 0 <= stride < max_length
    void set_truncation(std::optional<Truncation> truncation);
    /// @throws ValueError for a length outside of [0, 2^20], or a multiple outside of [1, 2^20]
    void set_padding(std::optional<Padding> padding);
    [[nodiscard]] const std::optional<Truncation>& truncation() const noexcept;
    [[nodiscard]] const std::optional<Padding>& padding() const noexcept;

    /// A tokenizer with the same parts, whose model was trained on a corpus. Added tokens are not taken over; name
    /// those that are wanted in TrainOptions::special_tokens.
    /// BPE: Sennrich, Haddow, Birch (2016). WordPiece: merges of the most frequent pairs, as the package does.
    /// Unigram: Kudo (2018), expectation and maximisation over pieces of frequent substrings, pruned round by round.
    /// @throws ValueError for options out of range, and a vocabulary too small for its alphabet (Unigram)
    [[nodiscard]] Tokenizer train_new(const Corpus& corpus, const TrainOptions& options) const;

    struct State;

  private:
    explicit Tokenizer(std::shared_ptr<State> state) : state_(std::move(state)) {}
    State& own();
    std::shared_ptr<State> state_;
};

/// Tokens of the 256 bytes, as GPT-2 writes them, in order of these characters, behind the special tokens.
DECLIVITY_API Tokenizer byte_tokenizer(const std::vector<std::string>& special_tokens = {});
/// Tokens of characters of a corpus, the most frequent ones. TrainOptions::unk_token stands for all others; "[UNK]" if
/// empty.
DECLIVITY_API Tokenizer train_character(const Corpus& corpus, TrainOptions options = {});
/// Tokens of words, and of runs of punctuation. TrainOptions::unk_token stands for all others; "[UNK]" if empty.
DECLIVITY_API Tokenizer train_word(const Corpus& corpus, TrainOptions options = {});
/// BERT's: lower case without accents, words and their pieces ("##ing"), [CLS] and [SEP] around. Special tokens are
/// [PAD], [UNK], [CLS], [SEP], [MASK] unless named.
DECLIVITY_API Tokenizer train_word_piece(const Corpus& corpus, TrainOptions options = {});
/// GPT-2's: pairs of bytes within words; whatever is encoded, is decoded to itself.
DECLIVITY_API Tokenizer train_byte_level_bpe(const Corpus& corpus, TrainOptions options = {});
/// Llama 2's: pairs of characters, spaces as "▁", bytes `<0x00>` .. `<0xFF>` for characters that are not in the
/// vocabulary. Special tokens are `<unk>`, `<s>`, `</s>` unless named.
DECLIVITY_API Tokenizer train_sentencepiece_bpe(const Corpus& corpus, TrainOptions options = {});
/// SentencePiece's other model: the pieces that are most probable together. Special tokens are `<unk>` unless named.
DECLIVITY_API Tokenizer train_unigram(const Corpus& corpus, TrainOptions options = {});

/// Text of ids that come one by one, as a language model writes them: a character of several bytes is given out when it
/// is whole.
class DECLIVITY_API StreamDecoder {
  public:
    explicit StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens = true);
    /// What this id adds to the text; empty while a character is incomplete.
    std::string step(std::int64_t id);
    /// What is left, where the ids ended within a character.
    std::string finish();

  private:
    Tokenizer tokenizer_;
    bool skip_special_tokens_;
    std::vector<std::int64_t> ids_;
    std::size_t known_ = 0;  ///< of them were whole before
    std::string given_;      ///< their text
};

}  // namespace declivity::text
