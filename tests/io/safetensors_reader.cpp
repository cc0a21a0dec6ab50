// Sharded safetensors: round trips, one array at a time; mismatched files are refused.
#include <string>
#include <vector>

#include <declivity/io/safetensors_reader.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::io;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

StateDict some_state() {
    return {{"b.weight", random_tensor({5, 3}, 1)},
            {"a", random_tensor({40}, 2, DType::f16)},
            {"c", Tensor::from<std::int64_t>({7, -8}, {2})},
            {"none", zeros({0, 4})},
            {"d", random_tensor({9}, 3)}};
}

void check_same(const StateDict& got, const StateDict& expected) {
    REQUIRE(got.size() == expected.size());
    for (const NamedTensor& item : expected)
        for (const NamedTensor& other : got)
            if (other.name == item.name) CHECK_UNARY(to_host(other.tensor) == to_host(item.tensor));
}

std::string index_refusal(const fs::path& folder, const std::string& text) {
    const fs::path path = folder / "model.safetensors.index.json";
    put_file(path, Bytes(text.begin(), text.end()));
    try {
        (void)SafetensorsReader(path);
    } catch (const FormatError& error) {
        CHECK(error.file() == path.string());
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("sharded safetensors: round trip from folder, index and file") {
    const TempFolder folder;
    const StateDict state = some_state();
    CHECK(save_sharded(folder / "whole", state).size() == 1);
    check_same(load_sharded(folder / "whole"), state);
    check_same(load_sharded(folder / "whole" / "model.safetensors"), state);
    // 60, 80, 16, 0 and 36 bytes.
    const std::vector<fs::path> files = save_sharded(folder / "parts", state, {.max_shard_size = 96});
    REQUIRE(files.size() == 3);
    CHECK(files[0].filename() == "model-00001-of-00003.safetensors");
    CHECK(load(files[0]).size() == 1);
    CHECK(load(files[1]).size() == 3);
    check_same(load_sharded(folder / "parts"), state);
    const SafetensorsReader reader(folder / "parts" / "model.safetensors.index.json");
    CHECK(reader.metadata().at("total_size") == "192");
    CHECK(reader.arrays().at("c").shape == Shape{2});
    CHECK(reader.read("c").as<std::int64_t>()[1] == -8);
    CHECK_THROWS_AS((void)reader.read("x"), ValueError);
    // An array larger than the limit has its own shard; the previous shards are removed.
    CHECK(save_sharded(folder / "parts", state, {.max_shard_size = 1}).size() == 4);
    CHECK(save_sharded(folder / "parts", state).size() == 1);
    CHECK(!fs::exists(folder / "parts" / "model.safetensors.index.json"));
    check_same(load_sharded(folder / "parts"), state);
    (void)save_sharded(folder / "parts", state, {.max_shard_size = 96});
    CHECK(!fs::exists(folder / "parts" / "model.safetensors"));
}

TEST_CASE("sharded safetensors: no shard of an earlier state remains") {
    const TempFolder folder;
    const StateDict state = some_state();
    const auto count = [&] { return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()); };
    for (const char* const file_name : {"own-00001-of-00004.safetensors", "model-1-of-4.safetensors", "model.txt"})
        put_file(folder / file_name, {});
    (void)save_sharded(folder.path(), state, {.max_shard_size = 1});
    CHECK(count() == 4 + 1 + 3);
    (void)save_sharded(folder.path(), state, {.max_shard_size = 96});
    CHECK(count() == 3 + 1 + 3);
    check_same(load_sharded(folder.path()), state);
    (void)save_sharded(folder.path(), state);
    CHECK(count() == 1 + 3);
    check_same(load_sharded(folder.path()), state);
}

TEST_CASE("sharded safetensors: floating arrays are converted on request") {
    const TempFolder folder;
    (void)save_sharded(folder / "m", some_state());
    for (const auto& [name, tensor] : load_sharded(folder / "m", {.dtype = DType::bf16}))
        CHECK(tensor.dtype() == (name == "c" ? DType::i64 : DType::bf16));
    CHECK_THROWS_AS((void)save_sharded(folder / "m", {{"a", ones({1})}, {"a", ones({1})}}), ValueError);
    CHECK_THROWS_AS((void)save_sharded(folder / "m", {{"a", Tensor()}}), ValueError);
}

TEST_CASE("sharded safetensors: an invalid index is refused with an offset") {
    const TempFolder folder;
    const fs::path file = folder / "m";
    (void)save_sharded(file, {{"a", ones({2})}});
    CHECK(index_refusal(file, R"({"weight_map":{"a":"model.safetensors"}})") == "accepted");
    const std::string outside = index_refusal(file, R"({"weight_map":{"a":"../m/model.safetensors"}})");
    CHECK(outside.find("at byte 15: array 'a' expected a file in the folder of the index") != std::string::npos);
    CHECK(index_refusal(file, R"({"weight_map":{"b":"model.safetensors"}})").find("array 'b' is not in the file") !=
          std::string::npos);
    CHECK(index_refusal(file, R"({"weight_map":{"a":7}})").find("expected the name of a file") != std::string::npos);
    CHECK(index_refusal(file, R"({"weight_map":[]})").find("expected an object 'weight_map'") != std::string::npos);
    CHECK(index_refusal(file, R"({"metadata":{}})").find("expected an object 'weight_map'") != std::string::npos);
    CHECK(index_refusal(file, "[]").find("expected an object, got array") != std::string::npos);
    CHECK(index_refusal(file, R"({"weight_map":)").find("at byte 14: not valid JSON") != std::string::npos);
    CHECK(index_refusal(file, R"({"x":)" + std::string(100000, '[')).find("nested deeper") != std::string::npos);
    CHECK_THROWS_AS((void)SafetensorsReader(folder / "nothing"), IoError);
}

TEST_CASE("sharded safetensors: damaged indices are refused or read") {
    const TempFolder folder;
    const fs::path base_path = folder / "m";
    (void)save_sharded(base_path, some_state(), {.max_shard_size = 96});
    const fs::path path = base_path / "model.safetensors.index.json";
    const Bytes valid = get_file(path);
    const auto read = [](const fs::path& file) {
        try {
            const SafetensorsReader reader(file);
            for (const auto& [name, array] : reader.arrays()) CHECK(reader.read(name).shape == array.shape);
        } catch (const IoError&) {
            throw FormatError(file.string(), 0, "names a file that there is not");
        }
    };
    const Verdicts truncated = truncate_everywhere(valid, path, read);
    CHECK(truncated.accepted <= 1);  // without the final newline
    const Verdicts damaged = damage_at_random(valid, path, 500, read);
    CHECK(damaged.refused > 300);
}
