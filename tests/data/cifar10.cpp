// CIFAR-10 binary files: planes, labels, class names, damaged files; the real data set if present.
#include <string>
#include <vector>

#include <declivity/data/cifar10.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::data;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kRecord = 3073;

// Records whose pixels encode the record and the position.
Bytes batch(std::initializer_list<std::uint8_t> labels) {
    Bytes bytes;
    for (const std::uint8_t label : labels) {
        bytes.push_back(label);
        for (std::size_t i = 0; i + 1 < kRecord; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 31 + label));
    }
    return bytes;
}

void refuse(const fs::path& folder, Split split, const fs::path& file, std::uint64_t offset) {
    try {
        (void)load_cifar10(folder, split);
        FAIL("the files were accepted");
    } catch (const FormatError& error) {
        CHECK(error.file() == file.string());
        CHECK(error.offset() == offset);
    }
}

}  // namespace

TEST_CASE("cifar10: batches in order, planes, class names") {
    const TempFolder folder;
    put_file(folder / "data_batch_1.bin", batch({3, 9}));
    put_file(folder / "data_batch_2.bin", batch({0}));
    put_file(folder / "test_batch.bin", batch({5}));
    const auto train = load_cifar10(folder.path(), Split::train);
    CHECK(train->size() == 3);
    CHECK(train->shape() == Shape{3, 32, 32});
    CHECK(train->classes() == 10);
    CHECK(train->class_names()[1] == "automobile");
    CHECK(load_cifar10(folder.path(), Split::test)->label(0) == 5);
    const std::vector<std::uint8_t> labels{3, 9, 0};
    std::vector<float> features(kRecord - 1);
    for (std::int64_t i = 0; i < 3; ++i) {
        const std::uint8_t label = labels[static_cast<std::size_t>(i)];
        CHECK(train->label(i) == label);
        train->read(i, features);
        bool same = true;
        for (std::size_t k = 0; k < features.size(); ++k)
            same = same && features[k] == static_cast<float>(static_cast<std::uint8_t>(k * 31 + label)) / 255.0F;
        CHECK(same);
    }
    put_file(folder / "batches.meta.txt", bytes_of("a\nb\r\nc\nd\ne\nf\ng\nh\ni\nj\n\n"));
    const std::vector<std::string> names = load_cifar10(folder.path(), Split::train)->class_names();
    CHECK(names[1] == "b");
    CHECK(names[9] == "j");
}

TEST_CASE("cifar10: damaged files are refused with an offset") {
    const TempFolder folder;
    const fs::path first = folder / "data_batch_1.bin", second = folder / "data_batch_2.bin";
    CHECK_THROWS_AS((void)load_cifar10(folder.path(), Split::train), IoError);
    CHECK_THROWS_AS((void)load_cifar10(folder.path(), Split::test), IoError);
    put_file(first, batch({1, 2}));
    put_file(folder / "data_batch_3.bin", batch({1}));
    CHECK_THROWS_AS((void)load_cifar10(folder.path(), Split::train), IoError);
    put_file(second, batch({1, 10}));
    refuse(folder.path(), Split::train, second, kRecord);
    Bytes longer = batch({1, 2});
    longer.push_back(3);
    put_file(second, longer);
    refuse(folder.path(), Split::train, second, 2 * kRecord);
    put_file(second, {});
    refuse(folder.path(), Split::train, second, 0);
    put_file(second, batch({4}));
    put_file(folder / "batches.meta.txt", bytes_of("only\nthree\nnames"));
    refuse(folder.path(), Split::train, folder / "batches.meta.txt", 16);
}

TEST_CASE("cifar10: fuzzed files") {
    const TempFolder folder;
    const fs::path path = folder / "test_batch.bin";
    const auto read = [](const fs::path& file) {
        const auto set = load_cifar10(file.parent_path(), Split::test);
        CHECK(set->size() > 0);
    };
    const Bytes valid = batch({1, 2});
    const Verdicts truncated = truncate_everywhere(valid, path, read);
    CHECK(truncated.accepted == 1);
    CHECK(damage_at_random(valid, path, 500, read).refused > 100);
}

TEST_CASE("cifar10: the real data set") {
    const auto batch_file = real_data("cifar10/data_batch_1.bin");
    if (!batch_file) return;
    const auto train = load_cifar10(batch_file->parent_path(), Split::train);
    CHECK(train->size() == 50000);
    std::vector<int> counts(10, 0);
    for (std::int64_t i = 0; i < train->size(); ++i) ++counts[static_cast<std::size_t>(train->label(i))];
    CHECK(counts == std::vector<int>(10, 5000));
    std::vector<float> pixels(kRecord - 1);
    double red = 0;
    for (std::int64_t i = 0; i < 5000; ++i) {
        train->read(i, pixels);
        for (std::size_t k = 0; k < 1024; ++k) red += pixels[k];
    }
    CHECK(red / (5000.0 * 1024.0) == doctest::Approx(0.492).epsilon(0.02));
}
