#include <declivity/ops/reduce.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/elementwise_reduce.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/expression_node.hpp"
#include "ops/support/index_space.hpp"
#include "ops/support/reduce_defines.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

// Tunables in addition to work_split.hpp; their meaning is documented in cl_kernels/reduction/reduce*.cl.
constexpr std::int64_t kBeyondCaches = std::int64_t{1} << 22;  // elements from which on the memory order matters
constexpr std::int64_t kMinInner = 384;      // minimum elements, in that case, for a result of the first of two passes
constexpr std::int64_t kSimdBlock = 2048;    // elements of a partial sum in reduce_rows: 32 in each of 64 lanes
constexpr std::int64_t kColumnBlock = 64;    // the same in reduce_columns, for a column
constexpr std::int64_t kSimtBlock = 64;      // the same in reduce_groups, for a work-item
constexpr std::int64_t kWideColumns = 4096;  // columns of a work-item of reduce_wide_columns: 16 KiB of f32 sums
constexpr std::int64_t kSimtShortRow = 16;   // shorter contiguous rows are reduced by one work-item each

/// Kept axes (operands x, out) and reduced axes (operand x), merged.
struct LaunchConfig {
    IndexSpace kept, reduced;
    std::int64_t outputs = 1, elements = 1;
    [[nodiscard]] std::int64_t columns() const { return kept.sizes.back(); }
    [[nodiscard]] std::int64_t column_step() const { return kept.strides[0].back(); }
    [[nodiscard]] std::int64_t length() const { return reduced.sizes.back(); }
    [[nodiscard]] std::int64_t step() const { return reduced.strides[0].back(); }
};

/// Layout of the kernels' struct in simd style; must match cl_kernels/reduction/reduce.clh.
struct Layout {
    AxisArray kept_size, kept_x, kept_out, reduced_size, reduced_x;
    std::int64_t kept_rank, reduced_rank;
};

/// A pass: number of chunks of the reduced elements, distance between their results, and divisor of the final result.
struct Pass {
    std::int64_t splits = 1, split_stride = 0, divisor = 1;
};

/// Sorts axes by x's memory layout, largest stride first, so that reads are in memory order whatever the order of the
/// axes. The order of summation is free, and results are stored by their own strides.
IndexSpace in_memory_order(const IndexSpace& space) {
    std::array<int, Dims::kMaxRank> order{};
    const auto end = order.begin() + space.sizes.rank();
    std::iota(order.begin(), end, 0);
    const auto key = [&](int axis) {
        const std::int64_t stride = space.strides[0][axis];
        return stride == 0 ? std::numeric_limits<std::int64_t>::max() : stride;  // repeated elements: outermost
    };
    std::stable_sort(order.begin(), end, [&](int a, int b) { return key(a) > key(b); });
    IndexSpace sorted{{}, std::vector<Strides>(space.strides.size())};
    for (auto axis = order.begin(); axis != end; ++axis) {
        sorted.sizes.push_back(space.sizes[*axis]);
        for (std::size_t i = 0; i < space.strides.size(); ++i) sorted.strides[i].push_back(space.strides[i][*axis]);
    }
    return sorted;
}

bool contains(const Dims& axes, int axis) { return std::ranges::find(axes, axis) != axes.end(); }

/// `out` has the kept axes only.
LaunchConfig launch_config_of(const View& x, const Dims& axes, const View& out) {
    IndexSpace kept{{}, {{}, out.strides}}, reduced{{}, {{}}};
    for (int axis = 0; axis < x.rank(); ++axis) {
        IndexSpace& space = contains(axes, axis) ? reduced : kept;
        space.sizes.push_back(x.shape[axis]);
        space.strides[0].push_back(x.strides[axis]);
    }
    LaunchConfig config{merge_axes(in_memory_order(kept)), merge_axes(in_memory_order(reduced))};
    config.outputs = config.kept.sizes.numel();
    config.elements = config.reduced.sizes.numel();
    return config;
}

Layout layout_of(const LaunchConfig& config) {
    return {axis_array(config.kept.sizes),    axis_array(config.kept.strides[0]),    axis_array(config.kept.strides[1]),
            axis_array(config.reduced.sizes), axis_array(config.reduced.strides[0]), config.kept.sizes.rank(),
            config.reduced.sizes.rank()};
}

Defines defines_of(Reduce kind, const View& x, const View& out, bool contiguous) {
    Defines defines = x.dtype == DType::f64     ? real_defines(x.dtype)
                      : is_16bit_float(x.dtype) ? storage_defines(x.dtype, out.dtype)
                                                : Defines();
    defines.set("T", cl_type(x.dtype)).append(reduce_defines(kind, out.dtype));
    if (contiguous) defines.set("CONTIGUOUS", 1);
    return defines;
}

/// Elements of a view from the first to the last in memory.
std::int64_t extent_of(const View& view) {
    std::int64_t last = 0;
    for (int axis = 0; axis < view.rank(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
    return last + 1;
}

/// Vectors along the reduced axis, or across outputs if these are the contiguous ones.
bool across_columns(const LaunchConfig& config) { return config.outputs > 1 && config.step() != 1; }

/// Adjacent work-items belong to adjacent outputs.
bool groups_across_columns(const LaunchConfig& config) {
    return across_columns(config) ||
           (config.outputs > 1 && config.length() < kSimtShortRow && config.columns() >= kSimtShortRow);
}

// ---- style simd

void launch_rows(Reduce kind, const View& x, const View& out, const LaunchConfig& config, const Pass& pass) {
    Defines defines = defines_of(kind, x, out, config.step() == 1);
    defines.set("LANES", vector_lanes(out.dtype)).set("BLOCK", kSimdBlock);
    const Kernel kernel(x.device(), {"reduce_rows.cl", "reduce_rows", defines});
    const std::int64_t chunk = ceil_div(config.elements, pass.splits);
    const std::int64_t each = rows_each(x.device(), config.outputs, chunk);
    launch(kernel, {.global = {to_size(ceil_div(config.outputs, each)), to_size(pass.splits), 1}, .local = {1, 1, 1}},
           {layout_of(config), config.outputs, each, config.elements, chunk, pass.split_stride, pass.divisor,
            extent_of(x), x.argument(), out.argument()});
}

bool wide_columns(const LaunchConfig& config, DType type) {
    return config.column_step() == 1 && config.columns() > 4 * vector_lanes(type);
}

void launch_wide_columns(Reduce kind, const View& x, const View& out, const LaunchConfig& config, const Pass& pass) {
    const std::int64_t lanes = vector_lanes(out.dtype);
    Defines defines = defines_of(kind, x, out, true);
    defines.set("LANES", lanes).set("WIDE_COLUMNS", kWideColumns).set("BLOCK", kColumnBlock);
    const Kernel kernel(x.device(), {"reduce_wide_columns.cl", "reduce_wide_columns", defines});
    const std::int64_t chunk = ceil_div(config.elements, pass.splits);
    const std::int64_t blocks = ceil_div(config.columns(), kWideColumns);
    const std::int64_t width = ceil_div(ceil_div(config.columns(), blocks), lanes) * lanes;
    const std::int64_t rows = config.outputs / config.columns();
    const std::int64_t each = rows_each(x.device(), rows, chunk * std::min(config.columns(), width));
    launch(kernel,
           {.global = {to_size(blocks), to_size(ceil_div(rows, each)), to_size(pass.splits)}, .local = {1, 1, 1}},
           {layout_of(config), rows, each, config.elements, chunk, pass.split_stride, pass.divisor, extent_of(x), width,
            x.argument(), out.argument()});
}

void launch_columns(Reduce kind, const View& x, const View& out, const LaunchConfig& config, const Pass& pass) {
    if (wide_columns(config, out.dtype)) return launch_wide_columns(kind, x, out, config, pass);
    const std::int64_t lanes = vector_lanes(out.dtype);
    const std::int64_t vectors = config.columns() > 2 * lanes ? 4 : config.columns() > lanes ? 2 : 1;
    Defines defines = defines_of(kind, x, out, config.column_step() == 1);
    defines.set("LANES", lanes).set("VECTORS", vectors).set("UNROLL", 4 / vectors).set("BLOCK", kColumnBlock);
    const Kernel kernel(x.device(), {"reduce_columns.cl", "reduce_columns", defines});
    const std::int64_t chunk = ceil_div(config.elements, pass.splits);
    const std::int64_t blocks = ceil_div(config.columns(), vectors * lanes);
    const std::int64_t rows = config.outputs / config.columns();
    const std::int64_t each = rows_each(x.device(), rows, chunk * std::min(config.columns(), vectors * lanes));
    launch(kernel,
           {.global = {to_size(blocks), to_size(ceil_div(rows, each)), to_size(pass.splits)}, .local = {1, 1, 1}},
           {layout_of(config), rows, each, config.elements, chunk, pass.split_stride, pass.divisor, extent_of(x),
            x.argument(), out.argument()});
}

std::int64_t simd_splits(const LaunchConfig& config, const Device& device, DType type) {
    // If an axis outside of the outputs is reduced too, such as images around channels, and the data exceed the caches,
    // there is one part for each of its indices: parts are then read in memory order, instead of from all over memory
    // for each output.
    if (!across_columns(config) && config.reduced.sizes.rank() > 1 && config.outputs > 1) {
        const std::int64_t parts = config.reduced.sizes[0];
        if (config.reduced.strides[0][0] > config.kept.strides[0][0] && config.elements / parts >= kMinInner &&
            config.outputs * config.elements >= kBeyondCaches)
            return parts;
    }
    const std::int64_t target_items = std::int64_t{device.info().compute_units} * kSimdItemsPerUnit;
    const std::int64_t max_columns = wide_columns(config, type) ? kWideColumns : 4 * vector_lanes(type);
    const std::int64_t columns = across_columns(config) ? std::min(config.columns(), max_columns) : 1;
    const std::int64_t items = config.outputs / columns;
    if (items >= target_items) return 1;
    return std::max<std::int64_t>(
        1, std::min(ceil_div(target_items, std::max<std::int64_t>(1, items)), config.elements * columns / kSimdWork));
}

// ---- style simt

std::int64_t simt_splits(const LaunchConfig& config, const Device& device) {
    const RowGroup group = row_group(config.outputs, config.elements, groups_across_columns(config), kSimtGroup);
    const std::int64_t target_groups = std::int64_t{device.info().compute_units} * kSimtGroupsPerUnit;
    const std::int64_t groups = ceil_div(config.outputs, group.rows);
    return std::max<std::int64_t>(1, std::min(target_groups / groups, config.elements / (group.lanes * kSimtWork)));
}

void launch_groups(Reduce kind, const View& x, const View& out, const LaunchConfig& config, const Pass& pass) {
    Defines defines = defines_of(kind, x, out, config.step() == 1);
    defines.set("BLOCK", kSimtBlock)
        .set("KEPT_RANK", config.kept.sizes.rank())
        .set("REDUCED_RANK", config.reduced.sizes.rank());
    const Kernel kernel(x.device(), {"reduce_groups.cl", "reduce_groups", defines});
    const RowGroup group = row_group(config.outputs, config.elements, groups_across_columns(config), kernel);
    std::vector<std::int64_t> layout;  // layout of the kernel's struct for these ranks
    for (const Dims* part :
         std::initializer_list<const Dims*>{&config.kept.sizes, &config.kept.strides[0], &config.kept.strides[1],
                                            &config.reduced.sizes, &config.reduced.strides[0]})
        layout.insert(layout.end(), part->begin(), part->end());
    const std::int64_t chunk = ceil_div(config.elements, pass.splits);
    launch(kernel,
           {.global = {to_size(ceil_div(config.outputs, group.rows)) * group.items(), to_size(pass.splits), 1},
            .local = {group.items(), 1, 1}},
           {RawArgument{layout.data(), layout.size() * sizeof(std::int64_t)}, config.outputs, config.elements, chunk,
            pass.split_stride, pass.divisor, group.lanes_argument(), group.stride_argument(),
            LocalMemory{group.items() * size_of(out.dtype)}, x.argument(), out.argument()});
}

// ---- both styles

/// `out` has the kept axes only.
void run(Reduce kind, const View& x, const Dims& axes, const View& out, const Pass& pass, bool may_split) {
    const LaunchConfig config = launch_config_of(x, axes, out);
    const Device device = x.device();
    const bool simd = is_simd(device);
    const std::int64_t splits = !may_split ? 1
                                : simd     ? simd_splits(config, device, out.dtype)
                                           : simt_splits(config, device);
    if (splits > 1) {  // partial results first, since the outputs alone would leave compute units idle
        Shape shape = out.shape;
        shape.insert(0, splits);
        const View parts = View::make(device, out.dtype, shape);
        View first = parts;
        first.shape = out.shape;
        first.strides = dense_strides(out.shape);
        run(kind, x, axes, first, {.splits = splits, .split_stride = config.outputs}, false);
        run(kind, parts, {0}, out, pass, false);
    } else if (!simd) {
        launch_groups(kind, x, out, config, pass);
    } else if (across_columns(config)) {
        launch_columns(kind, x, out, config, pass);
    } else {
        launch_rows(kind, x, out, config, pass);
    }
}

/// The view without some axes, at their index 0.
View without(const View& view, const Dims& axes) {
    View out = view;
    for (int i = axes.rank() - 1; i >= 0; --i) {
        out.shape.erase(static_cast<int>(axes[i]));
        out.strides.erase(static_cast<int>(axes[i]));
    }
    return out;
}

}  // namespace

std::string_view name_of(Reduce kind) noexcept {
    static constexpr std::array<std::string_view, 4> kNames{"sum", "mean", "max", "min"};
    return kNames[static_cast<std::size_t>(kind)];
}

DType reduced_dtype(Reduce kind, DType x) {
    if (kind == Reduce::mean && !is_floating(x))
        throw TypeError(
            fmt::format("mean: expected f32, f64, f16 or bf16 (convert with .to(DType)), got {}", name_of(x)));
    return kind == Reduce::sum ? dtype_info(x).sum : x;
}

Dims normalize_axes(std::string_view function, const Dims& axes, int rank) {
    Dims out;
    for (int axis = 0; axis < rank; ++axis) {
        bool is_listed = axes.empty();
        for (const std::int64_t listed_axis : axes) {
            if (normalize_axis(function, listed_axis, rank) != axis) continue;
            if (is_listed)
                throw ShapeError(
                    fmt::format("{}: expected each axis once, got {} for {} axes", function, axes.str(), rank));
            is_listed = true;
        }
        if (is_listed) out.push_back(axis);
    }
    // A tensor of shape () is treated as one of one element, like in PyTorch.
    for (const std::int64_t listed_axis : axes)
        if (rank == 0) normalize_axis(function, listed_axis, 1);
    return out;
}

Shape reduced_shape(const Shape& shape, const Dims& axes, bool keep_axes) {
    Shape out;
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (!contains(axes, axis)) out.push_back(shape[axis]);
        else if (keep_axes) out.push_back(1);
    }
    return out;
}

void reduce(Reduce kind, const View& x, const Dims& input_axes, const View& out) {
    const std::string_view function = name_of(kind);
    const Dims axes = normalize_axes(function, input_axes, x.rank());
    const Shape without_axes = reduced_shape(x.shape, axes, false);
    const bool keeps_axes = !axes.empty() && out.shape == reduced_shape(x.shape, axes, true);
    if (!keeps_axes) require_shape(function, "an output", out, without_axes);
    if (const DType type = reduced_dtype(kind, x.dtype); out.dtype != type)
        throw TypeError(
            fmt::format("{}: expected an output of type {}, got {}", function, name_of(type), name_of(out.dtype)));
    require_same_device(function, x, out);
    if (out.numel() == 0) return;

    const View result = keeps_axes ? without(out, axes) : out;
    const std::int64_t elements = x.numel() / out.numel();
    if (elements == 0) {
        if (kind == Reduce::max || kind == Reduce::min)
            throw ShapeError(fmt::format("{}: expected at least one element to choose from, got {} over axes {}",
                                         function, x.shape.str(), axes.str()));
        fill(result, kind == Reduce::sum ? 0 : std::numeric_limits<double>::quiet_NaN());
    } else if (elements == 1) {
        evaluate(Expression::cast(without(x, axes), out.dtype), result);
    } else {
        const WorkScope work(function, work_each(1, x, out));
        const Pass pass{.divisor = kind == Reduce::mean ? elements : 1};
        const DType compute = compute_type(out.dtype);
        if (compute == out.dtype) return run(kind, x, axes, result, pass, true);
        const View exact = View::make(out.device(), compute, result.shape);
        run(kind, x, axes, exact, pass, true);
        evaluate(Expression::cast(exact, out.dtype), result);
    }
}

View reduce(Reduce kind, const LazyArray& x, const Dims& input_axes, bool keep_axes) {
    const Dims axes = normalize_axes(name_of(kind), input_axes, x.shape().rank());
    const DType type = reduced_dtype(kind, x.dtype());
    const Shape shape = reduced_shape(x.shape(), axes, keep_axes);
    const std::int64_t outputs = shape.numel(), elements = outputs == 0 ? 0 : x.shape().numel() / outputs;
    const DType accumulate = compute_type(type);
    std::optional<ElementwiseReduced> reduced;
    if (elements > 1 && may_reduce_rows(x.shape(), axes, x.device()))
        launch_chain(x, [&](const Expression& chain) {
            return (reduced = elementwise_reduce(kind, chain, axes, accumulate, x.device())).has_value();
        });
    if (!reduced) return reduce(kind, x.view(), axes, keep_axes);
    View exact = reduced->parts;
    if (!reduced->done) {
        exact = View::make(x.device(), accumulate, reduced_shape(x.shape(), axes, false));
        const WorkScope work(name_of(kind), work_each(1, reduced->parts, exact));
        run(kind, reduced->parts, reduced->axes, exact, {.divisor = kind == Reduce::mean ? elements : 1}, true);
    }
    return reshaped(type == accumulate ? exact : evaluate(Expression::cast(exact, type), x.device()), shape);
}

View reduce(Reduce kind, const View& x, const Dims& input_axes, bool keep_axes) {
    const Dims axes = normalize_axes(name_of(kind), input_axes, x.rank());
    View out = View::make(x.device(), reduced_dtype(kind, x.dtype), reduced_shape(x.shape, axes, keep_axes));
    reduce(kind, x, axes, out);
    return out;
}

}  // namespace declivity::ops
