// Layer 5, private. Code shared by pooling over one to three spatial axes.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <declivity/functions/pool_nd.hpp>
#include <declivity/ops/pool2d.hpp>

namespace declivity::detail {

/// PoolParameters of any rank.
struct PoolWindows {
    Dims kernel_size, stride, padding, dilation;
    bool ceil_mode, count_include_pad;
    std::int64_t divisor_override;

    template <int N>
    PoolWindows(const PoolParameters<N>& parameters)  // NOLINT: the same without its rank
        : kernel_size(dims_of(parameters.kernel_size)),
          stride(dims_of(parameters.stride)),
          padding(dims_of(parameters.padding)),
          dilation(dims_of(parameters.dilation)),
          ceil_mode(parameters.ceil_mode),
          count_include_pad(parameters.count_include_pad),
          divisor_override(parameters.divisor_override) {
        for (int axis = 0; axis < N; ++axis)
            if (stride[axis] == 0) stride[axis] = kernel_size[axis];
    }
    [[nodiscard]] int axes() const { return kernel_size.rank(); }
    /// Extent from the first to the last element of a window.
    [[nodiscard]] std::int64_t extent(int axis) const { return (kernel_size[axis] - 1) * dilation[axis] + 1; }
    [[nodiscard]] bool dilated() const;
    [[nodiscard]] bool is_padded() const;
};

/// @throws ValueError naming the function, or the layer, for parameters out of range
void require_windows(std::string_view name, const PoolWindows& windows);
/// x (N, C, spatial...) or (C, spatial...) with `axes` spatial axes, as a batch. @throws ShapeError for other ranks
Tensor pool_input(std::string_view name, const Tensor& x, int axes);
/// Shape of the pooled batch, after all checks of the windows. @throws ShapeError, ValueError
Shape pooled_shape(std::string_view name, const Shape& x, const PoolWindows& windows);

/// Windows of one axis that differ in size, or extend over the ends: for each of `windows` the indices of `size`
/// elements, i64, and whether each is valid.
struct WindowTable {
    Tensor indices, valid;  ///< (windows, size); an invalid index repeats another one of the window
    std::int64_t windows, size;
};
/// Windows at a constant stride.
WindowTable strided_windows(const PoolWindows& windows, int axis, std::int64_t length, std::int64_t count,
                            const Device& device);
/// Window i covers floor(i length / count) to ceil((i + 1) length / count).
WindowTable adaptive_windows(std::int64_t length, std::int64_t count, const Device& device);
/// Gathers the elements of an axis by a table: the axis becomes two, windows and elements.
Tensor gather_windows(const Tensor& x, int axis, const WindowTable& table);

/// Maximum of each window of a batch by a table for each spatial axis, and its index (i64): composed of other
/// functions, for any type and any windows.
MaxPooled max_by_tables(const Tensor& x, const std::vector<WindowTable>& tables);
/// Elements of the planes of x at these flat indices, in the shape of the indices.
Tensor gather_at(const Tensor& x, const Tensor& indices);

/// max_pool2d of a batch by its kernels, with indices of type i32; no dilation or partial windows.
MaxPooled max_pool_planes(const Tensor& x, const ops::Pool2dParameters& windows);
Tensor avg_pool_planes(const Tensor& x, const ops::Pool2dParameters& windows);

MaxPooled max_pooled(const char* name, const Tensor& x, const PoolWindows& windows, bool with_indices);
Tensor avg_pooled(const char* name, const Tensor& x, const PoolWindows& windows);

}  // namespace declivity::detail
