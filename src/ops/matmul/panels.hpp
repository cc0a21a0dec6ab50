// Layer 2, private. Packs operands of matrix products into panels (cl_kernels/matmul/panels.cl) for simd kernels.
#pragma once

#include <optional>

#include <declivity/ops/view.hpp>

#include "ops/engine/epilogue.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops {

/// Packs a matrix for each first index of a view of three axes into panels of `width` along axis `across`, each
/// [k][width] for the index k of axis `along`, padded with zeros. Returns (matrices, elements of one matrix), f16 and
/// bf16 upcast to f32; a view with first stride 0 is packed once.
View pack_panels(const View& operand, int across, int along, std::int64_t width);

/// The tile for products of m rows and n columns.
RegisterTile choose_panel_tile(const Device& device, DType dtype, std::int64_t m, std::int64_t n);

/// out (batch, m, n) = a * b, of panels from pack_panels: of tile.rows rows of a, of tile.vectors vectors of columns of
/// b. A single matrix is used for the whole batch. Rows of out are dense. Operands of the epilogue have type `stored`,
/// or that of out.
/// @param k_block number of products that are added before the sum is added to the previous ones; 0: as many as fit the
/// caches
void multiply_panels(const View& a, const View& b, const View& out, std::int64_t k, const RegisterTile& tile,
                     const KernelEpilogue& epilogue = {}, std::optional<DType> stored = {}, std::int64_t k_block = 0);

}  // namespace declivity::ops
