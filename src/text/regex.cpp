#include "regex.hpp"

#include <array>
#include <new>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "unicode.hpp"

namespace declivity::text {
namespace {

// \s and \w of Oniguruma in Unicode; PCRE2's differ in a few characters.
constexpr std::string_view kSpace = R"(\p{Z}\x{9}-\x{d}\x{85})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 15;
constexpr int kMaxClassDepth = 16;
// Limits per match: backtracking steps at each position of a text, and memory for open groups.
constexpr std::uint32_t kMaxSteps = 10'000'000, kMaxDepth = 1'000'000, kMaxKibibytes = 256 * 1024;

/// Translates a pattern to PCRE2's syntax. Only constructs that differ between the two are parsed.
class Translation {
  public:
    explicit Translation(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (position_ < pattern_.size()) step();
        return std::move(out_);
    }

  private:
    void step() {
        const char c = pattern_[position_];
        switch (c) {
            case '\\':
                return escape();
            case '[':
                atom_ = out_.size();
                out_ += char_class();
                return;
            case '(':
                // Verbs and settings such as (*LIMIT_MATCH=...), and callouts, which Oniguruma does not have.
                if (pattern_.substr(position_, 2) == "(*" || pattern_.substr(position_, 3) == "(?C")
                    throw ValueError(fmt::format("Regex: '{}' is not supported", pattern_.substr(position_, 3)));
                groups_.push_back(out_.size());
                out_ += '(';
                ++position_;
                options();
                return;
            case ')':
                if (!groups_.empty()) {
                    atom_ = groups_.back();
                    groups_.pop_back();
                }
                break;
            case '{':
                return interval();
            case '*':
            case '+':
            case '?':
            case '|':
                break;
            default: {
                atom_ = out_.size();
                const std::size_t size = bytes_of(static_cast<unsigned char>(c));
                out_ += pattern_.substr(position_, size);
                position_ += size;
                return;
            }
        }
        out_ += c;
        ++position_;
    }

    // In Oniguruma (?m) lets the dot match line ends, which is (?s) in PCRE2.
    void options() {
        if (position_ >= pattern_.size() || pattern_[position_] != '?') return;
        std::size_t end = position_ + 1;
        while (end < pattern_.size() &&
               (pattern_[end] == 'i' || pattern_[end] == 'm' || pattern_[end] == 'x' || pattern_[end] == '-'))
            ++end;
        if (end == position_ + 1 || end >= pattern_.size() || (pattern_[end] != ':' && pattern_[end] != ')')) return;
        for (; position_ < end; ++position_) out_ += pattern_[position_] == 'm' ? 's' : pattern_[position_];
    }

    // {n,m}+ is a repeated repetition in Oniguruma, and possessive in PCRE2.
    void interval() {
        const std::size_t end = pattern_.find('}', position_);
        if (end == std::string_view::npos) {
            out_ += "\\{";
            ++position_;
            return;
        }
        std::string_view inside = pattern_.substr(position_ + 1, end - position_ - 1);
        if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string_view::npos) {
            atom_ = out_.size();
            out_ += "\\{";
            ++position_;
            return;
        }
        if (inside.front() == ',') out_ += fmt::format("{{0{}}}", inside);
        else out_ += fmt::format("{{{}}}", inside);
        position_ = end + 1;
        if (position_ < pattern_.size() && pattern_[position_] == '+') {
            out_.insert(atom_, "(?:");
            out_ += ")";
        }
    }

    void escape() {
        atom_ = out_.size();
        if (position_ + 1 >= pattern_.size()) throw ValueError("Regex: the pattern ends with a backslash");
        const char c = pattern_[position_ + 1];
        if (c == 'b' || c == 'B') {
            const std::string_view word = kWord;
            out_ += c == 'b' ? fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", word)
                             : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", word);
            position_ += 2;
        } else if (c == 's' || c == 'S' || c == 'w' || c == 'W' || c == 'h' || c == 'H') {
            const bool negative = c >= 'A' && c <= 'Z';
            out_ += fmt::format("[{}{}]", negative ? "^" : "", shorthand(static_cast<char>(c | 32)));
            position_ += 2;
        } else {
            out_ += plain_escape();
        }
    }

    static std::string_view shorthand(char lower) {
        return lower == 's' ? kSpace : lower == 'w' ? kWord : std::string_view("0-9a-fA-F");
    }

    /// An escape that both support, in a class or outside; \uHHHH becomes \x{HHHH}.
    std::string plain_escape() {
        const char c = pattern_[position_ + 1];
        // A single byte, and quoting, which Oniguruma does not have.
        if (c == 'C' || c == 'Q' || c == 'E') throw ValueError(fmt::format("Regex: '\\{}' is not supported", c));
        if (c == 'u') {
            const std::string_view digits = pattern_.substr(position_ + 2, 4);
            if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
                throw ValueError("Regex: expected four hexadecimal digits after \\u");
            position_ += 6;
            return fmt::format("\\x{{{}}}", digits);
        }
        std::size_t size = 1 + bytes_of(static_cast<unsigned char>(c));
        if ((c == 'p' || c == 'P' || c == 'x' || c == 'k' || c == 'g') && position_ + 2 < pattern_.size() &&
            pattern_[position_ + 2] == '{') {
            const std::size_t end = pattern_.find('}', position_);
            if (end == std::string_view::npos) throw ValueError(fmt::format("Regex: \\{}{{ is not closed", c));
            size = end + 1 - position_;
        }
        std::string out(pattern_.substr(position_, size));
        position_ += size;
        return out;
    }

    /// [...], with && in it, which PCRE2 does not have: all operands but the last become lookaheads.
    std::string char_class(int depth = 1) {
        if (depth > kMaxClassDepth)
            throw ValueError(fmt::format("Regex: classes are nested deeper than {}", kMaxClassDepth));
        const std::size_t begin = position_++;
        bool negative = false;
        if (position_ < pattern_.size() && pattern_[position_] == '^') negative = true, ++position_;
        std::vector<std::string> parts;
        std::string part, nested, complements;
        bool first = true, has_nested = false;
        const auto close_part = [&] {
            if (has_nested && (!part.empty() || !complements.empty()))
                throw ValueError("Regex: a class within a class, next to other members, is not supported");
            if (has_nested) parts.push_back(nested);
            else if (complements.empty()) parts.push_back("[" + part + "]");
            else
                parts.push_back(part.empty() ? fmt::format("(?:{})", complements.substr(1))
                                             : fmt::format("(?:[{}]{})", part, complements));
            part.clear();
            complements.clear();
            has_nested = false;
        };
        for (;; first = false) {
            if (position_ >= pattern_.size())
                throw ValueError(fmt::format("Regex: the class at {} is not closed", begin));
            const char c = pattern_[position_];
            if (c == ']' && !first) break;
            if (c == '[' && pattern_.substr(position_, 2) == "[:") {
                const std::size_t end = pattern_.find(":]", position_);
                if (end == std::string_view::npos)
                    throw ValueError(fmt::format("Regex: the class at {} is not closed", position_));
                part += pattern_.substr(position_, end + 2 - position_);
                position_ = end + 2;
            } else if (c == '[') {
                if (has_nested) throw ValueError("Regex: several classes within a class are not supported");
                nested = char_class(depth + 1);
                has_nested = true;
            } else if (pattern_.substr(position_, 2) == "&&") {
                close_part();
                position_ += 2;
            } else if (c == '\\' && position_ + 1 < pattern_.size()) {
                const char escaped = pattern_[position_ + 1];
                if (escaped == 's' || escaped == 'w' || escaped == 'h') {
                    part += shorthand(escaped);
                    position_ += 2;
                } else if (escaped == 'S' || escaped == 'W' || escaped == 'H') {
                    complements += fmt::format("|[^{}]", shorthand(static_cast<char>(escaped | 32)));
                    position_ += 2;
                } else {
                    part += plain_escape();
                }
            } else {
                const std::size_t size = bytes_of(static_cast<unsigned char>(c));
                if (c == ']') part += '\\';
                part += pattern_.substr(position_, size);
                position_ += size;
            }
        }
        ++position_;
        close_part();
        if (parts.size() == 1) {
            if (!negative) return parts[0];
            return parts[0].starts_with("[^") || parts[0].starts_with("(") ? fmt::format("(?:(?!{})(?s:.))", parts[0])
                                                                           : "[^" + parts[0].substr(1);
        }
        std::string out;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i) out += fmt::format("(?={})", parts[i]);
        out += parts.back();
        return negative ? fmt::format("(?:(?!{})(?s:.))", out) : fmt::format("(?:{})", out);
    }

    std::string_view pattern_;
    std::size_t position_ = 0;
    std::string out_;
    std::size_t atom_ = 0;                  ///< start of the last atom that a quantifier may follow
    std::vector<std::size_t> groups_ = {};  ///< starts of the open groups
};

/// Match data of a thread: one pair of offsets.
pcre2_match_data* match_data() {
    struct Holder {
        pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
        Holder() = default;
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;
        ~Holder() { pcre2_match_data_free(data); }
    };
    thread_local const Holder holder;
    if (holder.data == nullptr) throw std::bad_alloc();
    return holder.data;
}

/// Match limits, shared by all threads, which only read them.
pcre2_match_context* match_context() {
    struct Holder {
        pcre2_match_context* context = pcre2_match_context_create(nullptr);
        Holder() {
            if (context == nullptr) throw std::bad_alloc();
            (void)pcre2_set_match_limit(context, kMaxSteps);
            (void)pcre2_set_depth_limit(context, kMaxDepth);
            (void)pcre2_set_heap_limit(context, kMaxKibibytes);
        }
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;
        ~Holder() { pcre2_match_context_free(context); }
    };
    // Never freed: static objects of a program may still encode texts.
    static const Holder& holder = *new Holder;
    return holder.context;
}

std::string message(int code) {
    std::array<PCRE2_UCHAR, 256> text{};
    (void)pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

}  // namespace

std::string to_pcre2(std::string_view oniguruma) { return Translation(oniguruma).run(); }

struct Regex::Code {
    pcre2_code* code = nullptr;
    std::string pattern;
    explicit Code(std::string_view text) : pattern(text) {
        if (text.size() > kMaxPatternBytes)
            throw ValueError(
                fmt::format("Regex: expected a pattern of at most {} bytes, got {}", kMaxPatternBytes, text.size()));
        if (!is_valid(text)) throw ValueError("Regex: the pattern is not valid UTF-8");
        const std::string translated = to_pcre2(text);
        int error = 0;
        PCRE2_SIZE error_offset = 0;
        code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C,
                             &error, &error_offset, nullptr);
        if (code == nullptr)
            throw ValueError(fmt::format("Regex: '{}' is not a valid pattern: {}", pattern, message(error)));
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without a JIT the pattern is interpreted
    }
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern) : code_(std::make_shared<const Code>(pattern)) {}

bool Regex::search(std::string_view text, std::size_t begin, Range& found) const {
    pcre2_match_data* data = match_data();
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const auto match = [&](std::uint32_t options) {
        return pcre2_match(code_->code, subject, text.size(), begin, PCRE2_NO_UTF_CHECK | options, data,
                           match_context());
    };
    int result = match(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    const auto fail = [&](const std::string& what) {
        throw ValueError(fmt::format("Regex: '{}' on a text of {} bytes: {}", code_->pattern, text.size(), what));
    };
    if (result < 0) fail(message(result));
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data);
    found = {offsets[0], offsets[1]};
    // \K moves the start of a match: within a lookaround and a subroutine call, out of the match.
    const auto is_boundary = [&](std::size_t pos) {
        return pos >= text.size() || (static_cast<unsigned char>(text[pos]) & 0xC0) != 0x80;
    };
    if (found.begin < begin || found.end < found.begin || found.end > text.size() || !is_boundary(found.begin) ||
        !is_boundary(found.end))
        fail(
            fmt::format("expected a match from byte {} on, got one from byte {} to {}", begin, found.begin, found.end));
    return true;
}

std::size_t Regex::next_character(std::string_view text, std::size_t pos) {
    return pos >= text.size() ? text.size() + 1 : pos + bytes_of(static_cast<unsigned char>(text[pos]));
}

}  // namespace declivity::text
