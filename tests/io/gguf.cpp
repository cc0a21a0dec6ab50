// GGUF: reads a file made here; quantised blocks have the elements of the Python package gguf; damaged files are
// refused.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <declivity/io/gguf.hpp>
#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::io;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

/// Assembles a file.
struct Writer {
    Bytes bytes;

    template <class T>
    Writer& number(T value) {
        const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
        bytes.insert(bytes.end(), raw, raw + sizeof value);
        return *this;
    }
    Writer& text(const std::string& value) {
        number<std::uint64_t>(value.size());
        bytes.insert(bytes.end(), value.begin(), value.end());
        return *this;
    }
    Writer& head(std::uint64_t arrays, std::uint64_t values) {
        return number<std::uint32_t>(0x46554747).number<std::uint32_t>(3).number(arrays).number(values);
    }
    Writer& array(const std::string& name, const std::vector<std::uint64_t>& sizes, GgufType type, std::uint64_t at) {
        text(name).number(static_cast<std::uint32_t>(sizes.size()));
        for (const std::uint64_t size : sizes) number(size);
        return number(static_cast<std::uint32_t>(type)).number(at);
    }
    Writer& align() {
        bytes.resize((bytes.size() + 31) / 32 * 32);
        return *this;
    }
};

/// Bytes of three blocks from a short random generator, with plain scales.
Bytes blocks_of(GgufType type) {
    const auto size = static_cast<std::size_t>(block_bytes(type));
    std::uint32_t state = 12345;
    Bytes bytes;
    for (std::size_t i = 0; i < 3 * size; ++i) {
        state = (state * 1103515245U + 12345U) & 0x7fffffffU;
        bytes.push_back(static_cast<std::uint8_t>(state >> 16));
    }
    const float16 half(0.5), quarter(-0.25);
    const bool with_minimum =
        type == GgufType::q4_1 || type == GgufType::q5_1 || type == GgufType::q4_k || type == GgufType::q5_k;
    for (std::size_t block = 0; block < 3; ++block) {
        std::uint8_t* at = bytes.data() + block * size + (type == GgufType::q6_k ? 208 : 0);
        std::memcpy(at, &half.bits, 2);
        if (with_minimum) std::memcpy(at + 2, &quarter.bits, 2);
    }
    return bytes;
}

std::vector<float> expanded(GgufType type, const Bytes& bytes) {
    return dequantize(type, std::as_bytes(std::span(bytes)));
}

/// Two metadata values and three arrays.
Bytes some_file() {
    Writer file;
    file.head(3, 4);
    file.text("general.architecture").number<std::uint32_t>(8).text("llama");
    file.text("llama.block_count").number<std::uint32_t>(4).number<std::uint32_t>(7);
    file.text("scale").number<std::uint32_t>(6).number(0.25F);
    file.text("tokenizer.ggml.tokens").number<std::uint32_t>(9).number<std::uint32_t>(8).number<std::uint64_t>(2);
    file.text("a").text("bc");
    file.array("plain", {3, 2}, GgufType::f32, 0);
    file.array("blocks", {32, 3}, GgufType::q8_0, 32);
    file.array("half", {4}, GgufType::f16, 160);
    file.align();
    for (int i = 0; i < 6; ++i) file.number(static_cast<float>(i));
    file.align();
    const Bytes blocks = blocks_of(GgufType::q8_0);
    file.bytes.insert(file.bytes.end(), blocks.begin(), blocks.end());
    file.align();
    for (int i = 0; i < 4; ++i) file.number(float16(1.5 * i).bits);
    return file.bytes;
}

}  // namespace

TEST_CASE("gguf: quantised blocks have ggml's elements") {
    struct Fact {
        GgufType type;
        double weighted;  // sum of elements times 1, 2, 3, ...
        std::vector<float> some;
    };
    // Expected values: gguf.quants.dequantize.
    const std::vector<Fact> facts{
        {GgufType::q4_0, -2190.5, {-1.5F, 1, 1, -4, -3.5F}},
        {GgufType::q4_1, 15918, {7.25F, 6.25F, 4.75F, -0.25F, 6.25F}},
        {GgufType::q5_0, -899.5, {6.5F, -3, 2.5F, 3.5F, 4.5F}},
        {GgufType::q5_1, 33408, {12.75F, 10.25F, 6.75F, 10.25F, 5.25F}},
        {GgufType::q8_0, 8063.5, {50.5F, -43, 8, 49, 60.5F}},
        {GgufType::q4_k, 37944136.5, {146, 192.5F, 53, 293.25F, 154.75F}},
        {GgufType::q5_k, 66251339.5, {332, 84, 316.5F, 46.25F, 127.25F}},
        {GgufType::q6_k, -12301189, {-1512, -216, 1582, 620, -490}},
    };
    for (const Fact& fact : facts) {
        CAPTURE(name_of(fact.type));
        const std::vector<float> got = expanded(fact.type, blocks_of(fact.type));
        const std::size_t n = got.size();
        REQUIRE(n == static_cast<std::size_t>(3 * block_elements(fact.type)));
        double weighted = 0;
        for (std::size_t i = 0; i < n; ++i) weighted += static_cast<double>(i + 1) * static_cast<double>(got[i]);
        CHECK(weighted == fact.weighted);
        CHECK(std::vector<float>{got[0], got[1], got[17], got[n / 2 + 5], got[n - 1]} == fact.some);
    }
    CHECK_THROWS_AS((void)expanded(GgufType::q8_0, Bytes(35)), ValueError);
    CHECK_THROWS_AS((void)expanded(GgufType::f16, Bytes(34)), ValueError);
}

TEST_CASE("gguf: metadata and arrays of a file") {
    const TempFolder folder;
    put_file(folder / "m.gguf", some_file());
    const GgufReader reader(folder / "m.gguf");
    CHECK(reader.text("general.architecture") == "llama");
    CHECK(reader.number("llama.block_count") == 7);
    CHECK(reader.number("scale") == 0.25);
    const auto& tokens = std::get<GgufList>(reader.metadata().at("tokenizer.ggml.tokens").value);
    REQUIRE(tokens.size() == 2);
    CHECK(std::get<std::string>(tokens[1].value) == "bc");
    CHECK_THROWS_AS((void)reader.text("scale"), ValueError);
    CHECK_THROWS_AS((void)reader.number("none"), ValueError);
    CHECK(reader.arrays().at("plain").shape == Shape{2, 3});
    CHECK(reader.read("plain").to_doubles() == std::vector<double>{0, 1, 2, 3, 4, 5});
    CHECK(reader.read("half").dtype == DType::f16);
    CHECK(reader.read("half").to_doubles() == std::vector<double>{0, 1.5, 3, 4.5});
    CHECK(reader.read("blocks") == HostArray::of({3, 32}, expanded(GgufType::q8_0, blocks_of(GgufType::q8_0))));
    CHECK(reader.read_stored("blocks").size() == 102);
    CHECK_THROWS_AS((void)reader.read("none"), ValueError);
    for (const auto& [name, tensor] : load_gguf(folder / "m.gguf", {.dtype = DType::bf16})) {
        CHECK(tensor.dtype() == DType::bf16);
        if (name == "plain") CHECK(values(tensor) == std::vector<double>{0, 1, 2, 3, 4, 5});
    }
    CHECK(load_gguf(folder / "m.gguf")[0].tensor.dtype() == DType::f32);
}

TEST_CASE("gguf: invalid files are refused with an offset") {
    const TempFolder folder;
    const auto error_of = [&](const Writer& file) -> std::string {
        put_file(folder / "m.gguf", file.bytes);
        try {
            const GgufReader reader(folder / "m.gguf");
        } catch (const FormatError& error) {
            return error.what();
        }
        return "accepted";
    };
    const auto check_message = [&](const Writer& file, const char* expected) {
        const std::string message = error_of(file);
        CAPTURE(message);
        CHECK(message.find(expected) != std::string::npos);
    };
    check_message(Writer().number<std::uint32_t>(1), "not a GGUF file");
    check_message(Writer().number<std::uint32_t>(0x46554747).number<std::uint32_t>(9), "version 9");
    check_message(Writer().head(0, 1).text("a").number<std::uint32_t>(13), "a value of type 13");
    check_message(Writer().head(0, 1).number<std::uint64_t>(1000), "a key of 1000 bytes");
    check_message(
        Writer().head(0, 1).text("a").number<std::uint32_t>(9).number<std::uint32_t>(0).number<std::uint64_t>(1U << 30),
        "a list of 1073741824 values");
    check_message(Writer()
                      .head(0, 2)
                      .text("a")
                      .number<std::uint32_t>(7)
                      .number<char>(1)
                      .text("a")
                      .number<std::uint32_t>(7)
                      .number<char>(1),
                  "duplicate key 'a'");
    check_message(Writer().head(0, 1).text("general.alignment").number<std::uint32_t>(4).number<std::uint32_t>(3),
                  "general.alignment");
    check_message(Writer().head(1, 0).array("x", {2}, static_cast<GgufType>(10), 0), "'x' of type 10");
    check_message(Writer().head(1, 0).array("x", {33}, GgufType::q8_0, 0), "not multiples of the block size 32");
    check_message(Writer().head(1, 0).array("x", {1ULL << 30, 1ULL << 30}, GgufType::f32, 0), "more than 2^40");
    check_message(Writer().head(1, 0).array("x", {8}, GgufType::f32, 4), "is not aligned");
    check_message(Writer().head(1, 0).array("x", {9}, GgufType::f32, 0).align().number(1.0), "ends after the end");
    check_message(Writer().head(2, 0).array("x", {0}, GgufType::f32, 0).array("x", {0}, GgufType::f32, 0),
                  "duplicate array 'x'");
    CHECK_THROWS_AS(GgufReader(folder / "none.gguf"), IoError);
}

TEST_CASE("gguf: overlapping arrays and wrapping offsets are refused") {
    const TempFolder folder;
    const auto error_of = [&](const Writer& file) -> std::string {
        put_file(folder / "m.gguf", file.bytes);
        try {
            const GgufReader reader(folder / "m.gguf");
        } catch (const FormatError& error) {
            CHECK(error.file() == (folder / "m.gguf").string());
            return error.what();
        }
        return "accepted";
    };
    const auto data = [](Writer& file, std::size_t bytes) -> Writer& {
        file.align().bytes.resize(file.bytes.size() + bytes);
        return file;
    };
    Writer same, partly, apart, wraps, empty, far;
    same.head(2, 0).array("a", {16}, GgufType::f32, 0).array("b", {16}, GgufType::f32, 0);
    CHECK(error_of(data(same, 64)).find("'b' that overlaps 'a'") != std::string::npos);
    partly.head(2, 0).array("a", {16}, GgufType::f32, 32).array("b", {16}, GgufType::f32, 0);
    CHECK(error_of(data(partly, 128)).find("overlaps") != std::string::npos);
    apart.head(3, 0)
        .array("a", {16}, GgufType::f32, 64)
        .array("b", {16}, GgufType::f32, 0)
        .array("c", {0}, GgufType::f32, 64);
    CHECK(error_of(data(apart, 128)) == "accepted");
    wraps.head(1, 0).array("a", {0}, GgufType::f32, UINT64_MAX - 31);
    CHECK(error_of(data(wraps, 64)).find("ends after the end of the file") != std::string::npos);
    far.head(1, 0).array("a", {0}, GgufType::f32, 96);
    CHECK(error_of(data(far, 64)).find("ends after the end of the file") != std::string::npos);
    // The strides of an empty shape must not overflow either.
    empty.head(1, 0).array("a", {1ULL << 40, 1ULL << 40, 0}, GgufType::f32, 0);
    CHECK(error_of(data(empty, 64)).find("more than 2^40") != std::string::npos);
}

TEST_CASE("gguf: lists use as much memory as the file and support every type") {
    const TempFolder folder;
    Writer file;
    file.head(0, 13);
    const auto list = [&](std::uint32_t type, std::uint64_t count) -> Writer& {
        return file.text("k" + std::to_string(type)).number<std::uint32_t>(9).number(type).number(count);
    };
    list(0, 2).number<std::uint8_t>(200).number<std::uint8_t>(1);
    list(1, 2).number<std::int8_t>(-3).number<std::int8_t>(4);
    list(2, 1).number<std::uint16_t>(65535);
    list(3, 1).number<std::int16_t>(-2);
    list(4, 1).number<std::uint32_t>(4000000000U);
    list(5, 1).number<std::int32_t>(-5);
    list(6, 1).number(0.5F);
    list(7, 2).number<std::uint8_t>(0).number<std::uint8_t>(2);
    list(8, 3).text("").text("ab").text("c");
    list(9, 2).number<std::uint32_t>(0).number<std::uint64_t>(1).number<std::uint8_t>(7);
    file.number<std::uint32_t>(8).number<std::uint64_t>(1).text("x");
    list(10, 1).number<std::uint64_t>(UINT64_MAX);
    list(11, 1).number<std::int64_t>(INT64_MIN);
    list(12, 1).number(1e300);
    put_file(folder / "m.gguf", file.bytes);
    const GgufReader reader(folder / "m.gguf");
    const auto at = [&](int type, std::size_t i) {
        return std::get<GgufList>(reader.metadata().at("k" + std::to_string(type)).value)[i].value;
    };
    CHECK(std::get<std::uint64_t>(at(0, 0)) == 200);
    CHECK(std::get<std::int64_t>(at(1, 0)) == -3);
    CHECK(std::get<std::int64_t>(at(1, 1)) == 4);
    CHECK(std::get<std::uint64_t>(at(2, 0)) == 65535);
    CHECK(std::get<std::int64_t>(at(3, 0)) == -2);
    CHECK(std::get<std::uint64_t>(at(4, 0)) == 4000000000U);
    CHECK(std::get<std::int64_t>(at(5, 0)) == -5);
    CHECK(std::get<double>(at(6, 0)) == 0.5);
    CHECK(!std::get<bool>(at(7, 0)));
    CHECK(std::get<bool>(at(7, 1)));
    CHECK(std::get<std::string>(at(8, 0)).empty());
    CHECK(std::get<std::string>(at(8, 1)) == "ab");
    CHECK(std::get<std::string>(at(8, 2)) == "c");
    CHECK(std::get<std::uint64_t>(std::get<GgufList>(at(9, 0))[0].value) == 7);
    CHECK(std::get<std::string>(std::get<GgufList>(at(9, 1))[0].value) == "x");
    CHECK(std::get<std::uint64_t>(at(10, 0)) == UINT64_MAX);
    CHECK(std::get<std::int64_t>(at(11, 0)) == INT64_MIN);
    CHECK(std::get<double>(at(12, 0)) == 1e300);
    CHECK_THROWS_AS((void)at(12, 1), ValueError);
    std::size_t count = 0;
    for (const GgufValue& gguf_value : std::get<GgufList>(reader.metadata().at("k8").value))
        count += std::get<std::string>(gguf_value.value).size();
    CHECK(count == 3);

    // 16 million one-byte numbers in 16 MB.
    Writer large;
    large.head(0, 1).text("k").number<std::uint32_t>(9).number<std::uint32_t>(0).number<std::uint64_t>(1U << 24);
    large.bytes.resize(large.bytes.size() + (1U << 24), 5);
    put_file(folder / "l.gguf", large.bytes);
    const GgufReader big(folder / "l.gguf");
    const auto& values = std::get<GgufList>(big.metadata().at("k").value);
    CHECK(values.size() == 1U << 24);
    CHECK(std::get<std::uint64_t>(values[12345678].value) == 5);
    // Deeply nested lists.
    Writer deep;
    deep.head(0, 1).text("k").number<std::uint32_t>(9);
    for (int i = 0; i < 4; ++i) deep.number<std::uint32_t>(9).number<std::uint64_t>(1);
    deep.bytes.resize(deep.bytes.size() + 64);
    put_file(folder / "d.gguf", deep.bytes);
    CHECK_THROWS_AS(GgufReader(folder / "d.gguf"), FormatError);
}

TEST_CASE("gguf: damaged files are refused or read") {
    const TempFolder folder;
    const Bytes valid = some_file();
    const fs::path path = folder / "m.gguf";
    const auto read = [](const fs::path& file) {
        const GgufReader reader(file);
        for (const auto& [name, array] : reader.arrays()) CHECK(reader.read(name).shape == array.shape);
    };
    CHECK(truncate_everywhere(valid, path, read).accepted == 0);
    CHECK(damage_at_random(valid, path, 1000, read).refused > 300);
}
