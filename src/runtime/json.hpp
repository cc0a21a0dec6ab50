// Layer 1, private. JSON of every format that the library reads: one limit of depth and size, each value checked where
// it is used, and errors that name file, byte and JSON pointer. No exception of the JSON library leaves these
// functions.
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

/// Lists and objects within one another, at most. Copying, comparing and writing a tree are recursive.
inline constexpr int kMaxJsonDepth = 64;

/// A tree takes up to about 100 bytes of memory for each value beside the texts: 16 million values are 1.6 GB.
struct JsonLimits {
    std::uint64_t bytes = std::uint64_t{100} << 20;
    std::uint64_t values = std::uint64_t{1} << 24;
};

/// The text of a JSON file, of which no more than `limits.bytes` are read.
/// @throws FormatError for a larger one; IoError, for a folder too
std::string read_json_text(const std::filesystem::path& path, const JsonLimits& limits = {});

/// Checks depth and size of a text before it is parsed, in constant memory.
/// @throws FormatError naming `file` and the byte
void check_json_limits(const std::string& file, std::string_view text, const JsonLimits& limits = {});

/// A text of a JSON document as a tree.
/// @throws FormatError naming `file` and the byte for a text beyond the limits, for one that is not valid JSON, that
/// begins with a byte order mark or holds a number that a double cannot hold
Json parse_json(const std::string& file, std::string_view text, const JsonLimits& limits = {});
/// The message of the JSON library, cut to a length that an error can hold.
std::string json_message(const char* what);

/// The text of a tree. @throws ValueError naming `function` where a text in it is not UTF-8
std::string dump_json(const char* function, const Json& json, int indent = -1);

/// A value within a document, with its place. It refers to the document.
class JsonValue {
  public:
    /// A file's text and what it is. @throws FormatError as parse_json
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
    /// A member. @throws FormatError unless this is an object that has it
    [[nodiscard]] JsonValue operator[](const char* key) const;
    [[nodiscard]] JsonValue at(std::size_t index) const;
    [[nodiscard]] JsonValue at(const std::string& key) const;
    [[nodiscard]] std::size_t size() const;  ///< @throws FormatError unless this is a list

    // @throws FormatError for another type
    [[nodiscard]] const std::string& string() const;
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] double number() const;
    [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
    /// One character. @throws FormatError for more or less
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
