// Layer 5, private. The text of a sequence while its tokens come: stop strings, and what can be given out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <declivity/text/generation.hpp>

namespace declivity::text {

/// The text of one sequence, by GenerationOptions::decode.
class TextStream {
  public:
    explicit TextStream(const GenerationOptions& options) : options_(&options) {}

    /// Takes all tokens that were generated so far.
    /// @return whether the text has a stop string; str() ends before it
    bool update(std::span<const std::int64_t> tokens);
    [[nodiscard]] const std::string& str() const noexcept { return text_; }
    /// The text since the last call: whole characters, and nothing that a stop string may begin with, unless no more
    /// tokens come.
    std::string_view take(bool last);

  private:
    const GenerationOptions* options_;
    std::string text_;
    std::size_t given_ = 0;
};

}  // namespace declivity::text
