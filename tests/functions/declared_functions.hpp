// The functions declared by the headers in include/declivity/functions, those of random numbers excepted.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <tests/support/paths.hpp>

namespace declivity::test::catalogue {

/// header -> names of its functions, with their namespace below declivity: "linalg::qr"
inline std::map<std::string, std::set<std::string>> declared_functions() {
    std::map<std::string, std::set<std::string>> out;
    const auto folder = source_folder().parent_path() / "include/declivity/functions";
    for (const auto& header : std::filesystem::directory_iterator(folder)) {
        if (header.path().filename() == "random.hpp") continue;  // no cases: their results are random numbers
        std::ifstream file(header.path());
        static const std::regex declaration(R"(^(?:inline|DECLIVITY_API) [A-Za-z][^\s&]* (operator[^\s(]+|\w+)\()");
        std::string prefix;
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with("namespace declivity::")) prefix = line.substr(21, line.find(' ', 21) - 21) + "::";
            // tensors_of() lists results, and is not a function of tensors.
            if (std::smatch found; std::regex_search(line, found, declaration) && found.str(1) != "tensors_of")
                out[header.path().filename().string()].insert(prefix + found.str(1));
        }
    }
    return out;
}

}  // namespace declivity::test::catalogue
