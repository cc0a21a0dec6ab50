// recipes_selftest CONTRIBUTING.md ROOT
//
// Follows the recipes of CONTRIBUTING.md in a copy of the sources: each code block below one of these comments is
// written to a file, without its indentation.
//
//   <!-- create PATH -->
//   <!-- after "TEXT" in PATH -->, <!-- before "TEXT" in PATH -->   beside the first line that contains TEXT
//   <!-- replace "TEXT" by "OTHER" in PATH -->                      the first TEXT; without a code block
//
// Exit status: 1 if a file or a text does not exist, or a file that is created does.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("there is no file " + path.string());
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    if (!out) throw std::runtime_error("cannot write " + path.string());
}

std::size_t find(const std::string& text, const std::string& what, const fs::path& path) {
    const std::size_t at = text.find(what);
    if (at == std::string::npos) throw std::runtime_error("'" + what + "' is not in " + path.string());
    return at;
}

/// Reads the code block that follows, without the indentation of its fence.
std::string code_block(std::istream& in) {
    std::string line, code;
    while (std::getline(in, line) && line.find("```") == std::string::npos)
        if (!line.empty()) throw std::runtime_error("expected a code block, got '" + line + "'");
    const std::size_t indent = line.find("```");
    while (std::getline(in, line)) {
        if (line.find("```") == indent) return code;
        code += line.substr(std::min(indent, line.size())) + "\n";
    }
    throw std::runtime_error("expected the end of a code block");
}

int follow(const fs::path& page, const fs::path& root) {
    static const std::regex create("<!-- create (\\S+) -->"), beside("<!-- (after|before) \"(.*)\" in (\\S+) -->"),
        replace("<!-- replace \"(.*)\" by \"(.*)\" in (\\S+) -->");
    std::istringstream in(read(page));
    int steps = 0;
    std::smatch found;
    for (std::string line; std::getline(in, line);) {
        if (std::regex_search(line, found, create)) {
            const fs::path path = root / found.str(1);
            if (fs::exists(path)) throw std::runtime_error(path.string() + " exists already");
            write(path, code_block(in));
        } else if (std::regex_search(line, found, beside)) {
            const fs::path path = root / found.str(3);
            const bool after = found.str(1) == "after";
            std::string text = read(path);
            std::size_t at = find(text, found.str(2), path);
            at = after ? text.find('\n', at) + 1 : text.rfind('\n', at) + 1;
            write(path, text.insert(at, code_block(in)));
        } else if (std::regex_search(line, found, replace)) {
            const fs::path path = root / found.str(3);
            std::string text = read(path);
            write(path, text.replace(find(text, found.str(1), path), found.str(1).size(), found.str(2)));
        } else {
            continue;
        }
        ++steps;
    }
    return steps;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count != 3) throw std::runtime_error("expected CONTRIBUTING.md and a folder");
        const int steps = follow(arguments[1], arguments[2]);
        std::cout << steps << " steps of recipes\n";
        return steps < 20 ? 1 : 0;
    } catch (const std::exception& error) {
        std::cerr << "recipes_selftest: " << error.what() << "\n";
        return 1;
    }
}
