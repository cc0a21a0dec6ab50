// Layer 1, private. JSON parsing for all formats that the library reads: limits of depth and size, each value checked
// on access, and errors that name the file, the byte and the JSON pointer. No exception of the JSON library leaves
// these functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace declivity::detail {

using Json = nlohmann::json;

/// Maximum nesting depth of arrays and objects. Copying, comparing and writing a tree are recursive.
inline constexpr int kMaxJsonDepth = 64;

/// A tree takes up to about 100 bytes for each value, plus the strings: 16 million values are 1.6 GB.
struct JsonLimits {
    std::uint64_t bytes = std::uint64_t{100} << 20;
    std::uint64_t values = std::uint64_t{1} << 24;
};

/// Reads the text of a JSON file, at most `limits.bytes` bytes.
/// @throws FormatError for a larger file; IoError, for a folder too
std::string read_json_text(const std::filesystem::path& path, const JsonLimits& limits = {});

/// Checks depth and size of a text before it is parsed, in constant memory.
/// @throws FormatError naming `file` and the byte
void check_json_limits(const std::string& file, std::string_view text, const JsonLimits& limits = {});

/// Parses a JSON document.
/// @throws FormatError naming `file` and the byte for a text that exceeds the limits, is not valid JSON, begins with a
/// byte order mark or contains a number out of the range of double
Json parse_json(const std::string& file, std::string_view text, const JsonLimits& limits = {});
/// The message of the JSON library, truncated to a bounded length.
std::string json_message(const char* what);

/// Serialises a tree. @throws ValueError naming `function` if a string in it is not UTF-8
std::string dump_json(const char* function, const Json& json, int indent = -1);

/// A value within a document, with its position. It refers to the document.
class JsonValue {
  public:
    /// A file's text and the parsed tree. @throws FormatError as parse_json
    struct Document {
        std::string file;
        std::string text;
        Json json;
        Document(std::string file_name, std::string content, const JsonLimits& limits = {});
    };
    explicit JsonValue(const Document& document) : document_(&document), json_(&document.json) {}

    [[nodiscard]] const Json& json() const noexcept { return *json_; }
    [[nodiscard]] bool is_null() const noexcept { return json_->is_null(); }
    [[nodiscard]] bool has(const char* key) const;  ///< and not null
    /// Returns a member. @throws FormatError unless this is an object that has it
    [[nodiscard]] JsonValue operator[](const char* key) const;
    [[nodiscard]] JsonValue at(std::size_t index) const;
    [[nodiscard]] JsonValue at(const std::string& key) const;
    [[nodiscard]] std::size_t size() const;  ///< @throws FormatError unless this is an array

    // @throws FormatError for another type
    [[nodiscard]] const std::string& string() const;
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] double number() const;
    [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
    /// Returns a string of one character. @throws FormatError for another length
    [[nodiscard]] char32_t character() const;
    void require_object() const;
    [[nodiscard]] const std::string& type() const { return (*this)["type"].string(); }

    // Members that may be missing or null.
    [[nodiscard]] bool boolean(const char* key, bool otherwise) const;
    [[nodiscard]] std::string string(const char* key, const std::string& otherwise) const;
    [[nodiscard]] std::int64_t integer(const char* key, std::int64_t low, std::int64_t high,
                                       std::int64_t otherwise) const;

    [[noreturn]] void fail(const std::string& what) const;

  private:
    JsonValue(const Document& document, const Json& json, std::string pointer)
        : document_(&document), json_(&json), pointer_(std::move(pointer)) {}

    const Document* document_;
    const Json* json_;
    std::string pointer_ = {};
};

}  // namespace declivity::detail
