// Layer 1, private. Program binaries on disk. Nothing here ever fails: what cannot be read or written is compiled.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>

namespace declivity::detail {

/// The file of one program: under DECLIVITY_CACHE_DIR, otherwise XDG_CACHE_HOME/declivity, otherwise
/// HOME/.cache/declivity. DECLIVITY_CACHE_DIR set to nothing switches the store off.
class BinaryStore {
  public:
    BinaryStore(const DeviceInfo& device, const std::string& source, const std::string& options);
    [[nodiscard]] bool enabled() const { return !file_.empty(); }
    /// The binary, when a whole one for exactly this device, driver, source and options is there.
    [[nodiscard]] std::optional<std::vector<unsigned char>> load() const noexcept;
    /// Writes a temporary file and renames it, so that other processes see a whole file or none.
    void save(const std::vector<unsigned char>& binary) const noexcept;

  private:
    std::filesystem::path file_;  // empty: off
    std::string identity_;        // stands in the file; a hash may collide, this may not
};

}  // namespace declivity::detail
