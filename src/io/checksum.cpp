#include "checksum.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <zlib.h>

#include "safetensors_header.hpp"

namespace declivity::io {
namespace {

class Crc {
  public:
    void add(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {  // zlib counts in 32 bits
            const auto part = bytes.first(std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
            value_ = crc32(value_, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
            bytes = bytes.subspan(part.size());
        }
    }
    /// Prefixed by its length, so that different lists of strings have different bytes.
    void add(std::string_view text) {
        add(text.size());
        add(std::as_bytes(std::span(text)));
    }
    void add(std::uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
    [[nodiscard]] std::uint32_t value() const { return static_cast<std::uint32_t>(value_); }
    [[nodiscard]] std::string str() const { return fmt::format("{:08x}", value_); }

  private:
    uLong value_ = crc32(0, nullptr, 0);
};

}  // namespace

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
    Crc crc;
    crc.add(bytes);
    return crc.value();
}

std::string checksum_of(const Safetensors& content) {
    Crc crc;
    for (const auto& [key, text] : content.metadata) {
        if (key == kChecksumKey) continue;
        crc.add(key);
        crc.add(text);
    }
    for (const auto& [name, array] : content.arrays) {
        crc.add(name);
        crc.add(safetensors_name(array.dtype));
        for (const std::int64_t size : array.shape.span()) crc.add(static_cast<std::uint64_t>(size));
        crc.add(array.bytes.size());
        crc.add(array.bytes);
    }
    return crc.str();
}

void require_checksum(const std::string& file, const Safetensors& content) {
    const auto stored = content.metadata.find(kChecksumKey);
    if (stored == content.metadata.end()) return;
    if (const std::string computed = checksum_of(content); computed != stored->second)
        throw FormatError(
            file, kSafetensorsLengthBytes,
            fmt::format("the file is damaged: expected content with checksum {}, got {}", stored->second, computed));
}

}  // namespace declivity::io
