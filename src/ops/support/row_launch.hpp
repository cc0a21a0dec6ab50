// Layer 2, private. How kernels that bring rows together are launched: softmax, losses, normalisation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/launch.hpp>

#include "ops/support/work_split.hpp"

namespace declivity::ops {

/// A view that may be none, as an argument: something else stands in for it and is not read.
inline BufferArgument or_else(const View& view, const View& stand_in) {
    return view.buffer ? view.argument() : stand_in.argument();
}

/// Rows, and how they are cut.
struct RowGrid {
    Device device;
    DType dtype;                       ///< of what the work-items of a row exchange
    std::int64_t rows, n;              ///< n elements each
    bool columns = false;              ///< neighbouring rows, and not the elements of one, are neighbours in memory
    std::array<std::size_t, 2> cpu{};  ///< work-items on CPU-like devices
    std::int64_t each = 0;             ///< rows of one of them; 0: the kernel is not told
    std::size_t splits = 1;            ///< of each row, on GPU-like devices
};

/// Rows whose elements are neighbours.
inline RowGrid row_grid(const Device& device, DType dtype, std::int64_t rows, std::int64_t n) {
    RowGrid grid{.device = device, .dtype = dtype, .rows = rows, .n = n};
    if (kernel_style_of(device) == KernelStyle::simd) {
        grid.each = rows_each(device, rows, n);
        grid.cpu = {to_size(ceil_div(rows, grid.each)), 1};
    }
    return grid;
}

/// The kernel's arguments are `first`, how the rows are shared, and `rest`: on CPU-like devices the rows of a work-item
/// (long each), on GPU-like ones what row_group.clh wants (int lanes, int lane_stride, __local T* shared).
inline void launch_rows(const Kernel& kernel, const RowGrid& grid, const std::vector<Argument>& first,
                        std::span<const Argument> rest) {
    std::vector<Argument> all = first;
    Range range{.global = {grid.cpu[0], grid.cpu[1], 1}, .local = {1, 1, 1}};
    if (kernel_style_of(grid.device) == KernelStyle::simt) {
        const RowGroup group = row_group(grid.rows, grid.n, grid.columns, kernel);
        all.insert(all.end(), {Argument(group.lanes_argument()), Argument(group.stride_argument()),
                               Argument(LocalMemory{group.items() * size_of(grid.dtype)})});
        range = {.global = {to_size(ceil_div(grid.rows, group.rows)) * group.items(), grid.splits, 1},
                 .local = {group.items(), 1, 1}};
    } else if (grid.each > 0) {
        all.emplace_back(grid.each);
    }
    all.insert(all.end(), rest.begin(), rest.end());
    launch(kernel, range, all);
}
inline void launch_rows(const Kernel& kernel, const RowGrid& grid, const std::vector<Argument>& first,
                        std::initializer_list<Argument> rest) {
    launch_rows(kernel, grid, first, std::span(rest.begin(), rest.size()));
}

}  // namespace declivity::ops
