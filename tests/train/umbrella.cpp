// no-oclgrind: it reads sources and launches almost nothing
//
// <declivity/declivity.hpp> includes every public header except runtime/interop.hpp and operators on views.
#include <declivity/declivity.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/paths.hpp"
#include "tests/support/temp_folder.hpp"

namespace fs = std::filesystem;

TEST_CASE("umbrella header: includes every public header once, in order, except the OpenCL interop and the operators") {
    const fs::path include = declivity::test::source_folder().parent_path() / "include";
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(include))
        if (entry.path().extension() == ".hpp") files.insert(entry.path().lexically_relative(include).generic_string());
    REQUIRE(files.size() > 50);
    REQUIRE(files.erase("declivity/declivity.hpp") == 1);
    REQUIRE(files.erase("declivity/runtime/interop.hpp") == 1);
    std::vector<std::string> named;
    std::ifstream in(include / "declivity/declivity.hpp");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("#include <")) named.push_back(line.substr(10, line.size() - 11));
    // Operators on views are for implementers of functions.
    std::erase_if(files, [&](const std::string& file) {
        return file.starts_with("declivity/ops/") && std::find(named.begin(), named.end(), file) == named.end();
    });
    CHECK(named == std::vector<std::string>(files.begin(), files.end()));
}

TEST_CASE("umbrella header: everything it includes is usable") {
    const declivity::io::Canvas canvas(20, 10, {255, 255, 255});
    CHECK(canvas.width() == 20);
    const declivity::test::TempFolder folder;
    declivity::io::AtomicFile file(folder / "f");
    file.commit();
    CHECK(std::filesystem::exists(folder / "f"));
    CHECK(declivity::philox4x32_10({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}
