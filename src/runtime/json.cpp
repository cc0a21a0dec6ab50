#include "json.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::detail {
namespace {

constexpr std::size_t kLongestMessage = 240;

/// Finds where the value of a JSON pointer begins in a valid document.
class Locator {
  public:
    explicit Locator(std::string_view text) : text_(text) {}

    std::size_t find(const std::vector<std::string>& path) {
        space();
        for (const std::string& key : path)
            if (!enter(key)) return 0;
        return at_;
    }

  private:
    [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void space() {
        while (here() == ' ' || here() == '\n' || here() == '\t' || here() == '\r') ++at_;
    }
    bool enter(const std::string& key) {
        const bool object = here() == '{';
        if (!object && here() != '[') return false;
        ++at_;
        std::size_t found = 0;
        bool any = false;  // of duplicate members the last one counts
        for (std::size_t index = 0;; ++index) {
            space();
            if (at_ >= text_.size() || here() == '}' || here() == ']') break;
            bool wanted = !object && std::to_string(index) == key;
            if (object) {
                const std::size_t begin = at_;
                skip();
                const Json name = Json::parse(text_.substr(begin, at_ - begin), nullptr, false);
                wanted = name.is_string() && name.get_ref<const std::string&>() == key;
                space();
                ++at_;  // the colon
                space();
            }
            if (wanted) found = at_, any = true;
            skip();
            space();
            if (here() == ',') ++at_;
        }
        if (any) at_ = found;
        return any;
    }
    // Skips one value.
    void skip() {
        int depth = 0;
        do {
            const char c = here();
            if (c == '"') {
                for (++at_; at_ < text_.size() && here() != '"'; ++at_)
                    if (here() == '\\') ++at_;
                ++at_;
            } else if (c == '{' || c == '[') {
                ++depth, ++at_;
            } else if (c == '}' || c == ']') {
                --depth, ++at_;
            } else if (depth > 0 && (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
                ++at_;
            } else {
                while (at_ < text_.size() && std::string_view(",:]}\" \n\t\r").find(here()) == std::string_view::npos)
                    ++at_;
            }
        } while (depth > 0 && at_ < text_.size());
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::string escape_key(const std::string& key) {
    std::string out;
    for (const char c : key) {
        if (c == '~') out += "~0";
        else if (c == '/') out += "~1";
        else out += c;
    }
    return out;
}

std::vector<std::string> path_of(const std::string& pointer) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < pointer.size();) {
        const std::size_t end = std::min(pointer.find('/', at + 1), pointer.size());
        std::string key;
        for (std::size_t i = at + 1; i < end; ++i) {
            if (pointer[i] == '~' && i + 1 < end) key += pointer[++i] == '0' ? '~' : '/';
            else key += pointer[i];
        }
        out.push_back(std::move(key));
        at = end;
    }
    return out;
}

/// Returns the position of the quote that closes a string.
std::size_t end_of_string(std::string_view text, std::size_t open) {
    for (std::size_t at = open + 1; at < text.size(); ++at) {
        if (text[at] == '\\') ++at;
        else if (text[at] == '"') return at;
    }
    return text.size();
}

}  // namespace

std::string read_json_text(const std::filesystem::path& path, const JsonLimits& limits) {
    const std::string name = path.string();
    struct Closer {
        int descriptor;
        ~Closer() {
            if (descriptor >= 0) ::close(descriptor);
        }
    };
    int descriptor = -1;
    do descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (descriptor < 0 && errno == EINTR);
    const Closer closer{descriptor};
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) throw IoError("open", name, errno);
    if (S_ISDIR(status.st_mode)) throw IoError("open", name, EISDIR);
    const auto size = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;  // pipes have no size
    const auto refuse = [&](std::uint64_t bytes) {
        throw FormatError(name, limits.bytes,
                          fmt::format("expected JSON of at most {} bytes, got {}", limits.bytes, bytes));
    };
    if (size > limits.bytes) refuse(size);
    constexpr std::size_t kChunk = std::size_t{1} << 16;
    std::string text;
    for (std::size_t filled = 0;;) {
        text.resize(filled < size ? static_cast<std::size_t>(size) + 1 : 2 * filled + kChunk);
        const ssize_t got = ::read(descriptor, text.data() + filled, text.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw IoError("read", name, errno);
        filled += static_cast<std::size_t>(got);
        if (filled > limits.bytes) refuse(filled);
        if (got > 0) continue;
        text.resize(filled);
        return text;
    }
}

void check_json_limits(const std::string& file, std::string_view text, const JsonLimits& limits) {
    if (text.size() > limits.bytes)
        throw FormatError(file, limits.bytes,
                          fmt::format("expected JSON of at most {} bytes, got {}", limits.bytes, text.size()));
    // Up to the first syntax error, this sees the same strings, arrays and objects as the parser.
    int depth = 0;
    std::uint64_t values = 1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '"') {
            at = end_of_string(text, at);
        } else if (c == '{' || c == '[') {
            ++values;
            if (++depth > kMaxJsonDepth)
                throw FormatError(file, at, fmt::format("the JSON is nested deeper than {} levels", kMaxJsonDepth));
        } else if (c == '}' || c == ']') {
            --depth;
        } else if (c == ',' && ++values > limits.values) {
            throw FormatError(file, at, fmt::format("expected JSON of at most {} values, got more", limits.values));
        }
    }
}

Json parse_json(const std::string& file, std::string_view text, const JsonLimits& limits) {
    check_json_limits(file, text, limits);
    // The JSON library would skip a byte order mark.
    if (text.starts_with("\xef\xbb\xbf"))
        throw FormatError(file, 0, "not valid JSON: it begins with a byte order mark");
    // The JSON library would treat a zero byte as the end.
    if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
        throw FormatError(file, zero, "not valid JSON: it contains a zero byte");
    try {
        return Json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        throw FormatError(file, error.byte > 0 ? error.byte - 1 : 0,
                          fmt::format("not valid JSON: {}", json_message(error.what())));
    } catch (const nlohmann::json::exception& error) {  // numbers out of the range of double
        throw FormatError(file, 0, fmt::format("not valid JSON: {}", json_message(error.what())));
    }
}

std::string json_message(const char* what) {
    std::string out = what;
    // A token of the error message may be as long as the file.
    if (out.size() > kLongestMessage) out = out.substr(0, kLongestMessage) + "...";
    return out;
}

std::string dump_json(const char* function, const Json& json, int indent) {
    try {
        return json.dump(indent);
    } catch (const nlohmann::json::exception& error) {
        throw ValueError(
            fmt::format("{}: expected strings in UTF-8, got others: {}", function, json_message(error.what())));
    }
}

JsonValue::Document::Document(std::string file_name, std::string content, const JsonLimits& limits)
    : file(std::move(file_name)), text(std::move(content)), json(parse_json(file, text, limits)) {}

void JsonValue::fail(const std::string& what) const {
    throw FormatError(document_->file, Locator(document_->text).find(path_of(pointer_)),
                      fmt::format("{}: {}", pointer_.empty() ? "the whole" : pointer_, what));
}

void JsonValue::require_object() const {
    if (!json_->is_object()) fail(fmt::format("expected an object, got {}", json_->type_name()));
}

bool JsonValue::has(const char* key) const {
    require_object();
    const auto found = json_->find(key);
    return found != json_->end() && !found->is_null();
}

JsonValue JsonValue::operator[](const char* key) const { return at(std::string(key)); }

JsonValue JsonValue::at(const std::string& key) const {
    require_object();
    const auto found = json_->find(key);
    if (found == json_->end()) fail(fmt::format("expected a member '{}'", key));
    return {*document_, *found, pointer_ + "/" + escape_key(key)};
}

std::size_t JsonValue::size() const {
    if (!json_->is_array()) fail(fmt::format("expected a list, got {}", json_->type_name()));
    return json_->size();
}

JsonValue JsonValue::at(std::size_t index) const {
    if (index >= size()) fail(fmt::format("expected at least {} elements, got {}", index + 1, size()));
    return {*document_, (*json_)[index], pointer_ + "/" + std::to_string(index)};
}

const std::string& JsonValue::string() const {
    if (!json_->is_string()) fail(fmt::format("expected a string, got {}", json_->type_name()));
    return json_->get_ref<const std::string&>();
}

bool JsonValue::boolean() const {
    if (!json_->is_boolean()) fail(fmt::format("expected true or false, got {}", json_->type_name()));
    return json_->get<bool>();
}

double JsonValue::number() const {
    if (!json_->is_number()) fail(fmt::format("expected a number, got {}", json_->type_name()));
    return json_->get<double>();
}

std::int64_t JsonValue::integer(std::int64_t low, std::int64_t high) const {
    if (!json_->is_number_integer()) fail(fmt::format("expected an integer, got {}", json_->type_name()));
    const bool beyond =
        json_->is_number_unsigned() && json_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const std::int64_t value = beyond ? INT64_MAX : json_->get<std::int64_t>();
    if (beyond || value < low || value > high)
        fail(fmt::format("expected an integer from {} to {}, got {}", low, high, json_->dump()));
    return value;
}

char32_t JsonValue::character() const {
    const std::string& text = string();
    // The parser has checked that strings are UTF-8.
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const std::size_t size = text.empty() ? 0 : byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    if (size == 0 || text.size() != size) fail("expected one character");
    char32_t c = size == 1 ? byte(0) : byte(0) & (0x7FU >> size);
    for (std::size_t i = 1; i < size; ++i) c = c << 6 | (byte(i) & 0x3FU);
    return c;
}

bool JsonValue::boolean(const char* key, bool otherwise) const { return has(key) ? (*this)[key].boolean() : otherwise; }

std::string JsonValue::string(const char* key, const std::string& otherwise) const {
    return has(key) ? (*this)[key].string() : otherwise;
}

std::int64_t JsonValue::integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t otherwise) const {
    return has(key) ? (*this)[key].integer(low, high) : otherwise;
}

}  // namespace declivity::detail
