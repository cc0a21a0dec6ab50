#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "embedded_kernels.hpp"
#include "program_cache.hpp"

namespace declivity::detail {
namespace {

std::optional<std::string> file_text(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::optional<std::string> library_text(const std::string& name) {
    if (const char* folder = std::getenv("DECLIVITY_KERNEL_DIR"); folder != nullptr && *folder != '\0')
        if (auto text = file_text(std::filesystem::path(folder) / name)) return text;
    const auto kernels = embedded_kernels();
    const auto found = std::ranges::find(kernels, name, &EmbeddedKernel::name);
    if (found == kernels.end()) return std::nullopt;
    return std::string(found->source);
}

std::optional<std::string> text_of(const std::string& name, const std::filesystem::path& beside) {
    if (!beside.empty())
        if (auto text = file_text(beside / name)) return text;
    return library_text(name);
}

/// The name in a line like `#include "math.clh"`.
std::optional<std::string> included(const std::string& line) {
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string::npos || line.compare(start, 8, "#include") != 0) return std::nullopt;
    const std::size_t open = line.find('"', start), close = line.find('"', open + 1);
    if (open == std::string::npos || close == std::string::npos) return std::nullopt;
    return line.substr(open + 1, close - open - 1);
}

/// `open`: the files whose text is being appended, outermost first.
void append(std::string& out, const std::string& name, const std::string& text, const std::filesystem::path& beside,
            std::vector<std::string>& open) {
    open.push_back(name);
    out += fmt::format("#line 1 \"{}\"\n", name);
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const auto include = included(line);
        if (!include) {
            out += line;
            out += '\n';
            continue;
        }
        // Once or many times is for the file's own #ifndef to say: nobody here knows which #if is true. Only a file
        // within itself would never end.
        if (std::ranges::find(open, *include) != open.end()) {
            out += '\n';
            continue;
        }
        const auto inner = text_of(*include, beside);
        if (!inner) throw DeviceError(fmt::format("kernel file '{}', line {}: includes '{}', which does not exist", name, number, *include));
        append(out, *include, *inner, beside, open);
        out += fmt::format("#line {} \"{}\"\n", number + 1, name);
    }
    open.pop_back();
}

}  // namespace

std::string kernel_source(const std::string& file) {
    const bool own = file.find('/') != std::string::npos;
    const std::filesystem::path path(file);
    const auto text = own ? file_text(path) : library_text(file);
    if (!text)
        throw DeviceError(own ? fmt::format("kernel file '{}' cannot be read", file)
                              : fmt::format("there is no kernel file '{}' in the library; a file of yours needs a '/' in "
                                            "its name, as in './{}'", file, file));
    std::string out;
    std::vector<std::string> open;
    append(out, own ? path.filename().string() : file, *text, own ? path.parent_path() : std::filesystem::path(), open);
    return out;
}

}  // namespace declivity::detail
