// Layer 2, private. Launches row kernels: softmax, losses, normalisation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/launch.hpp>

#include "work_split.hpp"

namespace declivity::ops {

/// The view as an argument, or `stand_in`, which is not read, if it is empty.
inline BufferArgument or_else(const View& view, const View& stand_in) {
    return view.buffer ? view.argument() : stand_in.argument();
}

/// Rows and their partition.
struct RowGrid {
    Device device;
    DType dtype;           ///< type exchanged between the work-items of a row
    std::int64_t rows, n;  ///< n elements each
    bool columns = false;  ///< adjacent rows are contiguous in memory, rather than the elements of a row
    std::array<std::size_t, 2> simd_global{};  ///< simd: global size
    std::int64_t each = 0;                     ///< simd: rows of a work-item; 0: not an argument of the kernel
    std::size_t splits = 1;                    ///< simt: splits of each row
};

/// Partition of rows with contiguous elements.
inline RowGrid row_grid(const Device& device, DType dtype, std::int64_t rows, std::int64_t n) {
    RowGrid grid{.device = device, .dtype = dtype, .rows = rows, .n = n};
    if (is_simd(device)) {
        grid.each = rows_each(device, rows, n);
        grid.simd_global = {to_size(ceil_div(rows, grid.each)), 1};
    }
    return grid;
}

/// Launches with the arguments `first`, the partition of the rows, and `rest`. The partition is the number of rows of a
/// work-item (long each) in simd kernels, and that of row_group.clh (int lanes, int lane_stride, __local T* shared) in
/// simt kernels.
inline void launch_rows(const Kernel& kernel, const RowGrid& grid, const std::vector<Argument>& first,
                        std::span<const Argument> rest) {
    std::vector<Argument> all = first;
    Range range{.global = {grid.simd_global[0], grid.simd_global[1], 1}, .local = {1, 1, 1}};
    if (!is_simd(grid.device)) {
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
