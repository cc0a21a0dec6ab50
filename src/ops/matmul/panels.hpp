// Layer 2, private. Operands of matrix products, copied into panels (cl_kernels/matmul/panels.cl) for CPU-like devices.
#pragma once

#include <optional>

#include <declivity/ops/view.hpp>

#include "ops/engine/epilogue.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops {

/// Copies a matrix for each first index of a view of three axes into panels `width` wide along axis `across`, each
/// [k][width] for the index k of axis `along`, with zeros behind the edge. Gives (matrices, elements of one matrix), of
/// f16 and bf16 in f32; a view whose first stride is 0 is copied once.
View pack_panels(const View& operand, int across, int along, std::int64_t width);

/// The tile for products of m rows and n columns.
RegisterTile choose_panel_tile(const Device& device, DType dtype, std::int64_t m, std::int64_t n);

/// out (batch, m, n) = a * b, of panels as pack_panels makes them: of tile.rows rows of a, of tile.vectors vectors of
/// columns of b. Of one matrix only, it serves the whole batch. Rows of out are dense. Operands of the epilogue are of
/// type `stored`, or of that of out.
/// @param k_block how many products are added up before the sum joins those before; 0: as many as the caches hold
void multiply_panels(const View& a, const View& b, const View& out, std::int64_t k, const RegisterTile& tile,
                     const KernelEpilogue& epilogue = {}, std::optional<DType> stored = {}, std::int64_t k_block = 0);

}  // namespace declivity::ops
