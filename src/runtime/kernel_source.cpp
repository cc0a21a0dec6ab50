#include "kernel_source.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "embedded_kernels.hpp"
#include "environment.hpp"

namespace declivity::detail {

// Fused multiply-add is allowed, but infinities and NaN keep their meaning: the trainer checks for them. Denormal
// arithmetic is 20 times slower on CPUs, and the squares of small gradients are denormal. -cl-mad-enable and
// -cl-no-signed-zeros gave no speedup (a * b + c is fused without them), and the latter loses signs.
const char* const kBuildOptions = "-cl-std=CL1.2 -cl-denorms-are-zero -cl-kernel-arg-info";
namespace {

std::optional<std::string> file_text(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return std::nullopt;  // a folder can be opened and reads as empty
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::optional<std::string> library_text(const std::string& name) {
    const auto kernels = embedded_kernels();
    const auto found = std::ranges::find(kernels, name, &EmbeddedKernel::name);
    if (const std::filesystem::path& folder = environment().kernel_folder.get(); !folder.empty()) {
        if (auto text = file_text(folder / name)) return text;
        if (found != kernels.end())  // the folder may have the layout of cl_kernels/
            if (auto text = file_text(folder / found->path)) return text;
    }
    if (found == kernels.end()) return std::nullopt;
    return std::string(found->source);
}

/// A file and its includes: for a user's file its own folder is searched first.
struct File {
    std::string name;              // for messages
    std::filesystem::path folder;  // empty: embedded in the library
    std::string text;
};

std::optional<File> find_include(const std::string& name, const std::filesystem::path& beside) {
    if (!beside.empty()) {
        const std::filesystem::path path = beside / name;
        if (auto text = file_text(path)) return File{name, path.parent_path(), std::move(*text)};
    }
    if (auto text = library_text(name)) return File{name, {}, std::move(*text)};
    return std::nullopt;
}

/// The file name in a line such as `#include "math.clh"`.
std::optional<std::string> included(const std::string& line) {
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') return std::nullopt;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) return std::nullopt;
    at = line.find_first_not_of(" \t", at + 7);
    if (at == std::string::npos || line[at] != '"') return std::nullopt;
    const std::size_t close = line.find('"', at + 1);
    if (close == std::string::npos) return std::nullopt;
    return line.substr(at + 1, close - at - 1);
}

std::string key_of(const File& file) {
    return (file.folder / std::filesystem::path(file.name).filename()).lexically_normal().string();
}

void append(std::string& out, const File& file, std::vector<std::string>& open) {
    out += fmt::format("#line 1 \"{}\"\n", file.name);
    open.push_back(key_of(file));
    std::istringstream lines(file.text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const auto include = included(line);
        if (!include) {
            out += line;
            out += '\n';
            continue;
        }
        const auto inner = find_include(*include, file.folder);
        if (!inner)
            throw DeviceError(fmt::format("kernel file '{}', line {}: includes '{}', which does not exist", file.name,
                                          number, *include));
        // Include guards are evaluated only by the preprocessor: without this check a file that includes itself would
        // recurse forever.
        if (std::ranges::find(open, key_of(*inner)) == open.end()) append(out, *inner, open);
        out += fmt::format("#line {} \"{}\"\n", number + 1, file.name);
    }
    open.pop_back();
}

}  // namespace

std::string kernel_source(const std::string& file) {
    const bool own = file.find('/') != std::string::npos;
    const std::filesystem::path path(file);
    auto text = own ? file_text(path) : library_text(file);
    if (!text)
        throw DeviceError(own ? fmt::format("kernel file '{}': expected a readable file, got none", file)
                              : fmt::format("there is no kernel file '{}' in the library; a user's file needs a '/' in "
                                            "its name, as in './{}'",
                                            file, file));
    std::string out;
    std::vector<std::string> open;
    append(
        out,
        own ? File{path.filename().string(), path.parent_path(), std::move(*text)} : File{file, {}, std::move(*text)},
        open);
    return out;
}

void dump_kernel(const KernelSpec& spec) {
    const std::filesystem::path& folder = environment().dumped_kernels.get();
    if (folder.empty()) return;
    const std::string program = spec.defines.text() + kernel_source(spec.file);
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a: the same in every process
    for (const unsigned char c : program) hash = (hash ^ c) * 1099511628211ULL;
    const std::filesystem::path path = folder / fmt::format("{}-{:016x}.cl", spec.name, hash);
    std::ofstream out(path, std::ios::binary);
    out << fmt::format("// kernel: {}\n// file: {}\n// options: {}\n", spec.name, spec.file, kBuildOptions) << program;
    if (!out.flush())
        throw ValueError(fmt::format(
            "DECLIVITY_DUMP_KERNELS: expected a folder to write to, got \"{}\", where '{}' cannot be written",
            folder.string(), path.string()));
}

}  // namespace declivity::detail
