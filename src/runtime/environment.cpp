#include "environment.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace declivity::detail {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> given(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

std::string text_of(const char* name) { return given(name).value_or(std::string()); }

template <class T>
Setting<T> wrong(const char* name, std::string_view expected, std::string_view got) {
    return Setting<T>::wrong(fmt::format("{}: expected {}, got \"{}\"", name, expected, got));
}

/// Parses one of several words. @param otherwise the default if the variable is unset
template <class T, std::size_t N>
Setting<T> choice(const char* name, const std::array<std::pair<std::string_view, T>, N>& words, T otherwise) {
    const std::string text = text_of(name);
    if (text.empty()) return otherwise;
    std::string list;
    for (std::size_t i = 0; i < N; ++i) {
        if (words[i].first == text) return words[i].second;
        list += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == N ? " or " : ", ", words[i].first);
    }
    return wrong<T>(name, list, text);
}

Setting<bool> on_or_off(const char* name, bool otherwise) {
    const std::string text = text_of(name);
    if (text.empty()) return otherwise;
    if (text != "0" && text != "1") return wrong<bool>(name, "0 or 1", text);
    return text == "1";
}

Setting<std::optional<std::uint64_t>> bytes(const char* name) {
    using Bytes = std::optional<std::uint64_t>;
    const std::string text = text_of(name);
    if (text.empty()) return Bytes();
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
    if (error != std::errc() || shift < 0 || number > (~std::uint64_t{0} >> shift))
        return wrong<Bytes>(name, "bytes, as in 500000000, 500M or 2G", text);
    return Bytes(number << shift);
}

Setting<MemoryShare> memory_share(const char* name, double otherwise) {
    const std::string text = text_of(name);
    if (text.empty()) return MemoryShare{.share = otherwise};
    if (text.back() == '%') {
        int percent = 0;
        const char* const end = text.data() + text.size() - 1;
        const auto [rest, error] = std::from_chars(text.data(), end, percent);
        if (error == std::errc() && rest == end && percent >= 0 && percent <= 100)
            return MemoryShare{.share = percent / 100.0};
    } else if (const auto number = bytes(name); number.is_valid()) {
        return MemoryShare{.bytes = number.get()};
    }
    return wrong<MemoryShare>(name, "a share of the device's memory, as in 25%, or bytes, as in 500M or 2G", text);
}

Setting<fs::path> folder(const char* name) {
    const std::string text = text_of(name);
    std::error_code ignored;
    if (!text.empty() && !fs::is_directory(text, ignored)) return wrong<fs::path>(name, "a folder that exists", text);
    return fs::path(text);
}

fs::path cache_folder() {
    if (const auto own = given("DECLIVITY_CACHE_DIR")) return *own;
    if (const std::string cache = text_of("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "declivity";
    if (const std::string home = text_of("HOME"); !home.empty()) return fs::path(home) / ".cache" / "declivity";
    return {};
}

/// DECLIVITY_KERNEL_STYLE, and DECLIVITY_FAMILY by which it was called in version 0.1.
Setting<std::optional<KernelStyle>> kernel_style() {
    using Style = std::optional<KernelStyle>;
    using Choice = std::pair<std::string_view, Style>;
    if (text_of("DECLIVITY_KERNEL_STYLE").empty() && !text_of("DECLIVITY_FAMILY").empty())
        return choice("DECLIVITY_FAMILY",
                      std::array{Choice{"cpu", KernelStyle::simd}, Choice{"gpu", KernelStyle::simt}}, Style());
    return choice("DECLIVITY_KERNEL_STYLE",
                  std::array{Choice{"simd", KernelStyle::simd}, Choice{"simt", KernelStyle::simt}}, Style());
}

const Environment* parse_environment() {
    using Stagings = std::optional<Staging>;
    using std::pair;
    auto* out = new Environment{
        .device = text_of("DECLIVITY_DEVICE"),
        .style = kernel_style(),
        .staging = choice("DECLIVITY_STAGING",
                          std::array{pair<std::string_view, Stagings>{"plain", Staging::plain},
                                     pair<std::string_view, Stagings>{"pinned", Staging::pinned}},
                          Stagings()),
        .exact_pool = choice("DECLIVITY_POOL", std::array{pair<std::string_view, bool>{"exact", true}}, false),
        .memory_limit = bytes("DECLIVITY_MEMORY_LIMIT"),
        .packed_weights = memory_share("DECLIVITY_PACKED_WEIGHTS", 0.25),
        .fusion = on_or_off("DECLIVITY_FUSION", true),
        .winograd = on_or_off("DECLIVITY_WINOGRAD", true),
        .workarounds = on_or_off("DECLIVITY_WORKAROUNDS", true),
        .tune = on_or_off("DECLIVITY_TUNE", false),
        .conv2d = text_of("DECLIVITY_CONV2D"),
        .matmul = text_of("DECLIVITY_MATMUL"),
        .log_kernels = choice("DECLIVITY_LOG", std::array{pair<std::string_view, bool>{"kernels", true}}, false),
        .profile = text_of("DECLIVITY_PROFILE"),
        .dumped_kernels = folder("DECLIVITY_DUMP_KERNELS"),
        .kernel_folder = folder("DECLIVITY_KERNEL_DIR"),
        .cache_folder = cache_folder(),
        .tuning_file = {},
        .driver_options = text_of("POCL_EXTRA_BUILD_FLAGS")};
    if (const auto own = given("DECLIVITY_TUNING_FILE")) out->tuning_file = *own;
    else if (!out->cache_folder.empty()) out->tuning_file = out->cache_folder / "tuning.json";
    return out;
}

// Never destroyed, and neither are previous ones: other threads may be reading them.
std::atomic<const Environment*>& slot() {
    static std::atomic<const Environment*> current{parse_environment()};
    return current;
}

}  // namespace

const Environment& environment() { return *slot().load(std::memory_order_acquire); }
void reload_environment() { slot().store(parse_environment(), std::memory_order_release); }

}  // namespace declivity::detail
