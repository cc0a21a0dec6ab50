#include "json_file.hpp"

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {

JsonFile::JsonFile(const std::filesystem::path& path, std::uint64_t max_bytes)
    : name_(path.string()),
      text_(detail::read_json_text(path, {.bytes = max_bytes})),
      root_(detail::parse_json(name_, text_)) {
    if (!root_.is_object()) throw FormatError(name_, 0, fmt::format("expected an object, got {}", root_.type_name()));
}

void JsonFile::fail(std::string_view key, const std::string& what) const {
    const std::size_t position = text_.find(fmt::format("\"{}\"", key));
    throw FormatError(name_, position == std::string::npos ? 0 : position, what);
}

}  // namespace declivity::io
