// Layer 1, private. Disk cache of program binaries. Never fails: on an I/O error the program is compiled.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>

namespace declivity::detail {

/// The cache file of one program: under DECLIVITY_CACHE_DIR, otherwise XDG_CACHE_HOME/declivity, otherwise
/// HOME/.cache/declivity. An empty DECLIVITY_CACHE_DIR disables the store.
class BinaryStore {
  public:
    BinaryStore(const DeviceInfo& device, const std::string& source, const std::string& options);
    [[nodiscard]] bool enabled() const { return !file_.empty(); }
    /// Returns the binary if an intact one for exactly this device, driver, source and options exists.
    [[nodiscard]] std::optional<std::vector<unsigned char>> load() const noexcept;
    /// Writes a temporary file and renames it, so that other processes see the whole file or none.
    void save(const std::vector<unsigned char>& binary) const noexcept;

  private:
    std::filesystem::path file_;  // empty: disabled
    std::string identity_;        // stored in the file, since the hash in its name may collide
};

}  // namespace declivity::detail
