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

constexpr std::size_t kLongestPattern = std::size_t{1} << 15;
constexpr int kDeepestClass = 16;
// Limits per match: backtracking steps at each position of a text, and memory for open groups.
constexpr std::uint32_t kMaxSteps = 10'000'000, kMaxDepth = 1'000'000, kMaxKibibytes = 256 * 1024;

/// Translates a pattern to PCRE2's syntax. Only constructs that differ between the two are parsed.
class Translation {
  public:
    explicit Translation(std::string_view from) : from_(from) {}

    std::string run() {
        while (at_ < from_.size()) step();
        return std::move(out_);
    }

  private:
    void step() {
        const char c = from_[at_];
        switch (c) {
            case '\\':
                return escape();
            case '[':
                atom_ = out_.size();
                out_ += char_class();
                return;
            case '(':
                // Verbs and settings such as (*LIMIT_MATCH=...), and callouts, which Oniguruma does not have.
                if (from_.substr(at_, 2) == "(*" || from_.substr(at_, 3) == "(?C")
                    throw ValueError(fmt::format("Regex: '{}' is not supported", from_.substr(at_, 3)));
                groups_.push_back(out_.size());
                out_ += '(';
                ++at_;
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
                out_ += from_.substr(at_, size);
                at_ += size;
                return;
            }
        }
        out_ += c;
        ++at_;
    }

    // In Oniguruma (?m) lets the dot match line ends, which is (?s) in PCRE2.
    void options() {
        if (at_ >= from_.size() || from_[at_] != '?') return;
        std::size_t end = at_ + 1;
        while (end < from_.size() && (from_[end] == 'i' || from_[end] == 'm' || from_[end] == 'x' || from_[end] == '-'))
            ++end;
        if (end == at_ + 1 || end >= from_.size() || (from_[end] != ':' && from_[end] != ')')) return;
        for (; at_ < end; ++at_) out_ += from_[at_] == 'm' ? 's' : from_[at_];
    }

    // {n,m}+ is a repeated repetition in Oniguruma, and possessive in PCRE2.
    void interval() {
        const std::size_t end = from_.find('}', at_);
        if (end == std::string_view::npos) {
            out_ += "\\{";
            ++at_;
            return;
        }
        std::string_view inside = from_.substr(at_ + 1, end - at_ - 1);
        if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string_view::npos) {
            atom_ = out_.size();
            out_ += "\\{";
            ++at_;
            return;
        }
        if (inside.front() == ',') out_ += fmt::format("{{0{}}}", inside);
        else out_ += fmt::format("{{{}}}", inside);
        at_ = end + 1;
        if (at_ < from_.size() && from_[at_] == '+') {
            out_.insert(atom_, "(?:");
            out_ += ")";
        }
    }

    void escape() {
        atom_ = out_.size();
        if (at_ + 1 >= from_.size()) throw ValueError("Regex: the pattern ends with a backslash");
        const char c = from_[at_ + 1];
        if (c == 'b' || c == 'B') {
            const std::string_view word = kWord;
            out_ += c == 'b' ? fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", word)
                             : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", word);
            at_ += 2;
        } else if (c == 's' || c == 'S' || c == 'w' || c == 'W' || c == 'h' || c == 'H') {
            const bool negative = c >= 'A' && c <= 'Z';
            out_ += fmt::format("[{}{}]", negative ? "^" : "", shorthand(static_cast<char>(c | 32)));
            at_ += 2;
        } else {
            out_ += plain_escape();
        }
    }

    static std::string_view shorthand(char lower) {
        return lower == 's' ? kSpace : lower == 'w' ? kWord : std::string_view("0-9a-fA-F");
    }

    /// An escape that both support, in a class or outside; \uHHHH becomes \x{HHHH}.
    std::string plain_escape() {
        const char c = from_[at_ + 1];
        // A single byte, and quoting, which Oniguruma does not have.
        if (c == 'C' || c == 'Q' || c == 'E') throw ValueError(fmt::format("Regex: '\\{}' is not supported", c));
        if (c == 'u') {
            const std::string_view digits = from_.substr(at_ + 2, 4);
            if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
                throw ValueError("Regex: expected four hexadecimal digits after \\u");
            at_ += 6;
            return fmt::format("\\x{{{}}}", digits);
        }
        std::size_t size = 1 + bytes_of(static_cast<unsigned char>(c));
        if ((c == 'p' || c == 'P' || c == 'x' || c == 'k' || c == 'g') && at_ + 2 < from_.size() &&
            from_[at_ + 2] == '{') {
            const std::size_t end = from_.find('}', at_);
            if (end == std::string_view::npos) throw ValueError(fmt::format("Regex: \\{}{{ is not closed", c));
            size = end + 1 - at_;
        }
        std::string out(from_.substr(at_, size));
        at_ += size;
        return out;
    }

    /// [...], with && in it, which PCRE2 does not have: all operands but the last become lookaheads.
    std::string char_class(int depth = 1) {
        if (depth > kDeepestClass)
            throw ValueError(fmt::format("Regex: classes are nested deeper than {}", kDeepestClass));
        const std::size_t begin = at_++;
        bool negative = false;
        if (at_ < from_.size() && from_[at_] == '^') negative = true, ++at_;
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
            if (at_ >= from_.size()) throw ValueError(fmt::format("Regex: the class at {} is not closed", begin));
            const char c = from_[at_];
            if (c == ']' && !first) break;
            if (c == '[' && from_.substr(at_, 2) == "[:") {
                const std::size_t end = from_.find(":]", at_);
                if (end == std::string_view::npos)
                    throw ValueError(fmt::format("Regex: the class at {} is not closed", at_));
                part += from_.substr(at_, end + 2 - at_);
                at_ = end + 2;
            } else if (c == '[') {
                if (has_nested) throw ValueError("Regex: several classes within a class are not supported");
                nested = char_class(depth + 1);
                has_nested = true;
            } else if (from_.substr(at_, 2) == "&&") {
                close_part();
                at_ += 2;
            } else if (c == '\\' && at_ + 1 < from_.size()) {
                const char which = from_[at_ + 1];
                if (which == 's' || which == 'w' || which == 'h') {
                    part += shorthand(which);
                    at_ += 2;
                } else if (which == 'S' || which == 'W' || which == 'H') {
                    complements += fmt::format("|[^{}]", shorthand(static_cast<char>(which | 32)));
                    at_ += 2;
                } else {
                    part += plain_escape();
                }
            } else {
                const std::size_t size = bytes_of(static_cast<unsigned char>(c));
                if (c == ']') part += '\\';
                part += from_.substr(at_, size);
                at_ += size;
            }
        }
        ++at_;
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

    std::string_view from_;
    std::size_t at_ = 0;
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
        if (text.size() > kLongestPattern)
            throw ValueError(
                fmt::format("Regex: expected a pattern of at most {} bytes, got {}", kLongestPattern, text.size()));
        if (!is_valid(text)) throw ValueError("Regex: the pattern is not valid UTF-8");
        const std::string translated = to_pcre2(text);
        int error = 0;
        PCRE2_SIZE where = 0;
        code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C,
                             &error, &where, nullptr);
        if (code == nullptr)
            throw ValueError(fmt::format("Regex: '{}' is not a valid pattern: {}", pattern, message(error)));
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without a JIT the pattern is interpreted
    }
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern) : code_(std::make_shared<const Code>(pattern)) {}

bool Regex::search(std::string_view text, std::size_t at, Range& found) const {
    pcre2_match_data* data = match_data();
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const auto match = [&](std::uint32_t options) {
        return pcre2_match(code_->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | options, data, match_context());
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
    const auto is_boundary = [&](std::size_t place) {
        return place >= text.size() || (static_cast<unsigned char>(text[place]) & 0xC0) != 0x80;
    };
    if (found.begin < at || found.end < found.begin || found.end > text.size() || !is_boundary(found.begin) ||
        !is_boundary(found.end))
        fail(fmt::format("expected a match from byte {} on, got one from byte {} to {}", at, found.begin, found.end));
    return true;
}

std::size_t Regex::next_character(std::string_view text, std::size_t at) {
    return at >= text.size() ? text.size() + 1 : at + bytes_of(static_cast<unsigned char>(text[at]));
}

}  // namespace declivity::text
