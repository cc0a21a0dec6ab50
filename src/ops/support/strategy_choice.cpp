#include "strategy_choice.hpp"

#include <declivity/runtime/error.hpp>
#include <fmt/ranges.h>

namespace declivity::ops::strategies {

std::string join_name(std::string_view name, std::string_view variant) {
    return variant.empty() ? std::string(name) : fmt::format("{} {}", name, variant);
}

std::pair<std::string_view, std::string_view> split_name(std::string_view winner) {
    const std::size_t space = winner.find(' ');
    return {winner.substr(0, space), space == std::string_view::npos ? std::string_view() : winner.substr(space + 1)};
}

void refuse_name(const char* variable, std::span<const std::string_view> names, std::string_view got) {
    throw ValueError(fmt::format("{}: expected one of {}, got \"{}\"", variable, fmt::join(names, ", "), got));
}

}  // namespace declivity::ops::strategies
