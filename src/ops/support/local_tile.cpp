#include "local_tile.hpp"

#include <algorithm>
#include <array>

#include <declivity/runtime/interop.hpp>
#include <fmt/format.h>

#include "local_block.hpp"

namespace declivity::ops {
namespace {

// Few tiles, since each is a kernel to compile: for large results, for small ones, for those with few rows or columns.
constexpr std::array kTiles{LocalTile{16, 16, 2, 2, 8}, LocalTile{16, 8, 2, 2, 8}, LocalTile{8, 16, 2, 2, 8},
                            LocalTile{8, 16, 2, 1, 8},  LocalTile{8, 8, 1, 1, 8},  LocalTile{4, 16, 1, 1, 16},
                            LocalTile{16, 4, 1, 1, 16}};

constexpr std::int64_t kMaxSumBytes = 256;   // of a work-item, in registers
constexpr std::int64_t kItemsPerUnit = 512;  // work-items that saturate a compute unit, with this many sums each
constexpr std::int64_t kMinPart = 128;       // minimum steps of k for a work-group
constexpr std::int64_t kMaxPartials = std::int64_t{64} << 20;  // bytes
// Costs in multiply-adds of a compute unit.
constexpr double kLoad = 0.7;        // a vector read from local memory, per multiply-add with it
constexpr double kStart = 16;        // steps of k, equivalent to the first slice and the store of the results
constexpr double kJoinElement = 20;  // an element of a partial result, which is stored and read again
constexpr double kLaunch = 2e5;

/// Sums of a work-item for each number that it reads.
double intensity(const LocalTile& tile) {
    const auto rows = static_cast<double>(4 * tile.row_strips), columns = static_cast<double>(4 * tile.column_strips);
    return rows * columns / (rows + columns);
}

double cost_of(const LocalTile& tile, const TiledGemm& product, std::int64_t parts, std::int64_t units) {
    const std::int64_t groups =
        ceil_div(product.rows, tile.rows()) * ceil_div(product.columns, tile.columns()) * product.batch * parts;
    // Fewer groups than saturate a unit take as long as a saturating number.
    const auto turns = static_cast<double>(std::max(ceil_div(groups, units), kItemsPerUnit / tile.items()));
    const double steps = static_cast<double>(product.k) / static_cast<double>(parts) + kStart;
    const double cost =
        turns * static_cast<double>(tile.rows() * tile.columns()) * steps * (1 + kLoad / intensity(tile));
    if (parts == 1) return cost;
    return cost + kLaunch +
           kJoinElement * static_cast<double>(product.rows * product.columns * product.batch * (parts + 1)) /
               static_cast<double>(units);
}

TileConfig config_of(const LocalTile& tile, const TiledGemm& product, std::int64_t parts) {
    if (parts <= 1) return {tile, 1, product.k};
    const std::int64_t each = ceil_div(ceil_div(product.k, parts), tile.slice) * tile.slice;
    return {tile, std::max<std::int64_t>(1, ceil_div(product.k, each)), each};
}

std::int64_t max_parts(const TiledGemm& product, DType dtype) {
    if (!product.may_split) return 1;
    const std::int64_t bytes =
        product.rows * product.columns * product.batch * static_cast<std::int64_t>(size_of(dtype));
    return std::max<std::int64_t>(1, std::min(product.k / kMinPart, kMaxPartials / bytes));
}

}  // namespace

std::size_t LocalTile::local_bytes(DType dtype) const {
    return static_cast<std::size_t>(2 * slice * (rows() + columns() + 8)) * size_of(dtype);
}

bool LocalTile::fits(const Device& device, DType dtype) const {
    const DeviceInfo& info = device.info();
    // f64 sums take two registers each, of at most 255 of a work-item.
    if (16 * row_strips * column_strips * static_cast<std::int64_t>(size_of(dtype)) > kMaxSumBytes) return false;
    return static_cast<std::int64_t>(local_bytes(dtype)) <= block_elements(device, DType::u8, info.local_memory) &&
           static_cast<std::size_t>(items()) <= std::min(info.max_work_group, info.max_work_items[0]);
}

std::string LocalTile::name() const { return fmt::format("{}x{}", rows(), columns()); }

bool local_tiles_fit(const Device& device, DType dtype) {
    return std::ranges::any_of(kTiles, [&](const LocalTile& tile) { return tile.fits(device, dtype); });
}

std::vector<TileConfig> tile_configs(const Device& device, DType dtype, const TiledGemm& product,
                                     std::string_view variant) {
    struct CostedConfig {
        TileConfig config;
        double cost;
    };
    std::vector<CostedConfig> all;
    const std::int64_t units = std::max(1U, device.info().compute_units);
    for (const LocalTile& tile : kTiles) {
        if (!tile.fits(device, dtype)) continue;
        const std::string name = tile.name();
        const bool named = variant.starts_with(name) && (variant.size() == name.size() || variant[name.size()] == 'x');
        if (named && product.may_split && variant.size() > name.size()) {
            std::int64_t parts = 0;
            for (const char digit : variant.substr(name.size() + 1))
                parts = digit >= '0' && digit <= '9' && parts < 1000 ? 10 * parts + (digit - '0') : 1;
            all.push_back({config_of(tile, product, std::min(parts, product.k)), -1});
            continue;
        }
        CostedConfig best{config_of(tile, product, 1), cost_of(tile, product, 1, units)};
        for (std::int64_t parts = 2; parts <= max_parts(product, dtype); parts *= 2)
            if (const double cost = cost_of(tile, product, parts, units); cost < best.cost)
                best = {config_of(tile, product, parts), cost};
        if (named) best.cost = -1;
        all.push_back(best);
    }
    std::ranges::stable_sort(all, {}, &CostedConfig::cost);
    std::vector<TileConfig> configs;
    for (const CostedConfig& item : all) configs.push_back(item.config);
    return configs;
}

std::vector<std::string> local_variants(const Device& device, DType dtype, const TiledGemm& product) {
    std::vector<std::string> names;
    for (const LocalTile& tile : kTiles) {
        if (!tile.fits(device, dtype)) continue;
        // Tiles mostly outside of the result are not worth it.
        if (tile.rows() >= 2 * std::max<std::int64_t>(16, product.rows) ||
            tile.columns() >= 2 * std::max<std::int64_t>(16, product.columns))
            continue;
        names.push_back(tile.name());
        const std::int64_t groups =
            ceil_div(product.rows, tile.rows()) * ceil_div(product.columns, tile.columns()) * product.batch;
        for (const std::int64_t parts : {4, 16})
            if (parts <= max_parts(product, dtype) && groups < 2 * std::int64_t{device.info().compute_units})
                names.push_back(fmt::format("{}x{}", tile.name(), parts));
    }
    if (names.empty()) names.emplace_back();
    return names;
}

void set_tile(Defines& defines, const LocalTile& tile) {
    defines.set("ROW_ITEMS", tile.row_items).set("COLUMN_ITEMS", tile.column_items).set("ROW_STRIPS", tile.row_strips);
    defines.set("COLUMN_STRIPS", tile.column_strips).set("SLICE", tile.slice);
}

bool begins_aligned(const View& view) {
    const auto first = static_cast<std::int64_t>(interop::raw(view.buffer).offset / size_of(view.dtype)) + view.offset;
    return first % 4 == 0;
}

}  // namespace declivity::ops
