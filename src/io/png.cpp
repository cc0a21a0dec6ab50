// Uses libpng's simplified interface, which reports errors by return value and does not expose its longjmp.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/io/png.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

constexpr std::array<std::uint8_t, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t kChunkFrame = 12;  // length, type and checksum
constexpr std::size_t kHeaderData = 13;  // of IHDR
constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 28;

struct PngImage : png_image {
    PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
    ~PngImage() { png_image_free(this); }
    PngImage(const PngImage&) = delete;
    PngImage& operator=(const PngImage&) = delete;
};

std::uint32_t big_endian_u32(std::span<const std::byte> bytes, std::size_t offset) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[offset + i]);
    return value;
}

// Smallest number of bytes of uncompressed pixels for such a header.
std::uint64_t raw_size(std::span<const std::byte> header) {
    const std::uint64_t width = big_endian_u32(header, 0), height = big_endian_u32(header, 4);
    const auto depth = std::to_integer<std::uint64_t>(header[8]);
    const auto color = std::to_integer<unsigned>(header[9]);
    const std::uint64_t channels = color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1;
    return height * ((width * depth * channels + 7) / 8);
}

// Decompresses pixel data into a small buffer to check that its size matches the header.
class PixelCounter {
  public:
    PixelCounter() {
        if (inflateInit(&stream_) != Z_OK) throw std::bad_alloc();
    }
    ~PixelCounter() { inflateEnd(&stream_); }
    PixelCounter(const PixelCounter&) = delete;
    PixelCounter& operator=(const PixelCounter&) = delete;

    void add(std::span<const std::byte> data) {
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
        stream_.avail_in = static_cast<uInt>(data.size());
        while (!ended_) {
            stream_.next_out = buffer_.data();
            stream_.avail_out = static_cast<uInt>(buffer_.size());
            const int code = inflate(&stream_, Z_NO_FLUSH);
            const std::size_t produced = buffer_.size() - stream_.avail_out;
            count_ += produced;
            ended_ = code != Z_OK;
            if (produced == 0 || code == Z_BUF_ERROR) {
                ended_ = code != Z_OK && code != Z_BUF_ERROR;
                return;
            }
        }
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }

  private:
    z_stream stream_{};
    std::vector<Bytef> buffer_ = std::vector<Bytef>(std::size_t{1} << 16);
    std::uint64_t count_ = 0;
    bool ended_ = false;
};

// Walks over the chunks, so that errors include the position, and rejects a header that claims more pixels than the
// file can contain, before anything is allocated for them. Returns the offset of the first pixel data.
std::uint64_t check_chunks(const std::string& file, std::span<const std::byte> bytes) {
    constexpr std::uint64_t kBestDeflateRatio = 1032;  // deflate cannot compress more than that
    constexpr std::uint64_t kUsualDeflateRatio = 50, kSmallBytes = std::uint64_t{1} << 20;
    const auto fail = [&](std::size_t offset, const std::string& what) { throw FormatError(file, offset, what); };
    for (std::size_t i = 0; i < kSignature.size(); ++i)
        if (i >= bytes.size() || std::to_integer<std::uint8_t>(bytes[i]) != kSignature[i]) fail(i, "no PNG signature");
    std::uint64_t data_begin = 0, compressed = 0;
    std::span<const std::byte> header;
    std::vector<std::span<const std::byte>> pixel_data;
    std::size_t position = kSignature.size();
    for (bool first = true;; first = false) {
        if (bytes.size() - position < kChunkFrame) fail(bytes.size(), "the file ends within a chunk");
        const std::size_t length = big_endian_u32(bytes, position);
        const std::string_view type(reinterpret_cast<const char*>(bytes.data()) + position + 4, 4);
        const std::size_t remaining = bytes.size() - position - kChunkFrame;
        if (length > remaining) fail(position, fmt::format("a chunk of {} bytes where {} are left", length, remaining));
        const auto* body = reinterpret_cast<const Bytef*>(bytes.data() + position + 4);
        if (crc32(crc32(0, nullptr, 0), body, static_cast<uInt>(length + 4)) !=
            big_endian_u32(bytes, position + 8 + length))
            fail(position, "a chunk with a wrong checksum");
        if (first) {
            if (type != "IHDR" || length != kHeaderData) fail(position, "the first chunk is no IHDR");
            header = bytes.subspan(position + 8, kHeaderData);
            const std::uint64_t width = big_endian_u32(header, 0), height = big_endian_u32(header, 4);
            if (height > 0 && width > kMaxPixels / height)
                fail(position + 8, fmt::format("{} x {} pixels, expected at most {}", width, height, kMaxPixels));
        }
        if (type == "IDAT") {
            if (data_begin == 0) data_begin = position;
            pixel_data.push_back(bytes.subspan(position + 8, length));
            compressed += length;
        }
        position += kChunkFrame + length;
        if (type == "IEND") break;
    }
    if (position != bytes.size()) fail(position, "bytes after the end of the picture");
    if (data_begin == 0) fail(position, "no pixel data");
    const std::uint64_t size = raw_size(header);
    const auto refuse = [&](std::uint64_t available) {
        fail(kSignature.size() + 8,
             fmt::format("a header that claims {} bytes of pixels, of which the file has {}", size, available));
    };
    if (size / kBestDeflateRatio > compressed) refuse(compressed * kBestDeflateRatio);
    // A highly compressed file may be truncated: its decompressed size is counted before memory is allocated.
    if (size / kUsualDeflateRatio > compressed && size > kSmallBytes) {
        PixelCounter counter;
        for (const auto& piece : pixel_data) counter.add(piece);
        if (counter.count() < size) refuse(counter.count());
    }
    return data_begin;
}

}  // namespace

Image8 read_png(const std::filesystem::path& path) {
    const FunctionScope function("io::read_png");
    const std::string file = path.string();
    const std::vector<std::byte> bytes = read_file(path);
    const std::uint64_t data_begin = check_chunks(file, bytes);
    PngImage png;
    if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
        throw FormatError(file, kSignature.size(), fmt::format("libpng reports: {}", png.message));
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // otherwise 16 bits would be interpreted as linear light
    const int channels = (png.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
    png.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    constexpr png_uint_32 kMaxSide = 1U << 24;
    if (png.width > kMaxSide || png.height > kMaxSide)
        throw FormatError(file, kSignature.size() + 8,
                          fmt::format("{} x {} pixels, expected sides of at most {}", png.width, png.height, kMaxSide));
    // Filled with zeros, which are visible through transparent pixels.
    Image8 image = Image8::filled(static_cast<int>(png.width), static_cast<int>(png.height), channels, 0);
    if (png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) == 0)
        throw FormatError(file, data_begin, fmt::format("libpng reports: {}", png.message));
    return image;
}

void write_png(const std::filesystem::path& path, const Image8& image) {
    const FunctionScope function("io::write_png");
    image.check("write_png");
    PngImage png;
    png.width = static_cast<png_uint_32>(image.width);
    png.height = static_cast<png_uint_32>(image.height);
    png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    // libpng's upper bound of the size, for any pixels.
    std::vector<std::byte> bytes(PNG_IMAGE_PNG_SIZE_MAX(png));
    png_alloc_size_t size = bytes.size();
    if (png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0)
        throw Error(fmt::format("write_png: cannot encode '{}': {}", path.string(), png.message));
    write_file(path, std::span(bytes).first(size));
}

}  // namespace declivity::io
