// The JSON reader shared by all formats: limits of depth and size, and errors with an offset.
#include "runtime/json.hpp"

#include <filesystem>
#include <string>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

#include "tests/support/temp_folder.hpp"

using namespace declivity;
using detail::dump_json;
using detail::Json;
using detail::JsonLimits;
using detail::kMaxJsonDepth;
using detail::parse_json;
using detail::read_json_text;
using test::bytes_of;
using test::put_file;
using test::TempFolder;

namespace {

std::string nested(int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

/// The error message for a text, or an empty string if it is valid.
std::string error_message(const std::string& text, const JsonLimits& limits = {}) {
    try {
        (void)parse_json("f.json", text, limits);
    } catch (const FormatError& error) {
        CHECK(error.file() == "f.json");
        CHECK(error.offset() <= text.size());
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("json: depth is limited before a tree is built") {
    CHECK(error_message(nested(kMaxJsonDepth)).empty());
    for (const int depth : {kMaxJsonDepth + 1, 80'000, 2'000'000})
        CHECK(error_message(nested(depth)).find("at byte 64: the JSON is nested deeper than 64 levels") !=
              std::string::npos);
    CHECK(error_message(std::string(80'000, '[')).find("nested deeper") != std::string::npos);
    std::string objects;
    for (int i = 0; i < 80'000; ++i) objects += "{\"a\":";
    CHECK(error_message(objects).find("nested deeper") != std::string::npos);
    // Brackets in strings do not count, nor do escaped quotes.
    CHECK(error_message("[\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\\\\\"]").empty());
    CHECK(error_message("[\"\\\\\"," + nested(64) + "]").find("nested deeper") != std::string::npos);
}

TEST_CASE("json: bytes and values are limited") {
    CHECK(error_message("[1,2,3]", {.bytes = 7, .values = 4}).empty());
    CHECK(error_message("[1,2,3]", {.bytes = 6}).find("expected JSON of at most 6 bytes, got 7") != std::string::npos);
    CHECK(error_message("[1,2,3]", {.values = 3}).find("at byte 4: expected JSON of at most 3 values") !=
          std::string::npos);
    CHECK(error_message("[[],[],[]]", {.values = 4}).find("at most 4 values") != std::string::npos);
}

TEST_CASE("json: invalid text is an error of the library with an offset") {
    CHECK(error_message("{\"a\":}").find("f.json: at byte 5: not valid JSON") != std::string::npos);
    CHECK(error_message("\xef\xbb\xbf{}").find("byte order mark") != std::string::npos);
    CHECK(error_message("1e999").find("not valid JSON") != std::string::npos);
    CHECK(error_message("\"\xff\"").find("not valid JSON") != std::string::npos);
    CHECK(error_message("").find("not valid JSON") != std::string::npos);
    CHECK(error_message(std::string("[1]\0", 4)).find("not valid JSON") != std::string::npos);
    // A message does not repeat a whole file.
    CHECK(error_message("[\"" + std::string(1 << 20, 'x') + "\n\"]").size() < 1000);
    CHECK_THROWS_AS((void)dump_json("test", Json{{"a", "\xff"}}), ValueError);
    CHECK(dump_json("test", Json{{"a", 1}}) == "{\"a\":1}");
}

TEST_CASE("json: files are read up to the limit") {
    const TempFolder folder;
    put_file(folder / "f", bytes_of("{\"a\": 1}"));
    CHECK(read_json_text(folder / "f") == "{\"a\": 1}");
    CHECK(read_json_text(folder / "f", {.bytes = 8}) == "{\"a\": 1}");
    CHECK_THROWS_AS((void)read_json_text(folder / "f", {.bytes = 7}), FormatError);
    CHECK_THROWS_AS((void)read_json_text("/dev/zero", {.bytes = 1 << 20}), FormatError);
    CHECK_THROWS_AS((void)read_json_text(folder / "none"), IoError);
    CHECK_THROWS_AS((void)read_json_text(folder.path()), IoError);
}
