// Layer 5. Handwriting-like digits that the library draws itself: data for a first run that needs no download.
#pragma once

#include <array>
#include <cstdint>

#include <declivity/data/dataset.hpp>
#include <declivity/export.hpp>

namespace declivity::data {

inline constexpr int kDigitSize = 28;

/// One digit: white ink on black, row by row, as MNIST has it.
struct SyntheticDigit {
    std::int64_t label = 0;
    std::array<std::uint8_t, std::size_t{kDigitSize} * kDigitSize> pixels{};
};

/// Draws the digit that (seed, index) stands for. Its label is uniform among 0 to 9. It is written in one of several
/// styles a digit, along smooth curves whose points vary; it is turned, slanted and stretched, bent by a smoothed
/// random displacement field (Simard, Steinkraus, Platt, "Best practices for convolutional neural networks applied to
/// visual document analysis", ICDAR 2003), and inked with a pen of varying thickness and pressure, with some noise.
DECLIVITY_API SyntheticDigit draw_digit(std::uint64_t seed, std::uint64_t index);

/// The digits (seed, first) to (seed, first + count - 1), drawn at construction on all processors: images 1,28,28.
/// Sets of different seeds have nothing in common; a test set is one of another seed.
class DECLIVITY_API SyntheticDigits : public InMemoryDataset {
  public:
    /// @throws ValueError when count is negative
    SyntheticDigits(std::int64_t count, std::uint64_t seed, std::uint64_t first = 0);
    ~SyntheticDigits() override;
};

}  // namespace declivity::data
