// Layer 2, private. How kernels that bring rows of elements together are cut into work-items: reductions, softmax,
// losses, normalisation. The tunables of all of them stand here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/per_thread.hpp>

namespace declivity::ops {

constexpr std::int64_t kCpuWork = 16384;  // elements that are worth a work-item on CPU-like devices
constexpr std::int64_t kCpuItemsPerUnit =
    4;                                    // work-items for each compute unit, so that all end at about the same time
constexpr std::int64_t kCpuColumns = 64;  // neighbouring rows that a work-item takes together when these are contiguous
constexpr std::int64_t kGpuGroup = 256;   // work-items of a group
constexpr std::int64_t kGpuGroupsPerUnit = 8;  // groups for each compute unit, to hide latency
constexpr std::int64_t kGpuWork = 8;           // elements that are worth a work-item of a group
constexpr std::int64_t kGpuColumns = 32;       // neighbouring rows of a group when these are contiguous

/// What `make` gives for a key, cached in each thread. For choices that take longer than to find them
/// again.
template <class Value, class Key, class Make>
Value remembered(const Key& key, Make make) {
    constexpr std::size_t most = 4096;
    auto& known = declivity::detail::PerThread<std::map<Key, Value>, Make>::get();
    if (const auto found = known.find(key); found != known.end()) return found->second;
    if (known.size() >= most) known.clear();
    return known[key] = make();
}

inline std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

inline std::int64_t power_of_two_up_to(std::int64_t value) {
    std::int64_t power = 1;
    while (power * 2 <= value) power *= 2;
    return power;
}

/// The family whose kernels run: the device's, or another one while a KernelStyleScope lives.
DECLIVITY_API KernelStyle kernel_style_of(const Device& device);

/// Runs the kernels of one family on any device, on this thread: for tests of both, and `declivity doctor`.
class DECLIVITY_API KernelStyleScope {
  public:
    explicit KernelStyleScope(KernelStyle style);
    ~KernelStyleScope();
    KernelStyleScope(const KernelStyleScope&) = delete;
    KernelStyleScope& operator=(const KernelStyleScope&) = delete;
};

/// Elements of an OpenCL C vector that fills the widest registers.
inline std::int64_t vector_lanes(DType type) { return size_of(type) == 8 ? 8 : 16; }

/// CPU-like devices: how many of `rows` rows a work-item takes, for `work` elements each.
inline std::int64_t rows_each(const Device& device, std::int64_t rows, std::int64_t work) {
    const std::int64_t items = std::int64_t{device.info().compute_units} * kCpuItemsPerUnit;
    return std::max<std::int64_t>(1, std::min(kCpuWork / std::max<std::int64_t>(1, work), rows / items));
}

/// CPU-like devices: work-groups in a grid of rows and columns, of equal cost but for the last ones of each row and
/// column.
struct GroupGrid {
    std::int64_t across, down;
    double inner, last_column, last_row, corner;  ///< in cycles
    /// Cycles until the last of `units` compute units ends, with drivers that give units neighbouring groups, those of
    /// a row first: a part of those left each time (PoCL), the units that have to be woken a little later.
    [[nodiscard]] double cycles(std::int64_t units) const;
};

/// GPU-like devices: the work-items of a group are `lanes` for each of `rows` rows. When neighbouring rows, and not the
/// elements of a row, are neighbours in memory (`columns`), neighbouring work-items belong to neighbouring rows.
struct RowGroup {
    std::int64_t lanes, rows;
    bool columns;
    [[nodiscard]] std::size_t items() const { return to_size(lanes * rows); }
    /// Arguments of a kernel that uses row_group.clh.
    [[nodiscard]] std::int32_t lanes_argument() const { return static_cast<std::int32_t>(lanes); }
    [[nodiscard]] std::int32_t stride_argument() const { return static_cast<std::int32_t>(columns ? rows : 1); }
};

/// @param most work-items that a group may have
inline RowGroup row_group(std::int64_t rows, std::int64_t elements, bool columns, std::int64_t most) {
    most = power_of_two_up_to(std::min(kGpuGroup, most));
    const std::int64_t wanted = power_of_two_up_to(2 * std::max<std::int64_t>(1, rows) - 1);
    const std::int64_t useful = power_of_two_up_to(std::max<std::int64_t>(1, elements / (columns ? 1 : 4)));
    RowGroup group{.lanes = std::min(useful, most), .rows = 1, .columns = columns};
    if (columns) group.lanes = std::min(useful, most / std::min({wanted, kGpuColumns, most}));
    group.rows = std::min(wanted, most / group.lanes);
    return group;
}

inline RowGroup row_group(std::int64_t rows, std::int64_t elements, bool columns, const Kernel& kernel) {
    return row_group(rows, elements, columns, static_cast<std::int64_t>(kernel.max_work_group()));
}

}  // namespace declivity::ops
