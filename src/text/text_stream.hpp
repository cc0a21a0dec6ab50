// Layer 7, private. Incremental text of a sequence during generation: stop strings, and the text that can be emitted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <declivity/text/generation.hpp>

namespace declivity::text {

/// The text of one sequence, decoded by GenerationOptions::decode.
class TextStream {
  public:
    explicit TextStream(const GenerationOptions& options) : options_(&options) {}

    /// Updates the text with all tokens generated so far.
    /// @return whether it contains a stop string; str() ends before it
    bool update(std::span<const std::int64_t> tokens);
    [[nodiscard]] const std::string& str() const noexcept { return text_; }
    /// The text since the last call: complete characters, without a possible prefix of a stop string unless the
    /// sequence has ended.
    std::string_view take(bool last);

  private:
    const GenerationOptions* options_;
    std::string text_;
    std::size_t emitted_ = 0;
};

}  // namespace declivity::text
