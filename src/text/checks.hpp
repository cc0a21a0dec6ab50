// Layer 7, private. Option checks shared by text functions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::text {

/// An empty token would match everywhere, or nowhere.
inline void require_not_empty(const char* function, const char* name, const std::vector<std::string>& tokens) {
    if (std::ranges::any_of(tokens, [](const std::string& token) { return token.empty(); }))
        throw ValueError(fmt::format("{}: expected {} of at least one character, got \"\"", function, name));
}

}  // namespace declivity::text
