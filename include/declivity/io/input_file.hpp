// Layer 6. Reading files, with errors as exceptions and memory bounded by the actual file size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// A file opened for reading.
class DECLIVITY_API InputFile {
  public:
    /// @throws IoError if it cannot be opened or is a folder
    explicit InputFile(const std::filesystem::path& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    /// Path as given, for errors.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// Size when it was opened; 0 for pipes and devices, whose size is unknown.
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// Number of bytes read so far.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

    /// Reads until `bytes` is full or the file ends; returns the number of bytes read. @throws IoError
    std::size_t read_some(std::span<std::byte> bytes);
    /// Reads exactly that many bytes. @throws FormatError if the file ends before; IoError
    void read(std::span<std::byte> bytes);
    /// Sets the position of the next read. @throws IoError for pipes
    void seek(std::uint64_t position);

    /// Reads `count` bytes at a position of the opened file, even if its path now refers to another file. Does not move
    /// the position; thread-safe.
    /// @throws FormatError naming the file if it ends before, or if its size or modification time has changed since it
    /// was opened; OutOfMemory if the host cannot allocate the bytes; IoError, also for pipes
    [[nodiscard]] std::vector<std::byte> read_at(std::uint64_t position, std::uint64_t count) const;

  private:
    std::string name_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::int64_t modified_ = 0;  // nanoseconds
    std::uint64_t position_ = 0;
};

/// Reads a whole file. Memory grows as the bytes arrive.
/// @throws IoError if it cannot be opened or read
DECLIVITY_API std::vector<std::byte> read_file(const std::filesystem::path& path);

/// @}

}  // namespace declivity::io
