// Layer 5, private. Regular expressions, through PCRE2.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace declivity::text {

/// A part of a text in bytes.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// A pattern of the Oniguruma library's, with which tokenizer.json are written, translated to PCRE2. Matching is const
/// and may be done by several threads at once.
class Regex {
  public:
    /// @throws ValueError for a pattern that cannot be read, and what cannot be translated
    explicit Regex(std::string_view pattern);
    /// Calls the function with each match, from left to right, also with empty ones.
    /// @throws ValueError where matching takes more steps than PCRE2's limit
    template <class Function>
    void for_each(std::string_view text, const Function& function) const {
        Range last;
        bool any = false;
        for (std::size_t at = 0; at <= text.size();) {
            Range found;
            if (!search(text, at, found)) return;
            // No empty match right behind the last one.
            if (found.begin == found.end && any && found.end == last.end) {
                at = next_character(text, found.end);
                continue;
            }
            last = found;
            any = true;
            function(found);
            at = found.end;
        }
    }

  private:
    [[nodiscard]] bool search(std::string_view text, std::size_t at, Range& found) const;
    static std::size_t next_character(std::string_view text, std::size_t at);

    struct Code;
    std::shared_ptr<const Code> code_;
};

/// The pattern in PCRE2's syntax. @throws ValueError for what it does not have
std::string to_pcre2(std::string_view oniguruma);

}  // namespace declivity::text
