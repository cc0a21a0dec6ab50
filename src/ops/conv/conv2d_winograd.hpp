// Layer 2, private. Declarations shared by the Winograd convolutions: applicability, cost model and partition.
#pragma once

#include "conv2d_strategy.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops::winograd {

/// Returns whether Winograd is applicable: 3 x 3 filters without strides, dilation and groups, unless disabled by
/// DECLIVITY_WINOGRAD=0.
bool is_applicable(const Conv2dProblem& problem);

/// Returns the tile of least cost, 2 or 4 (for backward_weights always 4); 0 if neither is profitable.
std::int64_t cheapest(const Conv2dProblem& problem);

/// Register tiles of the products, for 4 x 4 output tiles. Few, since each is a kernel to compile: for 32 registers,
/// and for 16.
inline constexpr std::array kRegisterTiles{RegisterTile{12, 2}, RegisterTile{8, 3}, RegisterTile{6, 2},
                                           RegisterTile{4, 3}};
constexpr double kGain = 0.9;               // relative cost that a later tile must reach
constexpr std::int64_t kElements = 36;      // of a transformed tile
constexpr std::int64_t kMaxTiles = 48;      // of a unit
constexpr std::int64_t kGroupsPerUnit = 2;  // to balance the load; each group has a slice of memory

/// Division of the tiles of a plane into units that are transformed and multiplied at once: `tiles_w_each` x
/// `tiles_h_each` tiles of an image, or all tiles of several images.
struct Units {
    std::int64_t tiles_w_each, tiles_h_each, units_w, units_h, images_each, count;
    [[nodiscard]] std::int64_t tiles() const { return images_each * tiles_h_each * tiles_w_each; }
    /// Input rows or columns of this many tiles.
    static constexpr std::int64_t grid_size(std::int64_t tiles) { return tiles * 4 + 2; }
};
/// @param size positions of the plane; a unit has at most `fitting` tiles, and its input at most `grid` positions,
/// which fit into local memory
Units split_into_units(const std::array<std::int64_t, 2>& size, std::int64_t images, std::int64_t max_images,
                       std::int64_t fitting, std::int64_t grid);
/// Bytes of local memory for the input positions.
constexpr std::int64_t kGridBytes = 96 * 1024;
/// Distance between the 36 elements of a tile: not a multiple of the page size, to avoid conflicts in the same cache
/// sets.
std::int64_t spread(std::int64_t elements);

/// Maximum pairs of filters and channels whose sums backward_weights accumulates at a time.
constexpr std::int64_t kMaxPairs = 4096;
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::winograd
