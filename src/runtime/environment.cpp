#include "environment.hpp"

#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::detail {
namespace {

[[noreturn]] void refuse(const char* name, std::string_view wants, std::string_view got) {
    throw ValueError(fmt::format("{}: wants {}, got \"{}\"", name, wants, got));
}

}  // namespace

std::optional<std::string_view> environment_given(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::string_view>(text);
}

std::string_view environment_text(const char* name) { return environment_given(name).value_or(std::string_view()); }

bool environment_switch(const char* name, bool otherwise) {
    const std::string_view text = environment_text(name);
    if (text.empty()) return otherwise;
    if (text != "0" && text != "1") refuse(name, "0 or 1", text);
    return text == "1";
}

std::optional<std::size_t> environment_choice(const char* name, std::initializer_list<std::string_view> words) {
    const std::string_view text = environment_text(name);
    if (text.empty()) return std::nullopt;
    std::string list;
    std::size_t at = 0;
    for (const std::string_view word : words) {
        if (word == text) return at;
        list += fmt::format("{}\"{}\"", at == 0 ? "" : at + 1 == words.size() ? " or " : ", ", word);
        ++at;
    }
    refuse(name, list, text);
}

std::optional<std::uint64_t> environment_bytes(const char* name) {
    const std::string_view text = environment_text(name);
    if (text.empty()) return std::nullopt;
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
    if (error != std::errc() || shift < 0 || number > (~std::uint64_t{0} >> shift))
        refuse(name, "bytes, as in 500000000, 500M or 2G", text);
    return number << shift;
}

std::string_view environment_folder(const char* name) {
    const std::string_view text = environment_text(name);
    std::error_code ignored;
    if (!text.empty() && !std::filesystem::is_directory(text, ignored)) refuse(name, "a folder that exists", text);
    return text;
}

std::filesystem::path cache_folder() {
    if (const auto own = environment_given("DECLIVITY_CACHE_DIR")) return *own;
    if (const std::string_view cache = environment_text("XDG_CACHE_HOME"); !cache.empty())
        return std::filesystem::path(cache) / "declivity";
    if (const std::string_view home = environment_text("HOME"); !home.empty())
        return std::filesystem::path(home) / ".cache" / "declivity";
    return {};
}

}  // namespace declivity::detail
