// Layer 5. Data sets of windows of a long text, for language models.
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

struct WindowOptions {
    std::int64_t length = 128;  ///< tokens of an input
    /// From the begin of a window to that of the next; `length` if none, so that each token is a target once.
    std::optional<std::int64_t> stride = std::nullopt;
};

/// Windows of one long list of tokens: "input", i64 (length), and "target", the same moved by one token. What is left
/// at the end, shorter than a window, is left out.
///
///     text::WindowDataset set(tokenizer.ids(text), {.length = 64});
///     data::Loader loader(set, {.batch = 32, .shuffle = true, .seed = 1});
class DECLIVITY_API WindowDataset : public data::Dataset {
  public:
    /// @throws ValueError for a length or stride below 1, and for fewer than length + 1 tokens
    explicit WindowDataset(std::vector<std::int64_t> tokens, const WindowOptions& options = {});
    /// Of a file of tokens (write_tokens), which stays on the disk: windows are read as they are asked for, by several
    /// threads at once, and the order of a loader may be any.
    /// @throws IoError; FormatError for a file that is none; ValueError as above
    explicit WindowDataset(const std::filesystem::path& tokens, const WindowOptions& options = {});
    ~WindowDataset() override;

    [[nodiscard]] std::int64_t size() const override;
    [[nodiscard]] std::vector<data::Field> fields() const override;
    [[nodiscard]] std::int64_t tokens() const noexcept;  ///< of the whole

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FlatIndices places) const override;

    struct Source;
    std::shared_ptr<const Source> source_;
    WindowOptions options_;
};

struct TokenFileOptions {
    /// Behind each text, such as the end of a text or of a line; none if there is none.
    std::optional<std::int64_t> separator = std::nullopt;
    bool add_special_tokens = false;  ///< those of the tokenizer's post-processor, around each text
};
/// Tokenizes a corpus into a file of tokens, of 2 or 4 bytes each as the largest id needs. Memory holds one text. The
/// file appears when it is whole. Returns how many tokens there are.
/// @throws IoError; ValueError for an id beyond 32 bits
DECLIVITY_API std::int64_t write_tokens(const std::filesystem::path& path, const Corpus& corpus,
                                        const Tokenizer& tokenizer, const TokenFileOptions& options = {});
/// The same of tokens that are there.
DECLIVITY_API std::int64_t write_tokens(const std::filesystem::path& path, std::span<const std::int64_t> tokens);

/// Texts as sequences of different lengths: "tokens", i64 (T of its own). data::pad fills them up, with
/// PadOptions::masks_of for an attention mask; data::BucketSampler(set.lengths()) puts like with like.
class DECLIVITY_API SequenceDataset : public data::Dataset {
  public:
    /// @param labels one for each sequence, for a further field "label", i64 of shape []; none if empty
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

}  // namespace declivity::text
