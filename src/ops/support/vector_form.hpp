// Layer 2, private. Vector and register-tile sizes of simd kernels (cl_kernels/lib/vectors.clh).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

struct VectorForm {
    std::int64_t vector;     ///< VW: elements of a vector
    std::int64_t registers;  ///< vectors available to a work-item
};

/// Register tile of a matrix product: rows, and vectors of columns.
struct RegisterTile {
    std::int64_t rows, vectors;
    /// Registers: the sums, a row of the right operand, and a number of the left one.
    [[nodiscard]] bool fits(const VectorForm& form) const { return rows * vectors + vectors + 1 <= form.registers; }
};

/// Returns the tile of least cost: vector multiply-adds, two at a time, and loads of numbers and vectors, two at a
/// time. Work beyond the edges is wasted, unless `narrow_ends` is set: then a last tile whose columns fit into one
/// vector costs no more than that. Each tile is a kernel to compile, so a later tile is chosen only if it costs at most
/// `gain` times an earlier one. The last tile is used if none fits.
inline RegisterTile cheapest_tile(std::span<const RegisterTile> tiles, const VectorForm& form, std::int64_t rows,
                                  std::int64_t columns, double gain = 1, bool narrow_ends = false) {
    constexpr std::int64_t latency = 8;  // latency of dependent multiply-adds
    const auto cost_of = [](std::int64_t height, std::int64_t vectors) {
        return std::max({height * vectors, height + vectors, latency}) + height / 4;
    };
    RegisterTile best = tiles.back();
    double min_cost = std::numeric_limits<double>::infinity();
    for (const RegisterTile& tile : tiles) {
        if (!tile.fits(form)) continue;
        const std::int64_t width = tile.vectors * form.vector, rest = columns % width;
        const bool narrow = narrow_ends && rest > 0 && rest <= form.vector;
        const std::int64_t row =
            (narrow ? columns / width : ceil_div(columns, width)) * cost_of(tile.rows, tile.vectors) +
            (narrow ? cost_of(tile.rows, 1) : 0);
        const auto cost = static_cast<double>(ceil_div(rows, tile.rows) * row);
        if (cost >= gain * min_cost) continue;
        min_cost = cost;
        best = tile;
    }
    return best;
}

/// Returns the form for the device's native vector width. 512-bit vectors come with 32 registers (AVX-512); most
/// processors have 16 of narrower ones.
inline VectorForm vector_form(const Device& device, DType dtype) {
    const std::int64_t width =
        dtype == DType::f64 ? device.traits().vector_width_f64 : device.traits().vector_width_f32;
    const std::int64_t max_lanes = dtype == DType::f64 ? 8 : 16;
    VectorForm form{.vector = max_lanes, .registers = 32};
    while (form.vector > 4 && form.vector > width) form.vector /= 2;
    if (form.vector < max_lanes) form.registers = 16;
    return form;
}

}  // namespace declivity::ops
