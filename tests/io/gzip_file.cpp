// Plain and gzip files read alike; damage is found and located.
#include <random>
#include <vector>

#include <declivity/io/gzip_file.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/gzip.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

Bytes read_all(const std::filesystem::path& path, std::size_t step = 1000) {
    io::GzipFile file(path);
    Bytes all;
    for (;;) {
        const std::size_t have = all.size();
        all.resize(have + step);
        const std::size_t got = file.read_some(std::as_writable_bytes(std::span(all).subspan(have)));
        all.resize(have + got);
        if (got < step) break;
    }
    CHECK(file.position() == all.size());
    return all;
}

Bytes noise(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    Bytes bytes(count);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() % 7);
    return bytes;
}

}  // namespace

TEST_CASE("gzip_file: plain, compressed and concatenated files return their content") {
    const TempFolder folder;
    for (const std::size_t count : {0, 1, 2, 1000, 65536, 65537, 300000}) {
        const Bytes content = noise(count, 1);
        put_file(folder / "plain", content);
        put_file(folder / "packed", gzip(content));
        for (const std::size_t step : {std::size_t{1000}, std::size_t{65536}, count + 1}) {
            CHECK(read_all(folder / "plain", step) == content);
            CHECK(read_all(folder / "packed", step) == content);
        }
        CHECK(!io::GzipFile(folder / "plain").compressed());
        CHECK(io::GzipFile(folder / "packed").compressed());
    }
    Bytes concatenated = gzip(bytes_of("one, "));
    const Bytes second = gzip(bytes_of("two"));
    concatenated.insert(concatenated.end(), second.begin(), second.end());
    put_file(folder / "joined", concatenated);
    CHECK(read_all(folder / "joined") == bytes_of("one, two"));
}

TEST_CASE("gzip_file: truncated, damaged and followed by other bytes") {
    const TempFolder folder;
    const Bytes content = noise(3000, 2);
    const Bytes packed = gzip(content);
    const auto path = folder / "packed";
    // One byte of a gzip file is a plain file, and zero bytes are an empty one.
    const Verdicts truncated = truncate_everywhere(packed, path, [](const auto& file) { (void)read_all(file); });
    CHECK(truncated.accepted == 2);
    CHECK(truncated.refused == static_cast<int>(packed.size()) - 2);

    int changed = 0;
    const Verdicts damaged = damage_at_random(packed, path, 2000, [&](const auto& file) {
        if (read_all(file) != content && io::GzipFile(file).compressed()) ++changed;
    });
    CHECK(changed == 0);  // the checksum detects every change of content
    CHECK(damaged.refused > 1500);

    Bytes longer = packed;
    longer.push_back(0);
    put_file(path, longer);
    try {
        (void)read_all(path);
        FAIL("bytes after the end were accepted");
    } catch (const FormatError& error) {
        CHECK(error.offset() == packed.size());
    }
}

TEST_CASE("input_file: unreadable files, and a file that ends early") {
    const TempFolder folder;
    CHECK_THROWS_AS(io::InputFile{folder / "missing"}, IoError);
    CHECK_THROWS_AS(io::InputFile{folder.path()}, IoError);
    put_file(folder / "four", bytes_of("1234"));
    io::InputFile file(folder / "four");
    CHECK(file.size() == 4);
    std::vector<std::byte> three(3);
    file.read(three);
    try {
        file.read(three);
        FAIL("more was read than the file has");
    } catch (const FormatError& error) {
        CHECK(error.offset() == 4);
    }
    // A file whose size is unknown to the system.
    const std::vector<std::byte> status = io::read_file("/proc/self/status");
    CHECK(status.size() > 100);
    CHECK(io::read_file(folder / "four").size() == 4);
}
