// guide_pages NAME [show]: runs the code blocks of a guide page and compares their output with the page. "show" also
// writes the output to standard error, for the author of a page.
#include "guide.hpp"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace guide {
namespace {

constexpr const char* kOutput = "output.txt";

std::map<std::string, Blocks, std::less<>>& pages() {
    static std::map<std::string, Blocks, std::less<>> all;
    return all;
}

std::string current_place;  // NOLINT
bool show = false;          // NOLINT

std::string output() {
    std::cout.flush();
    std::fflush(stdout);
    std::ifstream file(kOutput, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void show_output() {
    if (show && !current_place.empty()) std::fprintf(stderr, "--- %s\n%s", current_place.c_str(), output().c_str());
}

/// Returns whether `text` matches `pattern`, in which "..." matches anything.
bool fits(std::string_view text, std::string_view pattern) {
    const std::size_t gap = pattern.find("...");
    if (gap == std::string_view::npos) return text == pattern;
    if (!text.starts_with(pattern.substr(0, gap))) return false;
    pattern.remove_prefix(gap + 3);
    for (std::size_t from = gap; from <= text.size(); ++from)
        if (fits(text.substr(from), pattern)) return true;
    return false;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return text;
}

}  // namespace

Page::Page(std::string_view name, Blocks blocks) { pages().emplace(name, blocks); }

void block(std::string_view place) {
    show_output();
    std::cout.flush();
    current_place = place;
    if (std::freopen(kOutput, "wb", stdout) == nullptr) throw std::runtime_error("output.txt cannot be written");
}

void printed(std::string_view place, std::string_view expected) {
    current_place = place;
    const std::string got = output();
    if (!fits(trimmed(got), trimmed(expected)))
        throw std::runtime_error("the page says\n" + std::string(expected) + "but the block prints\n" + got);
}

}  // namespace guide

int main(int argc, char** argv) {
    guide::show = argc == 3 && std::string_view(argv[2]) == "show";
    const auto page =
        argc == (guide::show ? 3 : 2) ? guide::pages().find(std::string_view(argv[1])) : guide::pages().end();
    if (page == guide::pages().end()) {
        for (const auto& [name, blocks] : guide::pages()) std::fprintf(stderr, "%s\n", name.c_str());
        return 2;
    }
    try {
        page->second();
        guide::show_output();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "docs/guide/%s: %s\n", guide::current_place.c_str(), error.what());
        return 1;
    }
    return 0;
}
