// Safetensors files up to their arrays: checked headers, and reading of one array at a time.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "safetensors_header.hpp"

namespace declivity::io {
namespace {

// Describes a file by its first bytes.
std::string describe(std::span<const std::byte> start) {
    if (start.empty()) return "it is empty";
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kFormats{
        {{"PK\x03\x04", "a zip archive, like PyTorch's .pt and NumPy's .npz"},
         {"\x80\x02", "a Python pickle, like PyTorch's old .pt files"},
         {"\x93NUMPY", "a NumPy .npy file"},
         {"\x89HDF", "an HDF5 file"},
         {"GGUF", "a GGUF file"},
         {"\x1f\x8b", "compressed by gzip"},
         {"\x89PNG", "a PNG image"},
         {"version ", "text, perhaps a pointer that git-lfs left in place of the file"}}};
    const std::string_view bytes(reinterpret_cast<const char*>(start.data()), start.size());
    for (const auto& [magic, what] : kFormats)
        if (bytes.starts_with(magic)) return fmt::format("it is {}", what);
    std::string printable;
    for (const char c : bytes)
        printable += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return fmt::format("it begins with \"{}\"{}", printable,
                       start.size() <= kSafetensorsLengthBytes ? ", and that is all" : "");
}

SafetensorsHeader read_header(InputFile& file) {
    // Includes the first byte of the header, which shows whether this is a safetensors file.
    std::array<std::byte, kSafetensorsLengthBytes + 1> start{};
    const std::size_t got = file.read_some(start);
    if (got < start.size() || start.back() != std::byte{'{'})
        throw FormatError(
            file.name(), got < start.size() ? got : kSafetensorsLengthBytes,
            fmt::format("not a safetensors file, which has 8 bytes with the length of its header, then '{{'; {}",
                        describe(std::span(start).first(got))));
    const auto raw = std::span(start).first<kSafetensorsLengthBytes>();
    std::uint64_t length = 0;
    for (std::size_t i = raw.size(); i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(raw[i]);
    if (length > kSafetensorsMaxHeaderBytes)
        throw FormatError(file.name(), 0,
                          fmt::format("not a safetensors file, or a damaged one: its first 8 bytes would make a "
                                      "header of {} bytes, expected at most {}",
                                      length, kSafetensorsMaxHeaderBytes));
    if (file.size() < kSafetensorsLengthBytes || length > file.size() - kSafetensorsLengthBytes)
        throw FormatError(
            file.name(), 0,
            fmt::format("a header of {} bytes in a file of {}: it is cut off or damaged", length, file.size()));
    std::string json(static_cast<std::size_t>(length), '\0');
    if (!json.empty()) json[0] = '{';
    file.read(std::as_writable_bytes(std::span(json)).subspan(std::min<std::size_t>(1, json.size())));
    return parse_safetensors_header(file.name(), json);
}

// Sorts the arrays by offset and checks that they fill the file exactly.
void check_layout(const InputFile& file, std::vector<SafetensorsEntry>& entries) {
    const std::uint64_t data_size = file.size() - file.position();
    std::ranges::sort(entries, {}, [](const SafetensorsEntry& e) { return std::tie(e.begin, e.end); });
    std::uint64_t expected = 0;
    for (const SafetensorsEntry& entry : entries) {
        const auto fail = [&](const std::string& what) {
            throw FormatError(file.name(), entry.offset, fmt::format("array '{}' {}", entry.name, what));
        };
        if (entry.begin != expected || entry.end < entry.begin)
            fail(fmt::format("is at bytes {} to {} of the data, expected to begin at {}", entry.begin, entry.end,
                             expected));
        if (entry.end > data_size) fail(fmt::format("ends at byte {} of {} bytes of data", entry.end, data_size));
        const std::uint64_t size = entry.end - entry.begin, element_bytes = size_of(entry.dtype);
        if (size % element_bytes != 0 || size / element_bytes != static_cast<std::uint64_t>(entry.shape.numel()))
            fail(
                fmt::format("has {} bytes for {} of shape {}", size, safetensors_name(entry.dtype), entry.shape.str()));
        expected = entry.end;
    }
    if (expected != data_size)
        throw FormatError(file.name(), file.position() + expected,
                          fmt::format("{} bytes after the last array", data_size - expected));
}

}  // namespace

SafetensorsHeader read_safetensors_header(InputFile& file) {
    SafetensorsHeader header = read_header(file);
    check_layout(file, header.entries);
    return header;
}

void check_safetensors_array(const std::string& file, std::uint64_t begin, const std::string& name,
                             const HostArray& array) {
    if (array.dtype != DType::boolean) return;
    for (std::size_t i = 0; i < array.bytes.size(); ++i)
        if (array.bytes[i] > std::byte{1})
            throw FormatError(file, begin + i,
                              fmt::format("array '{}' has a BOOL of {}, expected 0 or 1", name,
                                          std::to_integer<int>(array.bytes[i])));
}

HostArray read_safetensors_array(InputFile& file, const SafetensorsEntry& entry) {
    const std::uint64_t begin = file.position();
    HostArray array{entry.dtype, entry.shape, {}};
    array.bytes.resize(static_cast<std::size_t>(entry.end - entry.begin));
    file.read(array.bytes);
    check_safetensors_array(file.name(), begin, entry.name, array);
    return array;
}

}  // namespace declivity::io
