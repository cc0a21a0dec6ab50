// IDX files of every type, plain and compressed; damaged files; MNIST folders, and the real MNIST if present.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <declivity/data/idx.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/gzip.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::data;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

void append_big_endian(Bytes& bytes, std::uint64_t value, int count) {
    for (int i = count - 1; i >= 0; --i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

Bytes idx_header(std::uint8_t type, std::initializer_list<std::uint32_t> shape) {
    Bytes bytes{0, 0, type, static_cast<std::uint8_t>(shape.size())};
    for (const std::uint32_t extent : shape) append_big_endian(bytes, extent, 4);
    return bytes;
}

template <class T>
void check_type(std::uint8_t code, const std::vector<T>& values) {
    Bytes bytes = idx_header(code, {2, static_cast<std::uint32_t>(values.size() / 2)});
    for (const T value : values) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof(T));  // the tests run on little-endian machines
        append_big_endian(bytes, bits, sizeof(T));
    }
    const TempFolder folder;
    put_file(folder / "plain", bytes);
    put_file(folder / "packed", gzip(bytes));
    for (const char* name : {"plain", "packed"}) {
        const IdxArray array = read_idx(folder / name);
        CHECK(static_cast<int>(array.type) == code);
        CHECK(size_of(array.type) == sizeof(T));
        CHECK(array.shape == Shape{2, static_cast<std::int64_t>(values.size() / 2)});
        REQUIRE(array.bytes.size() == values.size() * sizeof(T));
        CHECK(std::memcmp(array.bytes.data(), values.data(), array.bytes.size()) == 0);
    }
}

std::uint64_t offset_of_error(const fs::path& path) {
    try {
        (void)read_idx(path);
    } catch (const FormatError& error) {
        return error.offset();
    }
    FAIL("the file was accepted");
    return 0;
}

// Three 2 x 3 images with pixels 0, 1, 2, ... and the labels 7, 0, 9.
struct TinyMnist {
    Bytes images = idx_header(8, {3, 2, 3});
    Bytes labels = idx_header(8, {3});
    TinyMnist() {
        for (std::uint8_t i = 0; i < 18; ++i) images.push_back(i);
        labels.insert(labels.end(), {7, 0, 9});
    }
};

void check_tiny(const fs::path& folder, Split split) {
    const auto set = load_mnist(folder, split);
    CHECK(set->size() == 3);
    CHECK(set->shape() == Shape{1, 2, 3});
    CHECK(set->classes() == 10);
    CHECK(set->label(0) == 7);
    CHECK(set->label(2) == 9);
    std::vector<float> features(6);
    set->read(1, features);
    for (std::size_t i = 0; i < 6; ++i) CHECK(features[i] == static_cast<float>(6 + i) / 255.0F);
}

}  // namespace

TEST_CASE("idx: every type, plain and compressed") {
    check_type<std::uint8_t>(0x08, {0, 1, 128, 255});
    check_type<std::int8_t>(0x09, {0, 1, -128, 127, -1, 5});
    check_type<std::int16_t>(0x0B, {0, 258, -32768, -2});
    check_type<std::int32_t>(0x0C, {1, 0x01020304, INT32_MIN, -1});
    check_type<float>(0x0D, {0.0F, -1.5F, 3.14159F, 1e30F});
    check_type<double>(0x0E, {0.0, -1.5, 3.14159, 1e300});
}

TEST_CASE("idx: damaged files are refused with an offset") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    const Bytes valid = TinyMnist().images;
    const auto refuse_at = [&](const Bytes& bytes) {
        put_file(path, bytes);
        const std::uint64_t plain_offset = offset_of_error(path);
        put_file(path, gzip(bytes));
        CHECK(offset_of_error(path) == plain_offset);
        return plain_offset;
    };
    const auto with_byte = [&](std::size_t offset, std::uint8_t value) {
        Bytes bytes = valid;
        bytes[offset] = value;
        return bytes;
    };
    const auto with_size = [&](std::size_t size) {
        Bytes bytes = valid;
        bytes.resize(size);
        return bytes;
    };
    CHECK(refuse_at(with_byte(1, 1)) == 0);
    CHECK(refuse_at(with_byte(2, 0x0A)) == 2);
    CHECK(refuse_at(with_byte(3, 9)) == 3);
    CHECK(refuse_at(with_byte(3, 0)) == 3);
    CHECK(refuse_at(with_size(valid.size() + 1)) == valid.size());
    CHECK(refuse_at(with_size(valid.size() - 1)) == valid.size() - 1);
    CHECK(refuse_at(with_size(9)) == 9);
    CHECK(refuse_at({}) == 0);
    // Declared sizes of 16 EiB, of more than 64 bits, and of dimensions whose product is small only because of a 0.
    constexpr std::uint32_t kHuge = 0xffffffff;
    CHECK(refuse_at(idx_header(0x0E, {kHuge, 0x10000000})) == 12);
    CHECK(refuse_at(idx_header(8, {kHuge, kHuge, kHuge})) == 8);
    CHECK(refuse_at(idx_header(8, {0, kHuge, kHuge, kHuge})) == 12);
    // A declared size of 4 GiB.
    CHECK(refuse_at(idx_header(8, {kHuge})) == 8);
}

TEST_CASE("idx: fuzzed files") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    const Bytes valid = TinyMnist().images;
    const auto read = [](const fs::path& file) {
        const IdxArray array = read_idx(file);
        CHECK(array.bytes.size() == static_cast<std::size_t>(array.shape.numel()) * size_of(array.type));
    };
    CHECK(truncate_everywhere(valid, path, read).accepted == 0);
    CHECK(damage_at_random(valid, path, 3000, read).refused > 1500);
    const Bytes packed = gzip(valid);
    CHECK(truncate_everywhere(packed, path, read).accepted == 0);
    CHECK(damage_at_random(packed, path, 3000, read).refused > 2000);
}

TEST_CASE("idx: MNIST folders with every file name variant") {
    const TinyMnist tiny;
    for (const char separator : {'-', '.'})
        for (const bool packed : {false, true})
            for (const Split split : {Split::train, Split::test}) {
                const TempFolder folder;
                const std::string part = split == Split::train ? "train" : "t10k";
                const std::string suffix = packed ? ".gz" : "";
                put_file(folder / (part + "-images" + separator + "idx3-ubyte" + suffix),
                         packed ? gzip(tiny.images) : tiny.images);
                put_file(folder / (part + "-labels" + separator + "idx1-ubyte" + suffix),
                         packed ? gzip(tiny.labels) : tiny.labels);
                check_tiny(folder.path(), split);
                CHECK_THROWS_AS((void)load_mnist(folder.path(), split == Split::train ? Split::test : Split::train),
                                IoError);
            }
}

TEST_CASE("idx: mismatched MNIST files") {
    const TempFolder folder;
    const fs::path images = folder / "train-images-idx3-ubyte", labels = folder / "train-labels-idx1-ubyte";
    const TinyMnist tiny;
    const auto refuse = [&](const Bytes& image_bytes, const Bytes& label_bytes, const fs::path& file,
                            std::uint64_t offset) {
        put_file(images, image_bytes);
        put_file(labels, label_bytes);
        try {
            (void)load_mnist(folder.path(), Split::train);
            FAIL("the files were accepted");
        } catch (const FormatError& error) {
            CHECK(error.file() == file.string());
            CHECK(error.offset() == offset);
        }
    };
    Bytes wrong = tiny.labels;
    wrong[9] = 10;
    refuse(tiny.images, wrong, labels, 9);
    Bytes two = idx_header(8, {2});
    two.insert(two.end(), {1, 2});
    refuse(tiny.images, two, labels, 4);
    refuse(tiny.labels, tiny.labels, images, 2);
    refuse(tiny.images, tiny.images, labels, 2);
    wrong = tiny.images;
    wrong[2] = 9;
    refuse(wrong, tiny.labels, images, 2);
    refuse(idx_header(8, {3, 0, 3}), tiny.labels, images, 2);
}

TEST_CASE("idx: the real MNIST") {
    const auto folder = real_data("mnist");
    if (!folder) return;
    const auto train = load_mnist(*folder, Split::train);
    CHECK(train->size() == 60000);
    CHECK(train->shape() == Shape{1, 28, 28});
    std::array<int, 10> counts{};
    for (std::int64_t i = 0; i < train->size(); ++i) ++counts[static_cast<std::size_t>(train->label(i))];
    CHECK(counts == std::array<int, 10>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
    // The mean pixel of MNIST is well known: 0.1307.
    std::vector<float> pixels(28 * 28);
    double sum = 0;
    for (std::int64_t i = 0; i < train->size(); ++i) {
        train->read(i, pixels);
        for (const float pixel : pixels) sum += pixel;
    }
    CHECK(sum / (60000.0 * 784.0) == doctest::Approx(0.1307).epsilon(0.001));
    CHECK(load_mnist(*folder, Split::test)->size() > 1000);
}
