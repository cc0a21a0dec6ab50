// Applicability and cost model of Winograd convolutions (minimal filtering).
#include "conv2d_winograd.hpp"

#include <algorithm>
#include <cmath>

namespace declivity::ops::winograd {
namespace {

// Costs in ns of one core with AVX-512; only their ratios matter.
constexpr double kMultiply = 2.0 / 85,
                 kMultiplyDirectly = 2.0 / 70;  // a multiply-add of a product, and of a convolution without transforms
constexpr std::int64_t kCachedElements = 1 << 20;          // transformed weights that fit into the caches of a core
constexpr std::int64_t kLastLevelCacheElements = 1 << 22;  // transformed weights that fit into the last-level cache
constexpr double kReadMemoryWeight = 1.2;                  // an element, by F(4 x 4)
constexpr double kTransform = 0.8, kTransformWeight = 0.7, kTransformUncachedWeight = 2.5,
                 kReadUncachedWeight = 0.15;                                               // an element, by F(4 x 4)
constexpr double kMultiplyTwo = 2.0 / 45, kTransformTwo = 0.5, kTransformWeightTwo = 3.2;  // by F(2 x 2)
constexpr double kTransformGradient = 13,
                 kStoreGradient = 10;  // of a filter and a channel: from sums, and in the sums
constexpr std::int64_t kLanes = 16;    // channels, and filters, transformed at a time
constexpr std::int64_t kTiles = 48;    // for which weights are read once

}  // namespace

Units split_into_units(const std::array<std::int64_t, 2>& size, std::int64_t images, std::int64_t max_images,
                       std::int64_t fitting, std::int64_t grid) {
    constexpr std::int64_t max_wide = 14;
    const std::int64_t tiles_h = ceil_div(size[0], 4), tiles_w = ceil_div(size[1], 4);
    Units units{};
    units.tiles_w_each = ceil_div(
        tiles_w, ceil_div(tiles_w, std::min({tiles_w, max_wide, fitting,
                                             std::max<std::int64_t>(1, (grid / Units::grid_size(1) - 2) / 4)})));
    const std::int64_t max_high = std::clamp<std::int64_t>(
        std::min(fitting / units.tiles_w_each, (grid / Units::grid_size(units.tiles_w_each) - 3) / 4), 1, tiles_h);
    units.tiles_h_each = ceil_div(tiles_h, ceil_div(tiles_h, max_high));
    units.units_h = ceil_div(tiles_h, units.tiles_h_each);
    units.units_w = ceil_div(tiles_w, units.tiles_w_each);
    units.images_each = units.units_h * units.units_w > 1
                            ? 1
                            : std::clamp<std::int64_t>(
                                  std::min(fitting / (units.tiles_h_each * units.tiles_w_each), max_images), 1, images);
    units.count = ceil_div(images, units.images_each) * units.units_h * units.units_w;
    return units;
}

std::int64_t spread(std::int64_t elements) {
    constexpr std::int64_t line = 16;
    return ceil_div(elements, line) * line + line;
}

bool is_applicable(const Conv2dProblem& problem) {
    constexpr std::array<std::int64_t, 2> filter_size{3, 3}, unit_stride{1, 1};
    constexpr std::int64_t limit = std::int64_t{1} << 28;
    return problem.winograd && problem.style == KernelStyle::simd && problem.groups == 1 &&
           problem.filter == filter_size && problem.stride == unit_stride && problem.dilation == unit_stride &&
           problem.padding[0] <= 1024 && problem.padding[1] <= 1024 &&
           std::max({problem.input[0], problem.input[1], problem.channels, problem.filters}) <= limit / 4096 &&
           problem.input[0] * problem.input[1] <= limit && problem.channels * problem.filters <= limit;
}

std::int64_t cheapest(const Conv2dProblem& problem) {
    if (problem.dtype != DType::f32 || !problem.winograd) return 0;
    const auto& to = problem.direction == Conv2dDirection::backward_input ? problem.input : problem.output;
    const std::int64_t pairs = problem.channels * problem.filters;
    const auto cost = [&](std::int64_t tile) {
        const std::int64_t elements = (tile + 2) * (tile + 2),
                           tiles = problem.images * ceil_div(to[0], tile) * ceil_div(to[1], tile);
        const bool uncached = elements * pairs > kCachedElements;
        const double transform = tile == 2 ? kTransformTwo : kTransform,
                     multiply = tile == 2 ? kMultiplyTwo : kMultiply;
        const double read = elements * pairs > kLastLevelCacheElements ? kReadMemoryWeight : kReadUncachedWeight;
        const double weight =
            tile == 4 && problem.constant_weight ? (uncached ? read * static_cast<double>(ceil_div(tiles, kTiles)) : 0)
            : tile == 2                          ? kTransformWeightTwo
            : uncached ? kTransformUncachedWeight + read * static_cast<double>(ceil_div(tiles, kTiles))
                       : kTransformWeight;
        return static_cast<double>(elements) *
               (multiply * static_cast<double>(pairs * tiles) + weight * static_cast<double>(pairs) +
                transform * static_cast<double>(tiles * (problem.channels + problem.filters)));
    };
    if (problem.direction == Conv2dDirection::backward_weights) {
        const auto padded = [](std::int64_t value) { return ceil_div(value, kLanes) * kLanes; };
        const std::int64_t channels = padded(problem.channels), filters = padded(problem.filters),
                           tiles = problem.images * ceil_div(to[0], 4) * ceil_div(to[1], 4);
        // Each part of the filters transforms the channels again, and each part of the channels the filters.
        const double parts =
            std::max(1.0, std::sqrt(static_cast<double>(channels * filters) / static_cast<double>(kMaxPairs)));
        const double four = 36 * static_cast<double>(tiles) *
                                (kMultiply * static_cast<double>(channels * filters) +
                                 kTransform * parts * static_cast<double>(channels + filters)) +
                            kTransformGradient * static_cast<double>(pairs);
        return four < 0.9 * static_cast<double>(pairs) *
                           (9 * kMultiplyDirectly * static_cast<double>(problem.images * to[0] * to[1]) +
                            kStoreGradient)
                   ? 4
                   : 0;
    }
    const double direct = 9 * kMultiplyDirectly * static_cast<double>(pairs * problem.images * to[0] * to[1]),
                 two = cost(2), four = cost(4);
    return std::min(two, four) >= 0.9 * direct ? 0 : two < four ? 2 : 4;
}

}  // namespace declivity::ops::winograd
