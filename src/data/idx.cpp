#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include <declivity/data/idx.hpp>
#include <declivity/io/gzip_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kExtentBytes = 4;

void read_header(io::GzipFile& file, std::span<std::byte> bytes) {
    if (file.read_some(bytes) < bytes.size())
        throw FormatError(file.name(), file.position(), "the file ends within the IDX header");
}

std::uint32_t big_endian(std::span<const std::byte> bytes) {
    std::uint32_t value = 0;
    for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
    return value;
}

IdxType type_of_code(const std::string& file, std::uint32_t code) {
    for (const IdxType type : {IdxType::u8, IdxType::i8, IdxType::i16, IdxType::i32, IdxType::f32, IdxType::f64})
        if (static_cast<std::uint32_t>(type) == code) return type;
    throw FormatError(file, 2, fmt::format("IDX type {:#04x}, expected 0x08, 0x09, 0x0b, 0x0c, 0x0d or 0x0e", code));
}

// Reads `wanted` bytes and checks that nothing follows. The size of gzip data is only known after reading, so the
// buffer grows with what has been read.
std::vector<std::byte> read_payload(io::GzipFile& file, std::uint64_t expected_bytes) {
    const std::uint64_t begin = file.position();
    const auto refuse = [&](std::uint64_t offset, std::string_view what) {
        throw FormatError(file.name(), offset,
                          fmt::format("{}, expected {} bytes after the header", what, expected_bytes));
    };
    if (!file.compressed() && file.file_size() != 0 && file.file_size() - begin < expected_bytes)
        refuse(file.file_size(), "the file ends");
    constexpr std::uint64_t kBestDeflateRatio = 1032;  // deflate cannot compress more than that
    if (file.compressed() && file.file_size() != 0 && expected_bytes / kBestDeflateRatio > file.file_size())
        refuse(begin, fmt::format("a compressed file of {} bytes", file.file_size()));
    std::vector<std::byte> bytes;
    constexpr std::uint64_t kFirstChunk = std::uint64_t{1} << 20;
    while (bytes.size() < expected_bytes) {
        const std::size_t current_size = bytes.size();
        bytes.resize(static_cast<std::size_t>(
            std::min<std::uint64_t>(expected_bytes, std::max<std::uint64_t>(2 * current_size, kFirstChunk))));
        if (file.read_some(std::span(bytes).subspan(current_size)) < bytes.size() - current_size)
            refuse(file.position(), "the file ends");
    }
    std::byte extra{};
    if (file.read_some({&extra, 1}) != 0) refuse(begin + expected_bytes, "bytes after the end");
    return bytes;
}

fs::path find_file(const fs::path& folder, const std::string& stem, const std::string& kind) {
    for (const char separator : {'-', '.'})
        for (const char* suffix : {"", ".gz"}) {
            fs::path path = folder / fmt::format("{}{}{}{}", stem, separator, kind, suffix);
            std::error_code ignored;
            if (fs::exists(path, ignored)) return path;
        }
    throw IoError("open", (folder / fmt::format("{}-{}[.gz]", stem, kind)).string(), ENOENT);
}

}  // namespace

std::size_t size_of(IdxType type) noexcept {
    switch (type) {
        case IdxType::u8:
        case IdxType::i8:
            return 1;
        case IdxType::i16:
            return 2;
        case IdxType::i32:
        case IdxType::f32:
            return 4;
        case IdxType::f64:
            return 8;
    }
    return 0;
}

IdxArray read_idx(const fs::path& path) {
    const FunctionScope function("read_idx");
    io::GzipFile file(path);
    std::array<std::byte, kMagicBytes> magic{};
    read_header(file, magic);
    if (magic[0] != std::byte{0} || magic[1] != std::byte{0})
        throw FormatError(file.name(), 0,
                          fmt::format("magic number {:#010x}, expected two zero bytes at the beginning of an IDX file",
                                      big_endian(magic)));
    IdxArray array;
    array.type = type_of_code(file.name(), std::to_integer<std::uint32_t>(magic[2]));
    const int rank = std::to_integer<int>(magic[3]);
    if (rank < 1 || rank > Shape::kMaxRank)
        throw FormatError(file.name(), 3, fmt::format("{} dimensions, expected 1 to {}", rank, Shape::kMaxRank));

    // Sizes of 0 are left out of the product: the strides of such a shape must not overflow either.
    std::uint64_t product = size_of(array.type);
    for (int axis = 0; axis < rank; ++axis) {
        std::array<std::byte, kExtentBytes> extent{};
        read_header(file, extent);
        const std::uint64_t value = big_endian(extent);
        array.shape.push_back(static_cast<std::int64_t>(value));
        constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        if (product > kMax / std::max<std::uint64_t>(value, 1))
            throw FormatError(file.name(), file.position() - kExtentBytes,
                              fmt::format("a shape of {} and more overflows 64 bits", array.shape.str()));
        product *= std::max<std::uint64_t>(value, 1);
    }
    array.bytes = read_payload(file, array.shape.numel() == 0 ? 0 : product);
    if constexpr (std::endian::native == std::endian::little)
        if (const std::size_t size = size_of(array.type); size > 1)
            for (std::size_t i = 0; i < array.bytes.size(); i += size)
                std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                             array.bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
    return array;
}

std::shared_ptr<const InMemoryDataset> load_mnist(const fs::path& folder, Split split) {
    const FunctionScope function("load_mnist");
    const std::string part = split == Split::train ? "train" : "t10k";
    const fs::path image_path = find_file(folder, part + "-images", "idx3-ubyte");
    const fs::path label_path = find_file(folder, part + "-labels", "idx1-ubyte");
    constexpr std::int64_t kClasses = 10;
    constexpr std::uint64_t kLabelsBegin = kMagicBytes + kExtentBytes;

    const IdxArray images = read_idx(image_path);
    if (images.type != IdxType::u8 || images.shape.rank() != 3 || images.shape[1] == 0 || images.shape[2] == 0)
        throw FormatError(
            image_path.string(), 2,
            fmt::format("IDX type {:#04x} of shape {}, expected bytes (0x08) of shape [count, height, width]",
                        static_cast<int>(images.type), images.shape.str()));
    const IdxArray labels = read_idx(label_path);
    if (labels.type != IdxType::u8 || labels.shape.rank() != 1)
        throw FormatError(label_path.string(), 2,
                          fmt::format("IDX type {:#04x} of shape {}, expected bytes (0x08) of shape [count]",
                                      static_cast<int>(labels.type), labels.shape.str()));
    if (labels.shape[0] != images.shape[0])
        throw FormatError(
            label_path.string(), kMagicBytes,
            fmt::format("{} labels, expected one for each of {} images", labels.shape[0], images.shape[0]));
    std::vector<std::int64_t> values;
    values.reserve(labels.bytes.size());
    for (const std::byte byte : labels.bytes) {
        const auto value = std::to_integer<std::int64_t>(byte);
        if (value >= kClasses)
            throw FormatError(label_path.string(), kLabelsBegin + values.size(),
                              fmt::format("label {}, expected 0 to {}", value, kClasses - 1));
        values.push_back(value);
    }
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(images.bytes.data());
    return std::make_shared<const InMemoryDataset>(Shape{1, images.shape[1], images.shape[2]},
                                                   std::vector<std::uint8_t>(pixels, pixels + images.bytes.size()),
                                                   std::move(values), kClasses);
}

}  // namespace declivity::data
