// Layer 2, private. What Winograd's convolutions share: which problems they serve, and what they cost.
#pragma once

#include "conv2d_strategy.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops::winograd {

/// Filters of 3 x 3, neither strides, dilation nor groups; nothing where DECLIVITY_WINOGRAD=0 switches them off.
bool is_applicable(const Conv2dProblem& problem);

/// 2 or 4 (for backward_weights always 4): the tile that costs least; 0: neither pays.
std::int64_t cheapest(const Conv2dProblem& problem);

/// Register tiles of the products of tiles of 4 x 4 positions. Few, because each is a kernel to compile: for 32
/// registers, and for 16.
inline constexpr std::array kRegisterTiles{RegisterTile{12, 2}, RegisterTile{8, 3}, RegisterTile{6, 2},
                                           RegisterTile{4, 3}};
constexpr double kGain = 0.9;           // that a later one must promise
constexpr std::int64_t kElements = 36;  // of a transformed tile
constexpr std::int64_t kMaxTiles = 48;  // of a unit
constexpr std::int64_t kGroupsPerUnit =
    2;  // so that all compute units end at about the same time; each group has a slice of memory

/// How the tiles of a plane are cut into units that are transformed and multiplied at once: `wide` x `high` tiles of an
/// image, or all of several images.
struct Units {
    std::int64_t wide, high, units_w, units_h, images_each, count;
    [[nodiscard]] std::int64_t tiles() const { return images_each * high * wide; }
    /// Rows or columns that so many tiles meet.
    static constexpr std::int64_t held(std::int64_t tiles) { return tiles * 4 + 2; }
};
/// @param size positions of the plane; `fitting` tiles a unit should have at most, `grid` positions of what they meet
/// fit into local memory
Units cut_units(const std::array<std::int64_t, 2>& size, std::int64_t images, std::int64_t max_images,
                std::int64_t fitting, std::int64_t grid);
/// Bytes of local memory for such positions.
constexpr std::int64_t kGridBytes = 96 * 1024;
/// Elements from one of the 36 to the next: not a multiple of the page, or all that is written at once would meet in
/// the same sets of the caches.
std::int64_t spread(std::int64_t elements);

/// Pairs of filters and channels whose sums backward_weights keeps at a time.
constexpr std::int64_t kMaxPairs = 4096;
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::winograd
