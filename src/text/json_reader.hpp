// Floor 5, private. JSON files of a known structure: each thing asked for is checked, and errors name file, byte and
// JSON pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace declivity::text {

using Json = nlohmann::json;

/// A value within a document, with its place. It refers to the document.
class JsonValue {
  public:
    /// A file's text and what it is. @throws FormatError where it is no JSON, or is nested deeper than 64 levels
    struct Document {
        std::string file;
        std::string text;
        Json json;
        Document(std::string file_name, std::string content);
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

}  // namespace declivity::text
