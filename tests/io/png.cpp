// PNG files: round trips, conversions of other formats, damaged files.
#include <zlib.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <declivity/io/png.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::io;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

Image8 noise(int width, int height, int channels, unsigned seed) {
    std::mt19937 random(seed);
    Image8 image = Image8::filled(width, height, channels, 0);
    for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(random());
    return image;
}

void append_number(Bytes& bytes, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

void append_chunk(Bytes& png, const std::string& type, const Bytes& body) {
    append_number(png, static_cast<std::uint32_t>(body.size()));
    Bytes sealed = bytes_of(type);
    sealed.insert(sealed.end(), body.begin(), body.end());
    png.insert(png.end(), sealed.begin(), sealed.end());
    append_number(png, static_cast<std::uint32_t>(crc32(0, sealed.data(), static_cast<uInt>(sealed.size()))));
}

// A PNG file made without libpng from raw scan lines (each with its filter byte).
Bytes png_of(std::uint32_t width, std::uint32_t height, std::uint8_t depth, std::uint8_t color, const Bytes& lines,
             const Bytes& palette = {}) {
    Bytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    Bytes header;
    append_number(header, width);
    append_number(header, height);
    header.insert(header.end(), {depth, color, 0, 0, 0});
    append_chunk(png, "IHDR", header);
    if (!palette.empty()) append_chunk(png, "PLTE", palette);
    Bytes packed(compressBound(static_cast<uLong>(lines.size())));
    uLongf size = static_cast<uLongf>(packed.size());
    REQUIRE(compress(packed.data(), &size, lines.data(), static_cast<uLong>(lines.size())) == Z_OK);
    append_chunk(png, "IDAT", Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)));
    append_chunk(png, "IEND", {});
    return png;
}

std::string fmt_size(const Image8& image) { return std::to_string(image.width) + " x " + std::to_string(image.height); }

std::uint64_t png_refused_at(const fs::path& path, const Bytes& bytes) {
    put_file(path, bytes);
    try {
        (void)read_png(path);
    } catch (const FormatError& error) {
        CHECK(error.file() == path.string());
        return error.offset();
    }
    FAIL_CHECK("the file was accepted");
    return 0;
}

}  // namespace

TEST_CASE("png: round trip") {
    const TempFolder folder;
    const fs::path path = folder / "picture.png";
    for (const int channels : {1, 3})
        for (const auto& [width, height] : {std::pair{1, 1}, {1, 9}, {7, 1}, {33, 65}}) {
            const Image8 image = noise(width, height, channels, static_cast<unsigned>(width + height));
            write_png(path, image);
            CHECK_UNARY(read_png(path) == image);
        }
    CHECK(folder.names() == std::vector<std::string>{"picture.png"});
}

TEST_CASE("png: other pixel formats are converted") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    put_file(path, png_of(2, 1, 8, 0, {0, 7, 200}));  // grey
    CHECK_UNARY(read_png(path) == Image8{2, 1, 1, {7, 200}});
    put_file(path, png_of(3, 1, 1, 0, {0, 0b10100000}));  // grey, one bit
    CHECK_UNARY(read_png(path) == Image8{3, 1, 1, {255, 0, 255}});
    put_file(path, png_of(2, 1, 16, 0, {0, 0x40, 0x40, 0xc7, 0xc7}));  // grey, 16 bits
    CHECK_UNARY(read_png(path) == Image8{2, 1, 1, {0x40, 0xc7}});
    put_file(path, png_of(2, 1, 8, 3, {0, 1, 0}, {1, 2, 3, 40, 50, 60}));  // palette
    CHECK_UNARY(read_png(path) == Image8{2, 1, 3, {40, 50, 60, 1, 2, 3}});
    put_file(path, png_of(2, 1, 8, 6, {0, 9, 8, 7, 255, 9, 8, 7, 0}));  // colour with alpha
    CHECK_UNARY(read_png(path) == Image8{2, 1, 3, {9, 8, 7, 0, 0, 0}});
    put_file(path, png_of(1, 2, 8, 2,
                          {0, 10, 20, 30, 2, 1, 1, 1}));  // colour; line two is stored as the difference to line one
    CHECK_UNARY(read_png(path) == Image8{1, 2, 3, {10, 20, 30, 11, 21, 31}});
}

TEST_CASE("png: damaged files are refused with an offset") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    const Bytes valid = png_of(2, 1, 8, 0, {0, 7, 200});
    constexpr std::uint64_t kHeader = 8, kData = 8 + 25;
    Bytes wrong = valid;
    wrong[1] = 'p';
    CHECK(png_refused_at(path, wrong) == 1);
    wrong = valid;
    wrong[kData + 9] ^= 1;
    CHECK(png_refused_at(path, wrong) == kData);
    wrong = valid;
    wrong.push_back(0);
    CHECK(png_refused_at(path, wrong) == valid.size());
    wrong.resize(valid.size() - 1);
    CHECK(png_refused_at(path, wrong) == valid.size() - 1);
    CHECK(png_refused_at(path, {}) == 0);
    // Valid checksums, invalid content: too few pixels, an unknown filter, a header that declares far too much.
    CHECK(png_refused_at(path, png_of(2, 1, 8, 0, {0, 7})) == kData);
    CHECK(png_refused_at(path, png_of(2, 1, 8, 0, {9, 7, 200})) == kData);
    CHECK(png_refused_at(path, png_of(0x7fffffff, 0x7fffffff, 16, 6, {0, 7})) == kHeader + 8);
    CHECK(png_refused_at(path, png_of(100000, 100000, 8, 0, {0, 7})) == kHeader + 8);
    CHECK(png_refused_at(path, png_of(0, 1, 8, 0, {0})) == kHeader);
}

TEST_CASE("png: fuzzed files") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    const auto read = [](const fs::path& file) { read_png(file).check("test"); };
    write_png(path, noise(9, 7, 3, 1));
    const Bytes valid = get_file(path);
    CHECK(truncate_everywhere(valid, path, read).accepted == 0);
    CHECK(damage_at_random(valid, path, 2000, read).refused > 1900);
    // The checksums of chunks protect the compressed pixels, so these are damaged before sealing, too.
    std::mt19937 random(3);
    int refused = 0;
    for (int round = 0; round < 2000; ++round) {
        Bytes lines(7 * 28);
        for (std::uint8_t& byte : lines) byte = static_cast<std::uint8_t>(random() % 5);
        lines.resize(random() % 2 == 0 ? lines.size() : random() % lines.size());
        constexpr std::uint8_t kDepths[] = {1, 2, 4, 8, 16, 3}, kColors[] = {0, 2, 3, 4, 6, 1};
        const auto width = static_cast<std::uint32_t>(random() % 10), height = static_cast<std::uint32_t>(random() % 8);
        Bytes file =
            png_of(width, height, kDepths[random() % 6], kColors[random() % 6], lines, Bytes(3 * (random() % 6), 17));
        put_file(path, file);
        try {
            read(path);
        } catch (const FormatError&) {
            ++refused;
        }
    }
    CHECK(refused > 500);
    CHECK(refused < 2000);
}

TEST_CASE("png: a header that declares more pixels than the file has is refused before memory is allocated") {
    const TempFolder folder;
    const auto error_of = [&](const Bytes& bytes) -> std::string {
        put_file(folder / "f", bytes);
        try {
            return fmt_size(read_png(folder / "f"));
        } catch (const FormatError& error) {
            CHECK(error.file() == (folder / "f").string());
            CHECK(error.offset() == 16);
            return error.what();
        }
    };
    // Text chunks do not count as pixel data.
    Bytes padded = png_of(16000, 16000, 8, 2, {0, 1, 2, 3});
    Bytes text(131'000, 'x');
    text[3] = 0;
    Bytes chunk;
    append_chunk(chunk, "tEXt", text);
    padded.insert(padded.begin() + 33, chunk.begin(), chunk.end());
    CHECK(error_of(padded).find("claims 768000000 bytes of pixels, of which the file has") != std::string::npos);
    // Half of the declared data is missing, and the rest is highly compressible.
    Bytes lines(16000 / 8 * 8000 + 8000);
    for (std::size_t i = 0; i < lines.size(); i += 2001)
        for (std::size_t k = 300; k < 2001; k += 300) lines[i + k] = static_cast<std::uint8_t>((i / 2001 + k) % 251);
    CHECK(error_of(png_of(16000, 16000, 1, 3, lines, {1, 2, 3, 4, 5, 6})).find("of which the file has 16008000") !=
          std::string::npos);
    CHECK(error_of(png_of(1U << 20, 1U << 20, 1, 0, {0})).find("expected at most 268435456") != std::string::npos);
    // All of it is present.
    lines.assign(4000 / 8 * 4000 + 4000, 0);
    CHECK(error_of(png_of(4000, 4000, 1, 3, lines, {1, 2, 3, 4, 5, 6})) == "4000 x 4000");
}

TEST_CASE("png: mismatched image sizes and impossible targets") {
    const TempFolder folder;
    CHECK_THROWS_AS(write_png(folder / "f", Image8{2, 2, 1, {1, 2, 3}}), ValueError);
    CHECK_THROWS_AS(write_png(folder / "f", Image8{1, 1, 2, {1, 2}}), ValueError);
    CHECK_THROWS_AS(write_png(folder / "f", Image8{}), ValueError);
    CHECK_THROWS_AS(write_png(folder / "no/f", Image8{1, 1, 1, {1}}), IoError);
    CHECK_THROWS_AS((void)read_png(folder / "f"), IoError);
    CHECK(folder.names().empty());
}

TEST_CASE("image: planes of floats and back") {
    const Image8 image = noise(5, 4, 3, 9);
    const std::vector<float> planes = image.to_planes();
    CHECK(planes[0] == static_cast<float>(image.pixels[0]) / 255.0F);
    CHECK(planes[20] == static_cast<float>(image.pixels[1]) / 255.0F);
    CHECK_UNARY(Image8::from_planes(planes, image.shape()) == image);
    const std::vector<float> out_of_range{-1.0F, 2.0F, 0.5F, std::numeric_limits<float>::quiet_NaN()};
    CHECK(Image8::from_planes(out_of_range, {1, 2, 2}).pixels == std::vector<std::uint8_t>{0, 255, 128, 0});
    CHECK_THROWS_AS((void)Image8::from_planes(out_of_range, {2, 1, 2}), ShapeError);
    CHECK_THROWS_AS((void)Image8::from_planes(out_of_range, {1, 2, 3}), ShapeError);
    CHECK_THROWS_AS((void)Image8::from_planes(out_of_range, {4}), ShapeError);
    CHECK_THROWS_AS((void)Image8::filled(0, 1, 1, 0), ValueError);
}

TEST_CASE("png: photographs") {
    const auto path = real_data("images/chelsea.png");
    if (!path) return;
    const Image8 cat = read_png(*path);
    CHECK(cat.shape() == Shape{3, 300, 451});
    // Mean red, green and blue, from another PNG reader.
    double sums[3] = {0, 0, 0};
    for (std::size_t i = 0; i < cat.pixels.size(); ++i) sums[i % 3] += cat.pixels[i];
    CHECK(sums[0] / (300 * 451) == doctest::Approx(147.6731).epsilon(1e-5));
    CHECK(sums[1] / (300 * 451) == doctest::Approx(111.4445).epsilon(1e-5));
    CHECK(sums[2] / (300 * 451) == doctest::Approx(86.7979).epsilon(1e-5));
}
