// State dictionaries in files: round trips; invalid ones are refused before the file is touched.
#include <declivity/io/state_dict.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/temp_folder.hpp>

using namespace declivity;

namespace {

std::string bytes_of_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("io::save: strided tensors are saved in row-major order, labels unchanged") {
    const test::TempFolder folder;
    const std::vector<std::int64_t> labels = {3, -1, 7};
    io::save(folder / "t",
             {{"turned", transpose(reshape(arange(0, 6), {2, 3}))}, {"labels", Tensor::from(labels, {3})}},
             {{"made", "here"}});
    const StateDict loaded = io::load(folder / "t");
    REQUIRE(loaded.size() == 2);
    CHECK(loaded[0].name == "labels");
    CHECK(loaded[0].tensor.to_vector<std::int64_t>() == labels);
    CHECK(loaded[1].tensor.shape() == Shape{3, 2});
    CHECK(loaded[1].tensor.to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
    CHECK(io::read_safetensors(folder / "t").metadata.at("made") == "here");
}

TEST_CASE("io::save: duplicate names and undefined tensors are refused, and the old file remains") {
    const test::TempFolder folder;
    io::save(folder / "t", {{"a", ones({2})}});
    const std::string before = bytes_of_file(folder / "t");
    CHECK_THROWS_WITH_AS(io::save(folder / "t", {{"a", ones({2})}, {"b", ones({1})}, {"a", zeros({2})}}),
                         "io::save: expected each name once, got 'a' again", ValueError);
    CHECK_THROWS_WITH_AS(io::save(folder / "t", {{"a", zeros({2})}, {"b", Tensor()}}),
                         "io::save: expected a tensor as 'b', got an undefined one", ValueError);
    CHECK(bytes_of_file(folder / "t") == before);
}
