// Readers keep the opened file: replaced files are read as they were, modified ones are refused; concurrent reads are
// allowed.
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <declivity/io/gguf.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/io/safetensors_reader.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::io;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

/// A GGUF file of two arrays of four values each.
Bytes gguf_of(float first) {
    Bytes bytes;
    const auto write_value = [&](auto value) {
        const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
        bytes.insert(bytes.end(), raw, raw + sizeof value);
    };
    write_value(std::uint32_t{0x46554747}), write_value(std::uint32_t{3}), write_value(std::uint64_t{2}),
        write_value(std::uint64_t{0});
    for (const char name : {'a', 'b'}) {
        write_value(std::uint64_t{1}), write_value(name), write_value(std::uint32_t{1}), write_value(std::uint64_t{4});
        write_value(std::uint32_t{0}), write_value(std::uint64_t{name == 'a' ? 0U : 32U});
    }
    bytes.resize((bytes.size() + 31) / 32 * 32);
    for (int i = 0; i < 4; ++i) write_value(first + static_cast<float>(i));
    bytes.resize((bytes.size() + 31) / 32 * 32);
    for (int i = 0; i < 4; ++i) write_value(first + static_cast<float>(10 + i));
    return bytes;
}

/// Returns the message of a FormatError, which must name the file.
template <class Call>
void refuses(const fs::path& file, const Call& call) {
    try {
        call();
        FAIL_CHECK("it was read");
    } catch (const FormatError& error) {
        CHECK(error.file() == file.string());
        CHECK(std::string(error.what()).find("since it was opened") != std::string::npos);
    }
}

}  // namespace

TEST_CASE("open readers: a safetensors file replaced by save is read as it was") {
    const TempFolder folder;
    const fs::path path = folder / "m.safetensors";
    save(path, {{"a", full({3}, 1)}, {"b", full({2}, 2)}});
    const SafetensorsReader reader(path);
    const SafetensorsReader copy(reader);
    save(path, {{"a", full({100}, 7)}, {"b", full({50}, 8)}});
    CHECK(reader.read("a").to_doubles() == std::vector<double>{1, 1, 1});
    CHECK(copy.read("b").to_doubles() == std::vector<double>{2, 2});
    fs::remove(path);
    CHECK(reader.read("b").to_doubles() == std::vector<double>{2, 2});
}

TEST_CASE("open readers: replaced shards are read as they were") {
    const TempFolder folder;
    const StateDict before{{"a", full({4}, 1)}, {"b", full({4}, 2)}}, after{{"a", full({4}, 5)}, {"b", full({4}, 6)}};
    (void)save_sharded(folder.path(), before, {.max_shard_size = 16});
    const SafetensorsReader reader(folder.path());
    (void)save_sharded(folder.path(), after, {.max_shard_size = 16});
    CHECK(reader.read("a").to_doubles() == std::vector<double>(4, 1));
    CHECK(reader.read("b").to_doubles() == std::vector<double>(4, 2));
}

TEST_CASE("open readers: a replaced GGUF file is read as it was") {
    const TempFolder folder;
    const fs::path path = folder / "m.gguf";
    put_file(path, gguf_of(1));
    const GgufReader reader(path);
    put_file(folder / "new.gguf", gguf_of(100));
    fs::rename(folder / "new.gguf", path);
    CHECK(reader.read("a").to_doubles() == std::vector<double>{1, 2, 3, 4});
    CHECK(reader.read("b").to_doubles() == std::vector<double>{11, 12, 13, 14});
}

TEST_CASE("open readers: a file that is truncated or grows in place is refused by name") {
    const TempFolder folder;
    const fs::path tensors = folder / "m.safetensors", gguf = folder / "m.gguf";
    save(tensors, {{"a", full({3}, 1)}, {"b", full({2}, 2)}});
    put_file(gguf, gguf_of(1));
    for (const std::int64_t change : {-1, 1}) {
        const SafetensorsReader reader(tensors);
        const GgufReader other(gguf);
        const auto resized = [&](const fs::path& file) {
            const auto size = fs::file_size(file);
            fs::resize_file(file, size + static_cast<std::uintmax_t>(change));
            return size;
        };
        const auto size = resized(tensors), other_size = resized(gguf);
        refuses(tensors, [&] { (void)reader.read("a"); });
        refuses(gguf, [&] { (void)other.read("a"); });
        fs::resize_file(tensors, size);
        fs::resize_file(gguf, other_size);
        save(tensors, {{"a", full({3}, 1)}, {"b", full({2}, 2)}});
        put_file(gguf, gguf_of(1));
    }
    // Written in place with the same size, at another time.
    const SafetensorsReader reader(tensors);
    const auto time = fs::last_write_time(tensors);
    std::fstream(tensors, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('x');
    fs::last_write_time(tensors, time + std::chrono::seconds(1));
    refuses(tensors, [&] { (void)reader.read("b"); });
}

TEST_CASE("open readers: concurrent reads from one reader") {
    const TempFolder folder;
    StateDict state;
    for (int i = 0; i < 16; ++i) state.push_back({std::to_string(i), full({257}, i)});
    save(folder / "m.safetensors", state);
    const SafetensorsReader reader(folder / "m.safetensors");
    std::vector<int> mismatches(4);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < mismatches.size(); ++thread)
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 200; ++round) {
                const int i = (round * 7 + static_cast<int>(thread) * 5) % 16;
                for (const double value : reader.read(std::to_string(i)).to_doubles())
                    if (value != i) ++mismatches[thread];
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(mismatches == std::vector<int>(4));
}
