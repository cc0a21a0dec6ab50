// The functions declared by public headers.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <tests/support/paths.hpp>

namespace declivity::test::catalogue {

/// Names of the functions of a header, with their namespace below declivity: "linalg::qr". Functions that return a
/// reference are not among them.
inline std::set<std::string> declared_in(const std::filesystem::path& header) {
    static const std::regex declaration(R"(^(?:inline|DECLIVITY_API) [A-Za-z][^\s&]* (operator[^\s(]+|\w+)\()");
    std::set<std::string> out;
    std::ifstream file(header);
    std::string prefix;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("namespace declivity::")) prefix = line.substr(21, line.find(' ', 21) - 21) + "::";
        // tensors_of() lists results, and is not a function of tensors.
        if (std::smatch found; std::regex_search(line, found, declaration) && found.str(1) != "tensors_of")
            out.insert(prefix + found.str(1));
    }
    return out;
}

/// header -> names of its functions, for the headers in include/declivity/functions except that of random numbers
inline std::map<std::string, std::set<std::string>> declared_functions() {
    std::map<std::string, std::set<std::string>> out;
    const auto folder = source_folder().parent_path() / "include/declivity/functions";
    for (const auto& header : std::filesystem::directory_iterator(folder)) {
        const std::string name = header.path().filename().string();
        if (name == "random.hpp") continue;  // no cases: their results are random numbers
        if (const auto names = declared_in(header.path()); !names.empty()) out.emplace(name, names);
    }
    return out;
}

}  // namespace declivity::test::catalogue
