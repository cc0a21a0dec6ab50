#include "json_file.hpp"

#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

constexpr int kDeepest = 32;

std::string text_of(const std::filesystem::path& path, std::uint64_t most) {
    InputFile file(path);
    if (file.size() > most)
        throw FormatError(file.name(), most, fmt::format("a file of {} bytes, wants at most {}", file.size(), most));
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    text.resize(file.read_some(std::as_writable_bytes(std::span(text))));
    return text;
}

}  // namespace

JsonFile::JsonFile(const std::filesystem::path& path, std::uint64_t most)
    : name_(path.string()), text_(text_of(path, most)) {
    // The reader would take a byte order mark.
    if (text_.starts_with("\xef\xbb\xbf")) throw FormatError(name_, 0, "it begins with a byte order mark");
    try {
        root_ = nlohmann::json::parse(text_, [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
            if (depth > kDeepest) throw FormatError(name_, 0, fmt::format("nested deeper than {}", kDeepest));
            return true;
        });
    } catch (const nlohmann::json::parse_error& error) {
        throw FormatError(name_, error.byte > 0 ? error.byte - 1 : 0, fmt::format("not valid JSON: {}", error.what()));
    } catch (const nlohmann::json::exception& error) {
        throw FormatError(name_, 0, fmt::format("not valid JSON: {}", error.what()));
    }
    if (!root_.is_object()) throw FormatError(name_, 0, fmt::format("wants an object, got {}", root_.type_name()));
}

void JsonFile::fail(std::string_view key, const std::string& what) const {
    const std::size_t place = text_.find(fmt::format("\"{}\"", key));
    throw FormatError(name_, place == std::string::npos ? 0 : place, what);
}

}  // namespace declivity::io
