// Layer 2, private. Partition of row kernels into work-items: reductions, softmax, losses, normalisation. The tunables
// of all of them are defined here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include <declivity/ops/view.hpp>

#include "runtime/per_thread.hpp"

namespace declivity::ops {

constexpr std::int64_t kSimdWork = 16384;            // minimum elements of a work-item, simd
constexpr std::int64_t kSimdItemsPerUnit = 4;        // work-items for each compute unit, to balance the load
constexpr std::int64_t kSimdColumns = 64;            // adjacent rows of a work-item if these are contiguous
constexpr std::int64_t kSimtGroup = 256;             // work-items of a group
constexpr std::size_t kSimtItemGroup = 64;           // work-items of a group that share nothing
constexpr std::int64_t kSimtGroupsPerUnit = 8;       // groups for each compute unit, to hide latency
constexpr std::int64_t kSimtWork = 8;                // minimum elements of a work-item of a group
constexpr std::int64_t kMaxGroupsAlongAxis = 65535;  // along the second axis: some GPUs refuse launches with more
constexpr std::int64_t kSimtColumns = 32;            // adjacent rows of a group if these are contiguous

/// Returns make() for a key, cached in each thread. For choices that take longer than a lookup.
template <class Value, class Key, class Make>
Value memoize(const Key& key, Make make) {
    constexpr std::size_t max_entries = 4096;
    auto& known = declivity::detail::PerThread<std::map<Key, Value>, Make>::get();
    if (const auto found = known.find(key); found != known.end()) return found->second;
    if (known.size() >= max_entries) known.clear();
    return known[key] = make();
}

inline std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// simt: size of a group whose work-items share nothing.
inline std::size_t item_group(const Kernel& kernel) { return std::min(kSimtItemGroup, kernel.max_work_group()); }

inline std::int64_t power_of_two_up_to(std::int64_t value) {
    std::int64_t power = 1;
    while (power * 2 <= value) power *= 2;
    return power;
}

/// Returns the style of the kernels to run: that of the device, or another one within a KernelStyleScope.
DECLIVITY_API KernelStyle kernel_style_of(const Device& device);
inline bool is_simd(const Device& device) { return kernel_style_of(device) == KernelStyle::simd; }
/// Name of the macro that selects the form of a kernel: by style, and in simd style by the direction of its loops.
/// @param columns simd: across neighbouring columns, instead of along rows
inline const char* form_macro(bool simd, bool columns = false) {
    return simd ? columns ? "SIMD_COLUMNS" : "SIMD" : "SIMT";
}

/// Runs kernels of one style on any device, in this thread: for tests of both styles, and `declivity doctor`.
class DECLIVITY_API KernelStyleScope {
  public:
    explicit KernelStyleScope(KernelStyle style);
    ~KernelStyleScope();
    KernelStyleScope(const KernelStyleScope&) = delete;
    KernelStyleScope& operator=(const KernelStyleScope&) = delete;
};

/// Elements of an OpenCL C vector that fills the widest registers.
inline std::int64_t vector_lanes(DType type) { return size_of(type) == 8 ? 8 : 16; }

/// simd: number of rows of a work-item, for `rows` rows of `work` elements each.
inline std::int64_t rows_each(const Device& device, std::int64_t rows, std::int64_t work) {
    const std::int64_t items = std::int64_t{device.info().compute_units} * kSimdItemsPerUnit;
    return std::max<std::int64_t>(1, std::min(kSimdWork / std::max<std::int64_t>(1, work), rows / items));
}

/// simd: work-groups in a grid of rows and columns, of equal cost except for the last ones of each row and column.
struct GroupGrid {
    std::int64_t across, down;
    double inner, last_column, last_row, corner;  ///< in cycles
    /// Estimates the cycles until the last of `units` compute units finishes, for drivers that assign adjacent groups
    /// to a unit, in row order: a share of the remaining groups each time (PoCL), and a little later to units that must
    /// be woken.
    [[nodiscard]] double cycles(std::int64_t units) const;
};

/// simt: a work-group has `lanes` work-items for each of `rows` rows. If adjacent rows, rather than the elements of a
/// row, are contiguous in memory (`columns`), adjacent work-items belong to adjacent rows.
struct RowGroup {
    std::int64_t lanes, rows;
    bool columns;
    [[nodiscard]] std::size_t items() const { return to_size(lanes * rows); }
    /// Arguments of a kernel that uses row_group.clh.
    [[nodiscard]] std::int32_t lanes_argument() const { return static_cast<std::int32_t>(lanes); }
    [[nodiscard]] std::int32_t stride_argument() const { return static_cast<std::int32_t>(columns ? rows : 1); }
};

/// @param max_items maximum work-items of a group
inline RowGroup row_group(std::int64_t rows, std::int64_t elements, bool columns, std::int64_t max_items) {
    max_items = power_of_two_up_to(std::min(kSimtGroup, max_items));
    const std::int64_t row_count = power_of_two_up_to(2 * std::max<std::int64_t>(1, rows) - 1);
    const std::int64_t useful = power_of_two_up_to(std::max<std::int64_t>(1, elements / (columns ? 1 : 4)));
    RowGroup group{.lanes = std::min(useful, max_items), .rows = 1, .columns = columns};
    if (columns) group.lanes = std::min(useful, max_items / std::min({row_count, kSimtColumns, max_items}));
    group.rows = std::min(row_count, max_items / group.lanes);
    return group;
}

inline RowGroup row_group(std::int64_t rows, std::int64_t elements, bool columns, const Kernel& kernel) {
    return row_group(rows, elements, columns, static_cast<std::int64_t>(kernel.max_work_group()));
}

}  // namespace declivity::ops
