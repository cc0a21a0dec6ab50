// Layer 4. Reading a file that may be compressed with gzip, told by its first bytes, not by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <declivity/export.hpp>

namespace declivity::io {

/// The content of a plain or gzip file (RFC 1952, several members too), read from the beginning to the end in
/// bounded memory.
class DECLIVITY_API GzipFile {
  public:
    /// @throws IoError when the file cannot be opened or read
    explicit GzipFile(const std::filesystem::path& path);
    ~GzipFile();
    GzipFile(const GzipFile&) = delete;
    GzipFile& operator=(const GzipFile&) = delete;

    [[nodiscard]] const std::string& name() const noexcept;
    /// True when the file begins as gzip files do.
    [[nodiscard]] bool compressed() const noexcept;
    /// Bytes of the file itself, compressed or not; 0 when it is a pipe or a device.
    [[nodiscard]] std::uint64_t file_size() const noexcept;
    /// Bytes of content read so far, counted after decompression.
    [[nodiscard]] std::uint64_t position() const noexcept;

    /// Reads until `bytes` is full or the content ends; returns how many bytes it read. The call that meets the end
    /// has verified gzip's checksum.
    /// @throws FormatError for damaged or truncated compression, at its offset in the file itself; IoError
    std::size_t read_some(std::span<std::byte> bytes);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace declivity::io
