// Layer 7. Data sets of token sequences for language models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <declivity/data/dataset.hpp>
#include <declivity/text/corpus.hpp>
#include <declivity/text/tokenizer.hpp>

namespace declivity::text {

/// @addtogroup text
/// @{

struct WindowOptions {
    std::int64_t length = 128;  ///< length of an input in tokens
    /// Distance between the starts of consecutive windows; `length` if none, so that each token is a target once.
    std::optional<std::int64_t> stride = std::nullopt;
};

/// Windows of one long token sequence: "input", i64 (length), and "target", the input shifted by one token. A remainder
/// shorter than a window is dropped.
///
///     text::WindowDataset set(tokenizer.ids(text), {.length = 64});
///     data::Loader loader(set, {.batch = 32, .shuffle = true, .seed = 1});
class DECLIVITY_API WindowDataset : public data::Dataset {
  public:
    /// @throws ValueError for a length or stride below 1, and for fewer than length + 1 tokens
    explicit WindowDataset(std::vector<std::int64_t> tokens, const WindowOptions& options = {});
    /// Windows of a token file (write_tokens), which stays on disk: windows are read on demand and in any order,
    /// thread-safely.
    /// @throws IoError; FormatError for a file that is not a token file; ValueError as above
    explicit WindowDataset(const std::filesystem::path& tokens, const WindowOptions& options = {});
    ~WindowDataset() override;

    [[nodiscard]] std::int64_t size() const override;
    [[nodiscard]] std::vector<data::Field> fields() const override;
    [[nodiscard]] std::int64_t tokens() const noexcept;  ///< of all windows

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FieldBuffers fields) const override;

    struct Source;
    std::shared_ptr<const Source> source_;
    WindowOptions options_;
};

struct TokenFileOptions {
    /// Appended to each text, such as an end-of-text token; nothing if none.
    std::optional<std::int64_t> separator = std::nullopt;
    bool add_special_tokens = false;  ///< adds the special tokens of the tokenizer's post-processor to each text
};
/// Tokenizes a corpus into a token file, with 2 or 4 bytes per token depending on the largest id. Only one text is in
/// memory at a time. The file is written atomically. Returns the number of tokens.
/// @throws IoError; ValueError for an id above 32 bits
DECLIVITY_API std::int64_t write_tokens(const std::filesystem::path& path, const Corpus& corpus,
                                        const Tokenizer& tokenizer, const TokenFileOptions& options = {});
/// Writes existing tokens to a token file.
DECLIVITY_API std::int64_t write_tokens(const std::filesystem::path& path, std::span<const std::int64_t> tokens);

/// Sequences of different lengths: "tokens", i64 (T varies). Use data::pad for batches, with PadOptions::masks_of for
/// an attention mask; data::BucketSampler(set.lengths()) batches sequences of similar length.
class DECLIVITY_API SequenceDataset : public data::Dataset {
  public:
    /// @param labels one for each sequence, for an additional field "label", i64 of shape []; none if empty
    /// @throws ValueError unless there are as many labels as sequences, or none
    explicit SequenceDataset(std::vector<std::vector<std::int64_t>> sequences, std::vector<std::int64_t> labels = {});
    ~SequenceDataset() override;

    [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(sequences_.size()); }
    [[nodiscard]] std::vector<data::Field> fields() const override;
    [[nodiscard]] std::vector<std::int64_t> lengths() const;

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;

    std::vector<std::vector<std::int64_t>> sequences_;
    std::vector<std::int64_t> labels_;
};

/// @}

}  // namespace declivity::text
