// Layer 6, private. Checksums of file contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <declivity/io/safetensors.hpp>

namespace declivity::io {

/// Metadata key of the checksum.
inline constexpr const char* kChecksumKey = "declivity.crc32";

/// CRC-32 of names, types, shapes and elements of all arrays, and of all metadata but the checksum itself, as 8
/// hexadecimal digits.
std::string checksum_of(const Safetensors& content);

/// CRC-32 as in zlib.
std::uint32_t crc32_of(std::span<const std::byte> bytes);

/// @throws FormatError naming the file if its metadata has a checksum that differs from that of its content
void require_checksum(const std::string& file, const Safetensors& content);

}  // namespace declivity::io
