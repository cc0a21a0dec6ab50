// Layer 6. Reading a file that may be gzip-compressed, detected by its first bytes, not by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <declivity/export.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Contents of a plain or gzip file (RFC 1952, including several members), read sequentially in bounded memory.
class DECLIVITY_API GzipFile {
  public:
    /// @throws IoError when the file cannot be opened or read
    explicit GzipFile(const std::filesystem::path& path);
    ~GzipFile();
    GzipFile(const GzipFile&) = delete;
    GzipFile& operator=(const GzipFile&) = delete;

    [[nodiscard]] const std::string& name() const noexcept;
    /// True if the file is gzip-compressed.
    [[nodiscard]] bool compressed() const noexcept;
    /// Size of the file itself, compressed or not; 0 for a pipe or a device.
    [[nodiscard]] std::uint64_t file_size() const noexcept;
    /// Number of decompressed bytes read so far.
    [[nodiscard]] std::uint64_t position() const noexcept;

    /// Reads until `bytes` is full or the contents end; returns the number of bytes read. The call that reaches the end
    /// has verified the gzip checksum.
    /// @throws FormatError for corrupt or truncated compression, with its offset in the file itself; IoError
    std::size_t read_some(std::span<std::byte> bytes);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// @}

}  // namespace declivity::io
