// Layer 2, private. How products are cut into tiles in local memory (cl_kernels/lib/local_tile.clh) for GPU-like
// devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// What a work-group computes, and by which work-items: see the kernels.
struct LocalTile {
    std::int64_t row_items, column_items, row_strips, column_strips, slice;
    [[nodiscard]] std::int64_t rows() const { return 4 * row_items * row_strips; }
    [[nodiscard]] std::int64_t columns() const { return 4 * column_items * column_strips; }
    [[nodiscard]] std::int64_t items() const { return row_items * column_items; }
    [[nodiscard]] std::size_t local_bytes(DType dtype) const;
    [[nodiscard]] bool fits(const Device& device, DType dtype) const;
    /// "64x128": rows and columns.
    [[nodiscard]] std::string name() const;
};

/// A product and what it is cut into: all tiles, or the sums also into parts along k, which are then added.
struct TileConfig {
    LocalTile tile;
    std::int64_t parts = 1;
    std::int64_t each = 0;  ///< steps of k of a part, a multiple of the slice where there are several
};

/// Sizes of a product; `batch` such products are computed at once. `may_split`: the sums may be cut into parts.
struct TiledGemm {
    std::int64_t rows, columns, k, batch = 1;
    bool may_split = true;
};

/// Whether any tile fits.
bool local_tiles_fit(const Device& device, DType dtype);

/// The ways to cut a product, the one of least cost by rule of thumb first; never empty where local_tiles_fit(). A
/// variant "64x64" names the tile, "64x64x4" the number of parts as well.
std::vector<TileConfig> tile_configs(const Device& device, DType dtype, const TiledGemm& product,
                                     std::string_view variant);

/// The variants that are worth a measurement.
std::vector<std::string> local_variants(const Device& device, DType dtype, const TiledGemm& product);

/// ROW_ITEMS, ..., SLICE.
void set_tile(Defines& defines, const LocalTile& tile);

/// The kernel for the first cut whose work-group the device can run as it was compiled, and that cut.
template <class Make>
std::pair<Kernel, TileConfig> kernel_for(const std::vector<TileConfig>& cuts, const Make& make) {
    for (const TileConfig& cut : cuts) {
        Kernel kernel = make(cut);
        if (static_cast<std::int64_t>(kernel.max_work_group()) >= cut.tile.items()) return {std::move(kernel), cut};
    }
    return {make(cuts.back()), cuts.back()};  // whose launch says what is wrong
}

/// Whether elements begin where vectors of 4 may be read.
bool begins_aligned(const View& view);

}  // namespace declivity::ops
