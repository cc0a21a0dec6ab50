#include "json_file.hpp"

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {

JsonFile::JsonFile(const std::filesystem::path& path, std::uint64_t most)
    : name_(path.string()),
      text_(detail::read_json_text(path, {.bytes = most})),
      root_(detail::parse_json(name_, text_)) {
    if (!root_.is_object()) throw FormatError(name_, 0, fmt::format("expected an object, got {}", root_.type_name()));
}

void JsonFile::fail(std::string_view key, const std::string& what) const {
    const std::size_t place = text_.find(fmt::format("\"{}\"", key));
    throw FormatError(name_, place == std::string::npos ? 0 : place, what);
}

}  // namespace declivity::io
