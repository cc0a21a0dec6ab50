#include "target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace declivity::fuzz {
namespace {

constexpr std::array<std::string_view, 40> kWords{"null",
                                                  "true",
                                                  "{}",
                                                  "[]",
                                                  "-1",
                                                  "0",
                                                  "1e999",
                                                  "1e308",
                                                  "-0.5",
                                                  "4294967295",
                                                  "2147483648",
                                                  "18446744073709551615",
                                                  "9223372036854775807",
                                                  "\"\"",
                                                  "\"a\"",
                                                  ",",
                                                  ":",
                                                  "[[[[[[[[",
                                                  "{\"a\":{\"a\":",
                                                  "]",
                                                  "}",
                                                  "\"",
                                                  "\\u0000",
                                                  "\\ud800",
                                                  "\xff",
                                                  "\xe4\xb8\xad",
                                                  "(",
                                                  ")",
                                                  "[^",
                                                  "\\C",
                                                  "\\K",
                                                  "(?R)",
                                                  "(?1)",
                                                  "(*UTF)",
                                                  "a{1000}",
                                                  "(?<=a)",
                                                  "\\p{L}+",
                                                  "|",
                                                  "*",
                                                  "(a+)+"};

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all = [] {
        std::vector<Target> out;
        for (const auto& list : {io_targets(), text_targets(), runtime_targets(), model_targets()})
            out.insert(out.end(), list.begin(), list.end());
        std::ranges::sort(out, {}, &Target::name);
        return out;
    }();
    return all;
}

InputFile::InputFile(Input bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t some = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
        if (some < 0) throw std::system_error(errno, std::generic_category(), "write");
        done += static_cast<std::size_t>(some);
    }
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t Mutator::below(std::size_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return limit == 0 ? 0 : static_cast<std::size_t>(state_ >> 11) % limit;
}

Bytes Mutator::change(const Bytes& bytes, const std::vector<Bytes>& seeds) {
    Bytes out = bytes;
    for (std::size_t count = 1 + below(4); count > 0; --count) change_once(out, seeds);
    return out;
}

void Mutator::change_once(Bytes& bytes, const std::vector<Bytes>& seeds) {
    // Half of the mutations are at the beginning, where headers are located.
    const std::size_t position = below(2) == 0 ? below(std::min<std::size_t>(bytes.size(), 64)) : below(bytes.size());
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(position);
    const std::size_t left = bytes.size() - position, length = std::min(left, 1 + below(below(4) == 0 ? 256 : 16));
    const auto end = at + static_cast<std::ptrdiff_t>(length);
    const auto overwrite = [&](std::uint64_t value, std::size_t size, bool big) {
        for (std::size_t i = 0; i < std::min(size, left); ++i)
            at[static_cast<std::ptrdiff_t>(i)] = static_cast<std::uint8_t>(value >> 8 * (big ? size - 1 - i : i));
    };
    if (bytes.empty()) {
        bytes.push_back(static_cast<std::uint8_t>(below(256)));
        return;
    }
    switch (below(9)) {
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
            for (std::size_t count = 1 + below(3); count > 0; --count)
                bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(position), piece.begin(), piece.end());
            break;
        }
        case 5: {
            constexpr std::array<std::uint64_t, 10> kNumbers{
                0, 1, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_C(1) << 40, INT64_MAX, UINT64_MAX};
            overwrite(kNumbers[below(kNumbers.size())], std::size_t{1} << below(4), below(2) == 0);
            break;
        }
        case 6: {
            const std::string_view word = kWords[below(kWords.size())];
            if (below(2) == 0) bytes.erase(at, end);
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(position), word.begin(), word.end());
            break;
        }
        case 7: {
            const Bytes& other = seeds[below(seeds.size())];
            if (other.empty()) break;
            const std::size_t from = below(other.size()), size = std::min(other.size() - from, 1 + below(64));
            bytes.insert(at, other.begin() + static_cast<std::ptrdiff_t>(from),
                         other.begin() + static_cast<std::ptrdiff_t>(from + size));
            break;
        }
        default:
            std::reverse(at, end);
            break;
    }
}

}  // namespace declivity::fuzz
