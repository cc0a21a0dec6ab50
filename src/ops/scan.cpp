#include <declivity/ops/scan.hpp>

#include <algorithm>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kLeastChunk = 1024;   // elements of a line that are worth a chunk of their own
constexpr std::int64_t kWidth = 64;          // columns side by side of a work-item on CPU-like devices
constexpr std::int64_t kLeastForLanes = 32;  // elements of a line that are worth vectors along it
constexpr std::int64_t kSkip = 16;           // elements of a line that are passed at once where none is a new largest
constexpr std::size_t kGroup = 64;           // work-items of a group on GPU-like ones

/// As the kernels' struct.
struct Sizes {
    std::int64_t n, inner, chunks, each;
};

}  // namespace

void scan(std::string_view function, Scan kind, const View& x, const View& out, const View* places) {
    require_dense(function, "x", x);
    require_dense(function, "out", out);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 3, "outer, n, inner");
    require_shape(function, "out", out, x.shape);
    if (x.dtype == DType::boolean || (kind == Scan::log_sum_exp && !is_floating(x.dtype)))
        throw TypeError(fmt::format("{}: wants {} as x, got {}", function,
                                    kind == Scan::log_sum_exp ? "f32, f64, f16 or bf16" : "numbers", name_of(x.dtype)));
    if (places != nullptr) require_shape(function, "the places", *places, x.shape);
    const WorkScope work("scan", work_each(1, x, out));
    if (x.numel() == 0) return;

    const Device device = x.device();
    const bool cpu = family_of(device) == Family::cpu_like;
    const std::int64_t outer = x.shape[0], n = x.shape[1], inner = x.shape[2];
    const std::int64_t width = cpu ? std::min(kWidth, inner) : 1, blocks = ceil_div(inner, width);
    const auto units = static_cast<std::int64_t>(device.info().compute_units);
    const std::int64_t wanted = cpu ? units : units * static_cast<std::int64_t>(kGroup) * 8;
    const std::int64_t most = std::max<std::int64_t>(1, n / (cpu ? kLeastChunk : 64));
    Sizes sizes{n, inner, std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(1, outer * blocks), 1, most), 0};
    sizes.each = ceil_div(n, sizes.chunks);
    sizes.chunks = ceil_div(n, sizes.each);

    Defines defines;
    if (is_floating(x.dtype)) defines = storage_defines(x.dtype, x.dtype);
    else defines.set("REAL", cl_type(x.dtype)).set("WHOLE", 1);
    // Elements side by side in vectors: a sum of one after another would wait for each addition.
    const bool lanes = cpu && inner == 1 && places == nullptr && (kind == Scan::sum || kind == Scan::product) &&
                       !is_half(x.dtype) && n >= kLeastForLanes;
    defines.set("FOLD", static_cast<std::int64_t>(kind))
        .set("WIDTH", width)
        .set("LANES", !lanes                  ? 1
                      : size_of(x.dtype) == 8 ? 8
                                              : 16);
    if (places != nullptr) defines.set("PLACES", 1);
    if (places != nullptr && cpu && inner == 1) defines.set("SKIP", kSkip);
    const Kernel kernel(device, {"scan.cl", "scan", defines});
    const std::size_t group = cpu ? 1 : std::min(kGroup, kernel.max_work_group());
    const Range range{.global = {round_up(to_size(blocks), group), to_size(sizes.chunks), to_size(outer)},
                      .local = {group, 1, 1}};
    const DType real = compute_type(x.dtype);
    const View totals = View::make(device, real, {outer, sizes.chunks, inner});
    View total_places;
    if (places != nullptr) total_places = View::make(device, DType::i64, totals.shape);
    if (sizes.chunks > 1) {
        std::vector<Argument> arguments{sizes, x.argument(), totals.argument()};
        if (places != nullptr) arguments.emplace_back(total_places.argument());
        launch(Kernel(device, {"scan.cl", "scan_totals", defines}), range, std::span<const Argument>(arguments));
    }
    std::vector<Argument> arguments{sizes, x.argument(), totals.argument(), out.argument()};
    if (places != nullptr) {
        arguments.emplace_back(total_places.argument());
        arguments.emplace_back(places->argument());
    }
    launch(kernel, range, std::span<const Argument>(arguments));
}

}  // namespace declivity::ops
