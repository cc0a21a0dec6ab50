// Layer 6, private. Small JSON files, such as model configs, with errors that include the position.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/json.hpp"

namespace declivity::io {

/// A JSON file whose root is an object.
class JsonFile {
  public:
    /// @param max_bytes size limit
    /// @throws FormatError if it is larger, not valid JSON, nested deeper than detail::kMaxJsonDepth, or not an object;
    /// IoError
    explicit JsonFile(const std::filesystem::path& path, std::uint64_t max_bytes = detail::JsonLimits{}.bytes);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const nlohmann::json& root() const noexcept { return root_; }
    /// @throws FormatError naming the file and the position of the first occurrence of `key` as a string
    [[noreturn]] void fail(std::string_view key, const std::string& what) const;

  private:
    std::string name_, text_;
    nlohmann::json root_;
};

}  // namespace declivity::io
