#include "json_reader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "unicode.hpp"

namespace declivity::text {
namespace {

constexpr int kDepth = 64;

/// Finds where in a valid document the value of a pointer begins.
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
        bool any = false;  // of two members with one name the last one counts
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
    // Behind one value.
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

std::string escaped(const std::string& key) {
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

void check_depth(const std::string& file, std::string_view text) {
    int depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '"') {
            for (++at; at < text.size() && text[at] != '"'; ++at)
                if (text[at] == '\\') ++at;
        } else if (c == '{' || c == '[') {
            if (++depth > kDepth)
                throw FormatError(file, at, fmt::format("the JSON is nested deeper than {} levels", kDepth));
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
}

}  // namespace

JsonValue::Document::Document(std::string file_name, std::string content)
    : file(std::move(file_name)), text(std::move(content)) {
    check_depth(file, text);
    try {
        json = Json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        throw FormatError(file, error.byte > 0 ? error.byte - 1 : 0,
                          fmt::format("this is not valid JSON: {}", error.what()));
    } catch (const nlohmann::json::exception& error) {  // numbers that no double has
        throw FormatError(file, 0, fmt::format("this is not valid JSON: {}", error.what()));
    }
}

void JsonValue::fail(const std::string& what) const {
    throw FormatError(document_->file, Locator(document_->text).find(path_of(pointer_)),
                      fmt::format("{}: {}", pointer_.empty() ? "the whole" : pointer_, what));
}

void JsonValue::require_object() const {
    if (!json_->is_object()) fail(fmt::format("wants an object, got {}", json_->type_name()));
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
    if (found == json_->end()) fail(fmt::format("wants a member '{}'", key));
    return {*document_, *found, pointer_ + "/" + escaped(key)};
}

std::size_t JsonValue::size() const {
    if (!json_->is_array()) fail(fmt::format("wants a list, got {}", json_->type_name()));
    return json_->size();
}

JsonValue JsonValue::at(std::size_t index) const {
    if (index >= size()) fail(fmt::format("wants at least {} elements, got {}", index + 1, size()));
    return {*document_, (*json_)[index], pointer_ + "/" + std::to_string(index)};
}

const std::string& JsonValue::string() const {
    if (!json_->is_string()) fail(fmt::format("wants a string, got {}", json_->type_name()));
    return json_->get_ref<const std::string&>();
}

bool JsonValue::boolean() const {
    if (!json_->is_boolean()) fail(fmt::format("wants true or false, got {}", json_->type_name()));
    return json_->get<bool>();
}

double JsonValue::number() const {
    if (!json_->is_number()) fail(fmt::format("wants a number, got {}", json_->type_name()));
    return json_->get<double>();
}

std::int64_t JsonValue::integer(std::int64_t low, std::int64_t high) const {
    if (!json_->is_number_integer()) fail(fmt::format("wants an integer, got {}", json_->type_name()));
    const bool beyond =
        json_->is_number_unsigned() && json_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const std::int64_t value = beyond ? INT64_MAX : json_->get<std::int64_t>();
    if (beyond || value < low || value > high)
        fail(fmt::format("wants an integer from {} to {}, got {}", low, high, json_->dump()));
    return value;
}

char32_t JsonValue::character() const {
    const std::string& text = string();
    if (text.empty() || decode_at(text, 0).size != text.size()) fail("wants one character");
    return decode_at(text, 0).c;
}

bool JsonValue::boolean(const char* key, bool otherwise) const { return has(key) ? (*this)[key].boolean() : otherwise; }

std::string JsonValue::string(const char* key, const std::string& otherwise) const {
    return has(key) ? (*this)[key].string() : otherwise;
}

std::int64_t JsonValue::integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t otherwise) const {
    return has(key) ? (*this)[key].integer(low, high) : otherwise;
}

}  // namespace declivity::text
