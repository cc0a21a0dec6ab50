// Compares the files that cmake/EmbedKernels.cmake embedded into this program with the originals, byte for byte.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <runtime/embedded_kernels.hpp>

int main(int argc, char** argv) {
    if (argc != 2) return std::fputs("usage: embed_selftest FOLDER\n", stderr), 2;
    int wrong = 0;
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
        if (entry.path().extension() != ".cl" && entry.path().extension() != ".clh") continue;
        ++files;
        std::ifstream stream(entry.path(), std::ios::binary);
        const std::string expected{std::istreambuf_iterator<char>(stream), {}};
        bool same = false;
        for (const auto& kernel : declivity::detail::embedded_kernels())
            if (kernel.name == entry.path().filename().string())
                same = kernel.source == expected &&
                       kernel.path == entry.path().lexically_relative(argv[1]).generic_string();
        std::printf("%s: %zu bytes: %s\n", entry.path().filename().c_str(), expected.size(),
                    same ? "same" : "DIFFERENT");
        wrong += same ? 0 : 1;
    }
    const std::size_t embedded = declivity::detail::embedded_kernels().size();
    std::printf("%zu files, %zu embedded\n", files, embedded);
    return wrong == 0 && files > 0 && files == embedded ? 0 : 1;
}
