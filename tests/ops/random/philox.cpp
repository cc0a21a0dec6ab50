// The known-answer tests published with Random123 (kat_vectors, philox4x32 10), and the range of the uniforms.
#include <array>
#include <cstdint>

#include <declivity/ops/philox.hpp>
#include <doctest/doctest.h>

using declivity::philox4x32_10;
using declivity::unit_uniform;
using Words = std::array<std::uint32_t, 4>;

TEST_CASE("philox: known answers of Random123") {
    CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    constexpr std::uint32_t kOnes = 0xffffffff;
    CHECK(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
          Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox: uniforms are in [0, 1) with 24 bits") {
    CHECK(unit_uniform(0) == 0.0F);
    CHECK(unit_uniform(0xffU) == 0.0F);
    CHECK(unit_uniform(0x100U) == 0x1p-24F);
    CHECK(unit_uniform(0x80000000U) == 0.5F);
    CHECK(unit_uniform(0xffffffffU) == 1.0F - 0x1p-24F);
}
