// Layer 7, private. Counts of the n-grams of a list of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace declivity::text {

using NgramCounts = std::unordered_map<std::string, std::int64_t>;

/// Counts of n-grams of n tokens, separated by a byte that does not occur in valid text.
inline NgramCounts count_ngrams(const std::vector<std::string>& tokens, std::size_t n) {
    NgramCounts out;
    std::string key;
    for (std::size_t begin = 0; begin + n <= tokens.size(); ++begin) {
        key.clear();
        for (std::size_t i = begin; i < begin + n; ++i) (key += tokens[i]) += '\xFF';
        ++out[key];
    }
    return out;
}

}  // namespace declivity::text
