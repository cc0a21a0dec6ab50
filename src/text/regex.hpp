// Layer 7, private. Regular expressions, through PCRE2.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace declivity::text {

/// A range of bytes of a text.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// A pattern in the syntax of the Oniguruma library, which tokenizer.json files use, translated to PCRE2. Matching is
/// const and thread-safe.
class Regex {
  public:
    /// @throws ValueError for an invalid pattern, or one that cannot be translated
    explicit Regex(std::string_view pattern);
    /// Calls the function with each match, from left to right, including empty ones.
    /// @throws ValueError if matching exceeds PCRE2's step limit
    template <class Function>
    void for_each(std::string_view text, const Function& function) const {
        Range last;
        bool any = false;
        for (std::size_t pos = 0; pos <= text.size();) {
            Range found;
            if (!search(text, pos, found)) return;
            // An empty match directly after the last one is skipped.
            if (found.begin == found.end && any && found.end == last.end) {
                pos = next_character(text, found.end);
                continue;
            }
            last = found;
            any = true;
            function(found);
            pos = found.end;
        }
    }

  private:
    [[nodiscard]] bool search(std::string_view text, std::size_t begin, Range& found) const;
    static std::size_t next_character(std::string_view text, std::size_t pos);

    struct Code;
    std::shared_ptr<const Code> code_;
};

/// The pattern in PCRE2's syntax. @throws ValueError for unsupported constructs
std::string to_pcre2(std::string_view oniguruma);

}  // namespace declivity::text
