// Safetensors: round trips, reading of known bytes; everything else is refused with an offset.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <declivity/io/safetensors.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::io;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

Bytes with_length(const std::string& json, const Bytes& data = {}) {
    Bytes bytes;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(json.size() >> (8 * i)));
    bytes.insert(bytes.end(), json.begin(), json.end());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

// Some arrays of random types and shapes.
Safetensors random_content(unsigned seed) {
    std::mt19937 random(seed);
    const DType types[] = {DType::f32, DType::f64,     DType::i8,  DType::u8,  DType::i32,
                           DType::i64, DType::boolean, DType::f16, DType::bf16};
    Safetensors content;
    const unsigned count = static_cast<unsigned>(random()) % 6;
    for (unsigned i = 0; i < count; ++i) {
        HostArray array;
        array.dtype = types[random() % 9];
        const int rank = static_cast<int>(random() % 5);
        for (int axis = 0; axis < rank; ++axis) array.shape.push_back(static_cast<std::int64_t>(random() % 5));
        array.bytes.resize(static_cast<std::size_t>(array.shape.numel()) * size_of(array.dtype));
        for (std::byte& byte : array.bytes)
            byte = static_cast<std::byte>(array.dtype == DType::boolean ? random() % 2 : random() % 256);
        content.arrays["layer." + std::to_string(random() % 100) + ".weight \"\\\n\u00e9"] = array;
    }
    for (unsigned i = 0; i < seed % 3; ++i)
        content.metadata["key\t" + std::to_string(i)] = std::string(i, '"') + "\u20ac";
    return content;
}

void check_same(const Safetensors& a, const Safetensors& b) {
    CHECK_UNARY(a.arrays == b.arrays);
    CHECK_UNARY(a.metadata == b.metadata);
}

std::uint64_t refused_at(const fs::path& path, const Bytes& bytes) {
    put_file(path, bytes);
    try {
        (void)read_safetensors(path);
    } catch (const FormatError& error) {
        CHECK(error.file() == path.string());
        return error.offset();
    }
    FAIL_CHECK("accepted: " << std::string(bytes.begin() + 8, bytes.end()));
    return 0;
}

std::string error_of(const fs::path& path, const Bytes& bytes) {
    put_file(path, bytes);
    try {
        (void)read_safetensors(path);
    } catch (const FormatError& error) {
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("safetensors: round trip") {
    const TempFolder folder;
    const fs::path path = folder / "model.safetensors";
    for (unsigned seed = 0; seed < 100; ++seed) {
        const Safetensors content = random_content(seed);
        write_safetensors(path, content);
        check_same(read_safetensors(path), content);
    }
    CHECK(folder.names() == std::vector<std::string>{"model.safetensors"});
    Safetensors written;
    written.arrays["x"] = HostArray::of<float>({2, 2}, {1.5F, -2.0F, std::numeric_limits<float>::infinity(), 0.0F});
    written.arrays["scalar"] = HostArray::of<std::int64_t>({}, {-7});
    written.arrays["none"] = HostArray::of<double>({3, 0}, std::vector<double>{});
    write_safetensors(path, written);
    const Safetensors read = read_safetensors(path);
    CHECK(read.arrays.at("x").as<float>()[1] == -2.0F);
    CHECK(read.arrays.at("scalar").as<std::int64_t>()[0] == -7);
    CHECK(read.arrays.at("scalar").shape == Shape{});
    CHECK(read.arrays.at("none").shape == Shape{3, 0});
    CHECK_THROWS_AS((void)read.arrays.at("x").as<double>(), TypeError);
}

TEST_CASE("safetensors: the file, byte by byte") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    Safetensors content;
    content.arrays["b"] = HostArray::of<std::uint8_t>({3}, {1, 2, 3});
    content.arrays["a"] = HostArray::of<std::int32_t>({1, 2}, {-2, 258});
    content.metadata["format"] = "pt";
    write_safetensors(path, content);
    std::string json = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
    while (json.size() % 8 != 0) json += ' ';
    CHECK(get_file(path) == with_length(json, {0xfe, 0xff, 0xff, 0xff, 2, 1, 0, 0, 1, 2, 3}));
    // Members in another order, spaces, an escape, an array of another rank: all valid.
    const std::string other =
        "{ \"b\" : {\"data_offsets\":[8,11],\n\"shape\":[3,1,1],\"dtype\":\"U8\"}, "
        "\"\\u0061\":{\"dtype\":\"I32\",\"data_offsets\":[0,8],\"shape\":[2]} } ";
    put_file(path, with_length(other, {0xfe, 0xff, 0xff, 0xff, 2, 1, 0, 0, 1, 2, 3}));
    const Safetensors read = read_safetensors(path);
    CHECK(read.arrays.at("a").as<std::int32_t>()[1] == 258);
    CHECK(read.arrays.at("b").shape == Shape{3, 1, 1});
    put_file(path, with_length("{}"));
    CHECK(read_safetensors(path).arrays.empty());
    put_file(path, with_length(R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                               R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]}})",
                               {0x00, 0x3e, 0x00, 0xc0, 0x20, 0x40}));
    const Safetensors reduced_precision = read_safetensors(path);
    CHECK(static_cast<float>(reduced_precision.arrays.at("h").as<float16>()[0]) == 1.5F);
    CHECK(static_cast<float>(reduced_precision.arrays.at("h").as<float16>()[1]) == -2.0F);
    CHECK(static_cast<float>(reduced_precision.arrays.at("b").as<bfloat16>()[0]) == 2.5F);
    CHECK_THROWS_WITH_AS((void)reduced_precision.arrays.at("b").as<float16>(),
                         "HostArray::as: expected f16, got an array of bf16", TypeError);
    write_safetensors(path, reduced_precision);
    check_same(read_safetensors(path), reduced_precision);
    Safetensors complete;
    complete.arrays["i16"] = HostArray::of<std::int16_t>({2}, {-2, 258});
    complete.arrays["u16"] = HostArray::of<std::uint16_t>({2}, {2, 65535});
    complete.arrays["u32"] = HostArray::of<std::uint32_t>({1}, {4'000'000'000});
    complete.arrays["u64"] = HostArray::of<std::uint64_t>({1}, {std::numeric_limits<std::uint64_t>::max() - 1});
    write_safetensors(path, complete);
    check_same(read_safetensors(path), complete);
    CHECK(read_safetensors(path).arrays.at("u64").as<std::uint64_t>()[0] ==
          std::numeric_limits<std::uint64_t>::max() - 1);
}

TEST_CASE("safetensors: invalid headers are refused with an offset") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    const Bytes four(4, 0);
    // The offset is the byte marked by '^' in the line below the header.
    const auto refuse = [&](const std::string& json, const std::string& mark, const Bytes& data) {
        CAPTURE(json);
        CHECK(refused_at(path, with_length(json, data)) == 8 + mark.find('^'));
    };
    refuse(R"([])", R"(^)", {});
    refuse(R"({"a":1})", R"(     ^)", {});
    refuse(R"({"a":[]})", R"(     ^)", {});
    refuse(R"({"a":null})", R"(     ^)", {});
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
           R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
           R"(                                                      ^)", four);
    refuse(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", R"(                    ^)", four);
    refuse(R"({"a":{"dtype":"C64","shape":[2],"data_offsets":[0,4]}})", R"(              ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
           R"(                                                     ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1]}})", R"( ^)", four);
    refuse(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", R"( ^)", four);
    refuse(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", R"( ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", R"(                             ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", R"(                             ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", R"(                             ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", R"(                             ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", R"(                            ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})",
           R"(                                             ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
           R"(                                        ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})",
           R"(                                          ^)", {});
    refuse(R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]}})",
           R"(                             ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})",
           R"(                                                    ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", R"( ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", R"( ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", R"( ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", R"( ^)", four);
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})", R"( ^)", Bytes(5, 0));
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
           R"(                                                      ^)", Bytes(6, 0));
    refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]}})",
           R"(                                                      ^)", Bytes(9, 0));
    refuse(R"({"__metadata__":{"a":1}})", R"(                     ^)", {});
    refuse(R"({"__metadata__":{"a":{}}})", R"(                     ^)", {});
    refuse(R"({"__metadata__":{"a":"1","a":"2"}})", R"(                             ^)", {});
    refuse(R"({"__metadata__":"x"})", R"(                ^)", {});
    refuse("{\"a\xff\":{}}", "   ^", {});
    refuse(std::string("{}\0\0", 4), "  ^", {});
    refuse("{} x", "   ^", {});
    refuse("\xef\xbb\xbf{}", "^", {});
    refuse("{\"a\"", "    ^", {});
    // Bytes after the last array; a BOOL array with a 2; invalid header lengths.
    const std::string header = R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
    CHECK(refused_at(path, with_length(header, {0, 1, 0})) == 8 + header.size() + 2);
    CHECK(refused_at(path, with_length(header, {1, 2})) == 8 + header.size() + 1);
    CHECK(refused_at(path, {1, 2, 3}) == 3);
    CHECK(refused_at(path, {9, 0, 0, 0, 0, 0, 0, 0, '{', '}'}) == 0);
    CHECK(refused_at(path, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'}) == 0);
    CHECK(refused_at(path, {0, 0, 0, 0, 0, 0, 0, 0}) == 8);
    // A header longer than the maximum, in a (sparse) file that is large enough for it.
    put_file(path, Bytes{1, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{'});
    fs::resize_file(path, 100'000'009);
    CHECK_THROWS_WITH_AS((void)read_safetensors(path),
                         doctest::Contains("at byte 0: not a safetensors file, or a damaged one: its first 8 "
                                           "bytes would make a header of 100000001 bytes, expected at most 100000000"),
                         FormatError);
    CHECK(
        error_of(path, with_length(R"({"w":{"dtype":"C64","shape":[2],"data_offsets":[0,4]}})", four)).find("'C64'") !=
        std::string::npos);
    // A hundred thousand opening brackets must not overflow the stack.
    CHECK(refused_at(path, with_length("{\"a\":" + std::string(100000, '['))) == 13);
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
    CHECK(refused_at(path, with_length(objects)) == 8 + 6);
}

TEST_CASE("safetensors: files of other formats are reported as such") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    const auto check_message = [&](const std::string& text, const std::string& expected) {
        const std::string message = error_of(path, Bytes(text.begin(), text.end()));
        CHECK_MESSAGE(message.find("not a safetensors file") != std::string::npos, message);
        CHECK_MESSAGE(message.find(expected) != std::string::npos, message);
        CHECK_MESSAGE(message.find("a header of ") == std::string::npos, message);
    };
    check_message("garbage, random bytes of no format", "it begins with \"garbage, \"");
    check_message(std::string("\1\2\xff\"abcdefgh", 12), "it begins with \"\\x01\\x02\\xff\"abcde\"");
    check_message("", "it is empty");
    check_message("abc", "it begins with \"abc\", and that is all");
    check_message("PK\3\4abcdefgh", "it is a zip archive, like PyTorch's .pt");
    check_message("\x80\x02}q\1abcdefgh", "it is a Python pickle");
    check_message("\x93NUMPY\1\1v\1{'descr'", "it is a NumPy .npy file");
    check_message("version https://git-lfs.github.com/spec/v1\n", "git-lfs");
    // The beginning of a valid file.
    const std::string error = error_of(path, Bytes{200, 0, 0, 0, 0, 0, 0, 0, '{', '}'});
    CHECK_MESSAGE(error.find("a header of 200 bytes in a file of 10: it is cut off or damaged") != std::string::npos,
                  error);
}

TEST_CASE("safetensors: fuzzed files") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    const auto read = [](const fs::path& file) {
        for (const auto& [name, array] : read_safetensors(file).arrays) array.check("test");
    };
    for (unsigned seed : {5U, 8U, 11U}) {
        write_safetensors(path, random_content(seed));
        const Bytes valid = get_file(path);
        REQUIRE(valid.size() > 200);
        CHECK(truncate_everywhere(valid, path, read).accepted == 0);
        const Verdicts verdicts = damage_at_random(valid, path, 3000, read);
        CHECK(verdicts.refused > 1000);
    }
}

TEST_CASE("safetensors: invalid arguments of save") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    put_file(path, bytes_of("old"));
    const auto refuse = [&]<class E>(E*, const std::string& name, const HostArray& array, const std::string& text) {
        Safetensors content;
        content.arrays[name] = array;
        content.metadata["k"] = text;
        CHECK_THROWS_AS(write_safetensors(path, content), E);
    };
    const HostArray good = HostArray::of<float>({1}, {1.0F});
    refuse(static_cast<ValueError*>(nullptr), "__metadata__", good, "");
    refuse(static_cast<ValueError*>(nullptr), "\xff", good, "");
    refuse(static_cast<ValueError*>(nullptr), "a", good, "\xc0\x80");
    refuse(static_cast<ShapeError*>(nullptr), "a", HostArray{DType::f32, {2}, std::vector<std::byte>(4)}, "");
    refuse(static_cast<ShapeError*>(nullptr), "a", HostArray{DType::f32, {-1}, {}}, "");
    CHECK_THROWS_AS((void)HostArray::of<float>({3}, {1.0F}), ShapeError);
    CHECK_THROWS_AS((void)HostArray::of<float>({0}, {1.0F}), ShapeError);
    CHECK_THROWS_AS((void)HostArray::of<float>({INT64_MAX, INT64_MAX}, {1.0F}), ShapeError);
    CHECK(get_file(path) == bytes_of("old"));
    CHECK(folder.names() == std::vector<std::string>{"f"});
}

TEST_CASE("safetensors: a full disk leaves the old file") {
    const TempFolder folder;
    const fs::path path = folder / "f";
    Safetensors small, large;
    small.arrays["x"] = HostArray::of<float>({1}, {1.0F});
    large.arrays["x"] = HostArray::of<float>({10000}, std::vector<float>(10000, 2.0F));
    write_safetensors(path, small);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit limit{8192, 8192};
        int exit_code = ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? 2 : 1;
        try {
            write_safetensors(path, large);
        } catch (const IoError&) {
            exit_code = 0;
        }
        ::_exit(exit_code);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    check_same(read_safetensors(path), small);
    CHECK(folder.names() == std::vector<std::string>{"f"});
}
