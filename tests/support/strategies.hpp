// Names of an operator's strategies.
#pragma once

#include <string>

namespace declivity::test {

/// "a, b, c", in order of preference.
template <class Strategies>
std::string names_of(const Strategies& strategies) {
    std::string names;
    for (const auto* strategy : strategies) names += (names.empty() ? "" : ", ") + std::string(strategy->name());
    return names;
}

}  // namespace declivity::test
