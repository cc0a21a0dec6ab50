// Layer 4. Reading files: errors as exceptions, and nothing allocated for bytes that are not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::io {

/// A file opened for reading.
class DECLIVITY_API InputFile {
  public:
    /// @throws IoError when it cannot be opened or is a folder
    explicit InputFile(const std::filesystem::path& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    /// Its path, as given: the name used in errors.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// Bytes in the file when it was opened; 0 for pipes and devices, whose size is not known.
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// Bytes read so far.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

    /// Reads until `bytes` is full or the file ends; returns how many bytes it read. @throws IoError
    std::size_t read_some(std::span<std::byte> bytes);
    /// Reads exactly that many bytes. @throws FormatError when the file ends before; IoError
    void read(std::span<std::byte> bytes);
    /// What is read next begins at this byte. @throws IoError for pipes
    void seek(std::uint64_t position);

    /// `count` bytes at a place of the file that was opened, whatever its path names now. The position stays, and
    /// several threads may call this at once.
    /// @throws FormatError naming the file where it ends before, or where its size or time of modification differs
    /// from that when it was opened; OutOfMemory where the host has no room for the bytes; IoError, for pipes too
    [[nodiscard]] std::vector<std::byte> read_at(std::uint64_t position, std::uint64_t count) const;

  private:
    std::string name_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::int64_t modified_ = 0;  // nanoseconds
    std::uint64_t position_ = 0;
};

/// The whole content of a file. Memory grows as the bytes arrive.
/// @throws IoError when it cannot be opened or read
DECLIVITY_API std::vector<std::byte> read_file(const std::filesystem::path& path);

}  // namespace declivity::io
