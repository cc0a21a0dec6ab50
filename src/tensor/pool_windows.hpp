// Layer 3, private. What pools of one to three spatial axes have in common.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <declivity/ops/pool2d.hpp>
#include <declivity/tensor/functions/pool_nd.hpp>

namespace declivity::detail {

/// PoolParameters of any rank.
struct PoolWindows {
    Dims kernel_size, stride, padding, dilation;
    bool ceil_mode, count_include_pad;
    std::int64_t divisor_override;

    template <int N>
    PoolWindows(const PoolParameters<N>& of)  // NOLINT: the same without its rank
        : kernel_size(dims_of(of.kernel_size)),
          stride(dims_of(of.stride)),
          padding(dims_of(of.padding)),
          dilation(dims_of(of.dilation)),
          ceil_mode(of.ceil_mode),
          count_include_pad(of.count_include_pad),
          divisor_override(of.divisor_override) {
        for (int axis = 0; axis < N; ++axis)
            if (stride[axis] == 0) stride[axis] = kernel_size[axis];
    }
    [[nodiscard]] int axes() const { return kernel_size.rank(); }
    /// From the first to the last element of a window.
    [[nodiscard]] std::int64_t reach(int axis) const { return (kernel_size[axis] - 1) * dilation[axis] + 1; }
    [[nodiscard]] bool dilated() const;
    [[nodiscard]] bool is_padded() const;
};

/// @throws ValueError naming the function, or the layer, for numbers out of range
void require_windows(std::string_view name, const PoolWindows& windows);
/// x of `axes` spatial axes behind N, C or behind C, as a batch. @throws ShapeError for other ranks
Tensor pool_input(std::string_view name, const Tensor& x, int axes);
/// The shape of the pool of a batch, after all checks of the windows. @throws ShapeError, ValueError
Shape pooled_shape(std::string_view name, const Shape& x, const PoolWindows& windows);

/// The windows of one axis that differ in size, or hold places outside: for each of `windows` the places of `size`
/// elements, i64, and whether they count.
struct WindowTable {
    Tensor places, counts;  ///< (windows, size); a place that does not count names another one of the window
    std::int64_t windows, size;
};
/// Windows that move.
WindowTable moved_windows(const PoolWindows& windows, int axis, std::int64_t length, std::int64_t count,
                          const Device& device);
/// Window i holds floor(i length / count) to ceil((i + 1) length / count).
WindowTable adaptive_windows(std::int64_t length, std::int64_t count, const Device& device);
/// The elements of an axis by a table: the axis becomes two, windows and elements.
Tensor by_table(const Tensor& x, int axis, const WindowTable& table);

/// The largest of each window of a batch by a table for each spatial axis, and where it stands (i64): in plain
/// functions, for any type and any windows.
MaxPooled max_by_tables(const Tensor& x, const std::vector<WindowTable>& tables);
/// The elements of the planes of x, in the shape of the places.
Tensor at_places(const Tensor& x, const Tensor& places);

/// max_pool2d of a batch by its kernels, and the places i32; plain windows.
MaxPooled max_pool_planes(const Tensor& x, const ops::Pool2dParameters& windows);
Tensor avg_pool_planes(const Tensor& x, const ops::Pool2dParameters& windows);

MaxPooled max_pooled(const char* name, const Tensor& x, const PoolWindows& windows, bool with_indices);
Tensor avg_pooled(const char* name, const Tensor& x, const PoolWindows& windows);

}  // namespace declivity::detail
