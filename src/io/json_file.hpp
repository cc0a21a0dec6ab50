// Layer 4, private. Small JSON files, such as what models say of themselves, with errors that tell the place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/json.hpp"

namespace declivity::io {

/// A JSON file that holds an object.
class JsonFile {
  public:
    /// @param most bytes that it may have
    /// @throws FormatError for what is larger, no JSON, nested deeper than detail::kMaxJsonDepth, or no object; IoError
    explicit JsonFile(const std::filesystem::path& path, std::uint64_t most = detail::JsonLimits{}.bytes);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const nlohmann::json& root() const noexcept { return root_; }
    /// @throws FormatError naming the file, at the first place where the text has `key` as a string
    [[noreturn]] void fail(std::string_view key, const std::string& what) const;

  private:
    std::string name_, text_;
    nlohmann::json root_;
};

}  // namespace declivity::io
