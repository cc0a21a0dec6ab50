// Layer 7. Corpus: a sequence of texts from memory or files.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::text {

/// @addtogroup text
/// @{

/// Texts that can be iterated several times, such as the lines of files, which are read on demand.
///
///     text::train_byte_level_bpe({"first text", "second text"}, {.vocab_size = 300});
///     text::train_byte_level_bpe(text::lines_of({"a.txt", "b.txt"}), {.vocab_size = 8000});
class DECLIVITY_API Corpus {
  public:
    using Each = std::function<void(const std::string& text)>;

    Corpus(std::vector<std::string> texts);  // NOLINT: texts are a corpus
    Corpus(std::initializer_list<std::string> texts);
    /// @param through calls its argument with each text. @throws ValueError for an empty function
    explicit Corpus(std::function<void(const Each& each)> through);

    // A moved-from corpus can still be iterated: a move is a copy.
    Corpus(const Corpus&) = default;
    Corpus& operator=(const Corpus&) = default;

    /// Calls the function with each text, in order.
    void for_each(const Each& each) const { through_(each); }

  private:
    std::function<void(const Each&)> through_;
};

/// The lines of files, without line ends. Only one line is in memory at a time.
/// @throws IoError, during iteration, for a file that cannot be read
DECLIVITY_API Corpus lines_of(std::vector<std::filesystem::path> files);

/// @}

}  // namespace declivity::text
