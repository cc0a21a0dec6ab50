#include <declivity/ops/scan.hpp>

#include <algorithm>
#include <bit>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMinChunk = 1024;   // minimum elements of a line for a chunk
constexpr std::int64_t kWidth = 64;        // adjacent columns of a work-item, simd
constexpr std::int64_t kMinForLanes = 32;  // minimum elements of a line for vectors along it
constexpr std::int64_t kSkipLength = 16;   // elements of a line that are skipped at once if none is a new maximum

/// Layout of the kernels' struct; must match cl_kernels/reduction/scan.cl.
struct Sizes {
    std::int64_t n, inner, chunks, each, lines;
};

Defines defines_of(Scan kind, DType dtype, bool indices) {
    Defines defines;
    if (is_floating(dtype)) defines = storage_defines(dtype, dtype);
    else defines.set("REAL", cl_type(dtype)).set("INTEGER", 1);
    defines.set("FOLD", static_cast<std::int64_t>(kind));
    if (indices) defines.set("WITH_INDICES", 1);
    return defines;
}

/// Scans with a work-group for each chunk of each line.
void scan_in_groups(Scan kind, const View& x, const View& out, const View* indices) {
    constexpr std::int64_t each = 8, groups_per_unit = 4, min_groups = 128;
    constexpr std::size_t max_group = 256, max_carrying = 64;
    const Device device = x.device();
    const std::int64_t n = x.shape[1], inner = x.shape[2], lines = x.shape[0] * inner;
    const auto make_kernel = [&](const char* name, std::size_t group) {
        Defines defines = defines_of(kind, x.dtype, indices != nullptr);
        defines.set("GROUP", static_cast<std::int64_t>(group)).set("PER_ITEM", each);
        // rusticl 22.3 on llvmpipe miscompares 8-bit members of a struct.
        const bool narrow = indices != nullptr && !is_floating(x.dtype) && size_of(x.dtype) < sizeof(std::int32_t);
        defines.set("REGISTER_TYPE", narrow ? "int" : "REAL");
        return Kernel(device, {"scan_groups.cl", name, std::move(defines)});
    };
    // Local memory for the elements of a tile, and at most as many work-items as have elements.
    const std::size_t element = size_of(compute_type(x.dtype)) + (indices != nullptr ? sizeof(std::int64_t) : 0);
    std::size_t group_limit = std::min(max_group, std::bit_ceil(to_size(ceil_div(n, each))));
    while (group_limit > 1 && group_limit * (each + 2) * element > device.traits().local_memory) group_limit /= 2;
    const GroupKernel kernel =
        kernel_of_group(device, group_limit, [&](std::size_t group) { return make_kernel("scan_groups", group); });
    const auto group = static_cast<std::int64_t>(kernel.group);
    const std::int64_t tiles = ceil_div(n, group * each), units = std::max(1U, device.info().compute_units);
    Sizes sizes{.n = n, .inner = inner, .chunks = 1, .each = 0, .lines = lines};
    sizes.chunks = std::clamp<std::int64_t>(ceil_div(std::max(min_groups, groups_per_unit * units), lines), 1, tiles);
    sizes.each = ceil_div(tiles, sizes.chunks);
    sizes.chunks = ceil_div(tiles, sizes.each);
    const View totals = View::make(device, compute_type(x.dtype), {lines, sizes.chunks});
    std::vector<Argument> totals_arguments{totals.argument()};
    View total_indices;
    if (indices != nullptr) {
        total_indices = View::make(device, DType::i64, totals.shape);
        totals_arguments.emplace_back(total_indices.argument());
    }
    const auto run = [&](const Kernel& of, std::int64_t groups, std::size_t items, std::vector<Argument> arguments) {
        launch(of, {.global = {to_size(groups) * items}, .local = {items}}, std::span<const Argument>(arguments));
    };
    const auto with_totals = [&](std::vector<Argument> arguments) {
        arguments.insert(arguments.end(), totals_arguments.begin(), totals_arguments.end());
        return arguments;
    };
    if (sizes.chunks > 1) {
        const std::size_t carrying = std::min(max_carrying, kernel.group);
        run(make_kernel("scan_group_totals", kernel.group), lines * sizes.chunks, kernel.group,
            with_totals({sizes, x.argument()}));
        run(make_kernel("scan_group_carries", carrying), lines, carrying, with_totals({sizes}));
    }
    std::vector<Argument> arguments = with_totals({sizes, x.argument()});
    arguments.emplace_back(out.argument());
    if (indices != nullptr) arguments.emplace_back(indices->argument());
    run(kernel.kernel, lines * sizes.chunks, kernel.group, std::move(arguments));
}

/// simt: returns whether a work-item for each line would give too few work-items, or too many uncoalesced reads.
bool needs_groups(const View& x) {
    constexpr std::int64_t short_line = 16, long_line = 64, coalesced = 32, items_per_unit = 1024;
    const std::int64_t n = x.shape[1], inner = x.shape[2];
    if (n <= short_line) return false;
    if (x.shape[0] * inner < items_per_unit * x.device().info().compute_units) return true;
    return n > long_line && inner < coalesced;
}

}  // namespace

void scan(std::string_view function, Scan kind, const View& x, const View& out, const View* indices) {
    require_dense(function, "x", x);
    require_dense(function, "out", out);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 3, "outer, n, inner");
    require_shape(function, "out", out, x.shape);
    if (x.dtype == DType::boolean || (kind == Scan::log_sum_exp && !is_floating(x.dtype)))
        throw TypeError(fmt::format("{}: expected {} as x, got {}", function,
                                    kind == Scan::log_sum_exp ? "f32, f64, f16 or bf16" : "numbers", name_of(x.dtype)));
    if (indices != nullptr) require_shape(function, "the indices", *indices, x.shape);
    const WorkScope work("scan", work_each(1, x, out));
    if (x.numel() == 0) return;

    const Device device = x.device();
    const bool simd = is_simd(device);
    if (!simd && needs_groups(x)) return scan_in_groups(kind, x, out, indices);
    const std::int64_t outer = x.shape[0], n = x.shape[1], inner = x.shape[2];
    // simt: a work-item for each line, adjacent lines in adjacent work-items, lines in one chunk.
    const std::int64_t width = simd ? std::min(kWidth, inner) : 1,
                       blocks = simd ? ceil_div(inner, width) : outer * inner;
    const auto units = static_cast<std::int64_t>(device.info().compute_units);
    const std::int64_t max_chunks = simd ? std::max<std::int64_t>(1, n / kMinChunk) : 1;
    Sizes sizes{.n = n,
                .inner = inner,
                .chunks = std::clamp<std::int64_t>(units / std::max<std::int64_t>(1, outer * blocks), 1, max_chunks),
                .each = 0,
                .lines = outer * inner};
    sizes.each = ceil_div(n, sizes.chunks);
    sizes.chunks = ceil_div(n, sizes.each);

    Defines defines = defines_of(kind, x.dtype, indices != nullptr);
    // Contiguous elements in vectors, since a serial sum would be bound by the latency of each addition.
    const bool lanes = simd && inner == 1 && indices == nullptr && (kind == Scan::sum || kind == Scan::product) &&
                       !is_16bit_float(x.dtype) && n >= kMinForLanes;
    defines.set("WIDTH", width)
        .set("LINE_PER_ITEM", simd ? 0 : 1)
        .set("LANES", !lanes                  ? 1
                      : size_of(x.dtype) == 8 ? 8
                                              : 16);
    if (indices != nullptr && simd && inner == 1) defines.set("SKIP_LENGTH", kSkipLength);
    const Kernel kernel(device, {"scan.cl", "scan", defines});
    const std::size_t group = simd ? 1 : item_group(kernel);
    const Range range{.global = {round_up(to_size(blocks), group), to_size(sizes.chunks), to_size(simd ? outer : 1)},
                      .local = {group, 1, 1}};
    const DType real = compute_type(x.dtype);
    const View totals = View::make(device, real, {outer, sizes.chunks, inner});
    View total_indices;
    if (indices != nullptr) total_indices = View::make(device, DType::i64, totals.shape);
    if (sizes.chunks > 1) {
        std::vector<Argument> arguments{sizes, x.argument(), totals.argument()};
        if (indices != nullptr) arguments.emplace_back(total_indices.argument());
        launch(Kernel(device, {"scan.cl", "scan_totals", defines}), range, std::span<const Argument>(arguments));
    }
    std::vector<Argument> arguments{sizes, x.argument(), totals.argument(), out.argument()};
    if (indices != nullptr) {
        arguments.emplace_back(total_indices.argument());
        arguments.emplace_back(indices->argument());
    }
    launch(kernel, range, std::span<const Argument>(arguments));
}

}  // namespace declivity::ops
