// Layer 2, private. Tiling of matrix products in local memory (cl_kernels/lib/local_tile.clh) for simt kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// The tile of a work-group and its distribution over work-items, see the kernels.
struct LocalTile {
    std::int64_t row_items, column_items, row_strips, column_strips, slice;
    [[nodiscard]] std::int64_t rows() const { return 4 * row_items * row_strips; }
    [[nodiscard]] std::int64_t columns() const { return 4 * column_items * column_strips; }
    [[nodiscard]] std::int64_t items() const { return row_items * column_items; }
    [[nodiscard]] std::size_t local_bytes(DType dtype) const;
    [[nodiscard]] bool fits(const Device& device, DType dtype) const;
    /// Rows and columns, as "64x128".
    [[nodiscard]] std::string name() const;
};

/// A tiled matrix product, possibly with split-K: the sums are divided into parts along k, which are added afterwards.
struct TileConfig {
    LocalTile tile;
    std::int64_t parts = 1;
    std::int64_t each = 0;  ///< steps of k of a part, a multiple of the slice if there are several parts
};

/// Shape of a matrix product; `batch` products are computed at once. `may_split` allows split-K.
struct TiledGemm {
    std::int64_t rows, columns, k, batch = 1;
    bool may_split = true;
};

/// Returns whether any tile fits the device.
bool local_tiles_fit(const Device& device, DType dtype);

/// Returns the applicable configurations, the one with the least estimated cost first; never empty if
/// local_tiles_fit().
/// A variant "64x64" names the tile, "64x64x4" also the number of parts.
std::vector<TileConfig> tile_configs(const Device& device, DType dtype, const TiledGemm& product,
                                     std::string_view variant);

/// Returns the variants that are worth measuring.
std::vector<std::string> local_variants(const Device& device, DType dtype, const TiledGemm& product);

/// Defines ROW_ITEMS, ..., SLICE.
void set_tile(Defines& defines, const LocalTile& tile);

/// Returns the kernel of the first configuration whose work-group the device supports as compiled, and that
/// configuration.
template <class Make>
std::pair<Kernel, TileConfig> kernel_for(const std::vector<TileConfig>& configs, const Make& make) {
    for (const TileConfig& config : configs) {
        Kernel kernel = make(config);
        if (static_cast<std::int64_t>(kernel.max_work_group()) >= config.tile.items())
            return {std::move(kernel), config};
    }
    return {make(configs.back()), configs.back()};  // its launch reports the error
}

/// Returns whether an operand is aligned for vectors of 4 elements.
bool begins_aligned(const View& view);

}  // namespace declivity::ops
