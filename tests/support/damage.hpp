// A small deterministic fuzzer for file readers: for any modification of a valid file, the reader returns a valid
// result or throws a FormatError that names the file, and never crashes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/temp_folder.hpp>

namespace declivity::test {

/// Outcomes of reading damaged files.
struct Verdicts {
    int accepted = 0;
    int refused = 0;
};

/// Reads every proper prefix of the file.
/// @param read reads the file at the given path, checks the result and throws FormatError if the file is refused
inline Verdicts truncate_everywhere(const Bytes& valid, const std::filesystem::path& path,
                                    const std::function<void(const std::filesystem::path&)>& read) {
    Verdicts verdicts;
    for (std::size_t length = 0; length < valid.size(); ++length) {
        put_file(path, std::span(valid).first(length));
        try {
            read(path);
            ++verdicts.accepted;
        } catch (const FormatError& error) {
            ++verdicts.refused;
            CHECK_UNARY(error.file() == path.string());
        }
    }
    return verdicts;
}

/// Reads `rounds` damaged versions of the file: bits flipped, bytes set to special values, pieces removed, duplicated
/// or swapped.
inline Verdicts damage_at_random(const Bytes& valid, const std::filesystem::path& path, int rounds,
                                 const std::function<void(const std::filesystem::path&)>& read) {
    std::mt19937 random(20240229);  // the standard specifies the generator, but not its distributions
    const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(random()) % limit; };
    Verdicts verdicts;
    for (int round = 0; round < rounds; ++round) {
        Bytes bytes = valid;
        for (std::size_t change = 0; change <= below(3) && !bytes.empty(); ++change) {
            // Half of the damage is at the beginning, where headers are located.
            const std::size_t position =
                below(2) == 0 ? below(std::min<std::size_t>(bytes.size(), 64)) : below(bytes.size());
            const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(position);
            const std::size_t length = std::min(bytes.size() - position, 1 + below(16));
            const auto end = at + static_cast<std::ptrdiff_t>(length);
            switch (below(6)) {
                case 0:
                    *at = static_cast<std::uint8_t>(*at ^ (1U << below(8)));
                    break;
                case 1:
                    *at = static_cast<std::uint8_t>(below(256));
                    break;
                case 2:
                    std::fill(at, end, static_cast<std::uint8_t>(below(2) * 255));
                    break;
                case 3:
                    bytes.erase(at, end);
                    break;
                case 4: {
                    const Bytes piece(at, end);
                    bytes.insert(at, piece.begin(), piece.end());
                    break;
                }
                default:
                    std::reverse(at, end);
                    break;
            }
        }
        put_file(path, bytes);
        try {
            read(path);
            ++verdicts.accepted;
        } catch (const FormatError& error) {
            ++verdicts.refused;
            CHECK_UNARY(error.file() == path.string());
        }
    }
    return verdicts;
}

}  // namespace declivity::test
