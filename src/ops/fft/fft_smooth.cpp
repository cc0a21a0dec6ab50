// Transforms of smooth lengths: in one launch, or as passes over memory whose radices are transforms themselves.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <declivity/ops/copy.hpp>

#include "fft_launch.hpp"
#include "fft_plan.hpp"
#include "fft_tables.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kLanesBytes = std::int64_t{1} << 19;   // for the numbers of VW transforms, to stay in a cache
constexpr std::int64_t kRowsBytes = std::int64_t{1} << 19;    // for one transform in vectors
constexpr std::int64_t kLocalBytes = std::int64_t{32} << 10;  // of a work-group, simt
constexpr std::int64_t kGroupNumbers = 1024;                  // minimum for a work-group
constexpr std::int64_t kNeighbours = 8;                       // columns that fill whole cache lines
constexpr std::size_t kFftGroup = 256;

/// Layout of the kernels' struct; must match cl_kernels/fft/.
struct FftLanes {
    std::int64_t outer, lanes, in_outer, in_lane, in_step, out_outer, out_q, out_p, out_step, s, m;
    std::uint64_t radices;
    std::int32_t n, passes, twiddled, block, kind = kC2C, unused = 0;
};
struct FftRows {
    std::int64_t rows, in_row, out_row;
    std::uint64_t radices;
    std::int32_t n, m, passes, kind;
};

/// simd: work-items for this many units of equal work.
std::int64_t items_for(const Device& device, std::int64_t units) {
    return std::clamp<std::int64_t>(units, 1, std::int64_t{device.info().compute_units} * kSimdItemsPerUnit);
}

Range each_alone(std::int64_t items) { return {.global = {to_size(items), 1, 1}, .local = {1, 1, 1}}; }

void launch_group(const View& x, const FftLanes& lanes, const View& pass_table, const View& segment, const View& out,
                  const FftNumbers& numbers) {
    const Device device = x.device();
    const std::int64_t max_columns = block_elements(device, x.dtype, kLocalBytes) / (4 * lanes.n);
    std::int64_t columns =
        std::max(ceil_div(kGroupNumbers, std::int64_t{lanes.n}), lanes.in_lane == 2 ? kNeighbours : 1);
    columns = std::max<std::int64_t>(1, std::min({columns, max_columns, lanes.lanes}));
    const Kernel kernel(device, {"fft_group.cl", "fft_group", real_defines(x.dtype)});
    const std::size_t max_group = std::bit_ceil(to_size(ceil_div(lanes.n * columns, 4)));
    const std::size_t group =
        std::max<std::size_t>(1, std::min({kFftGroup, max_group, std::bit_floor(kernel.max_work_group())}));
    launch(
        kernel,
        {.global = {to_size(ceil_div(lanes.lanes, columns)) * group, to_size(lanes.outer), 1}, .local = {group, 1, 1}},
        {lanes, narrow(columns), real_argument(x.dtype, numbers.sign()), real_argument(x.dtype, numbers.scale),
         x.argument(), pass_table.argument(), segment.argument(), out.argument(),
         local_memory(4 * lanes.n * columns, x.dtype)});
}

/// The table for transforms of 2 n real numbers.
View circle_of(const View& x, std::int64_t n) { return fft_circle_table(x.device(), x.dtype, 2 * n, n + 1); }

void launch_lanes(const View& x, FftLanes lanes, const View& out, const FftNumbers& numbers) {
    const Device device = x.device();
    const FftPasses passes = fft_passes(lanes.n);
    lanes.radices = passes.radices;
    lanes.passes = passes.count;
    lanes.twiddled = lanes.m > 1 && lanes.twiddled != 0 ? 1 : 0;
    lanes.block = narrow(power_of_two_up_to(static_cast<std::int64_t>(std::sqrt(2.0 * lanes.n))));
    const View pass_table = fft_pass_table(device, x.dtype, lanes.n, false);
    const View segment =
        lanes.twiddled != 0 ? fft_segment_table(device, x.dtype, lanes.n, lanes.m, lanes.block) : pass_table;
    if (!is_simd(device)) return launch_group(x, lanes, pass_table, segment, out, numbers);
    const std::int64_t width = vector_form(device, x.dtype).vector;
    const std::int64_t items = items_for(device, lanes.outer * ceil_div(lanes.lanes, width));
    const View scratch = View::make(device, x.dtype, {items, 4 * width * (lanes.n + 1)});
    const View circle = lanes.kind != kC2C ? circle_of(x, lanes.n) : pass_table;
    launch({device, {"fft_lanes.cl", "fft_lanes", real_defines(x.dtype).set("VW", width)}}, each_alone(items),
           {lanes, real_argument(x.dtype, numbers.sign()), real_argument(x.dtype, numbers.scale), x.argument(),
            pass_table.argument(), segment.argument(), circle.argument(), scratch.argument(), out.argument()});
}

/// Launches transforms in vectors along the rows if these are long enough and contiguous.
/// @param kind kC2C, kR2C or kC2R
bool launch_rows(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers,
                 std::int32_t kind = kC2C) {
    const Device device = x.device();
    const std::int64_t width = vector_form(device, x.dtype).vector, n = lines.n, m = n / width;
    if (!is_simd(device) || lines.inner != 1 || lines.step != 2 || n % width != 0 || m < width ||
        2 * n * static_cast<std::int64_t>(size_of(x.dtype)) > kRowsBytes)
        return false;
    const FftPasses passes = fft_passes(m, true);
    if (passes.count < 2) return false;
    const FftRows rows{.rows = lines.outer,
                       .in_row = lines.outer_stride,
                       .out_row = 2 * (kind == kR2C ? n + 1 : n),
                       .radices = passes.radices,
                       .n = narrow(n),
                       .m = narrow(m),
                       .passes = passes.count,
                       .kind = kind};
    const std::int64_t items = items_for(device, rows.rows);
    const View scratch = View::make(device, x.dtype, {items, 4 * n}), table = fft_row_table(device, x.dtype, n, width);
    launch({device, {"fft_rows.cl", "fft_rows", real_defines(x.dtype).set("VW", width)}}, each_alone(items),
           {rows, real_argument(x.dtype, numbers.sign()), real_argument(x.dtype, numbers.scale), x.argument(),
            fft_pass_table(device, x.dtype, m, true).argument(), table.argument(),
            (kind != kC2C ? circle_of(x, n) : table).argument(), scratch.argument(), out.argument()});
    return true;
}

/// The maximum length of one launch.
std::int64_t max_at_once(const Device& device, DType dtype) {
    const auto pair = 2 * static_cast<std::int64_t>(size_of(dtype));
    if (!is_simd(device)) return block_elements(device, dtype, kLocalBytes) / 4;
    return kLanesBytes / (pair * vector_form(device, dtype).vector);
}

/// Lanes for rows.
FftLanes row_lanes(const FftLines& lines, std::int64_t out_row) {
    return {.outer = 1,
            .lanes = lines.outer,
            .in_outer = 0,
            .in_lane = lines.outer_stride,
            .in_step = lines.step,
            .out_outer = 0,
            .out_q = 2,
            .out_p = out_row,
            .out_step = 2,
            .s = 1,
            .m = lines.outer,
            .radices = 0,
            .n = narrow(lines.n),
            .passes = 0,
            .twiddled = 0,
            .block = 0};
}

/// Returns whether rows leave most lanes empty, and are long enough for passes over memory.
bool few_rows(const View& x, const FftLines& lines) {
    if (!is_simd(x.device())) return false;
    const std::int64_t width = vector_form(x.device(), x.dtype).vector;
    return lines.outer < width && lines.n > width * width;
}

}  // namespace

bool launch_fft_real_smooth(const View& x, std::int64_t rows, std::int64_t h, bool back, const View& out,
                            double scale) {
    if (!is_simd(x.device()) || h < 2) return false;
    FftLines lines = FftLines::dense(rows, h, 1);
    if (back) lines.outer_stride = 2 * (h + 1);
    const FftNumbers numbers{back, scale};
    const std::int32_t kind = back ? kC2R : kR2C;
    if (launch_rows(x, lines, out, numbers, kind)) return true;
    if (h > max_at_once(x.device(), x.dtype) || few_rows(x, lines)) return false;
    FftLanes lanes = row_lanes(lines, back ? 2 * h : 2 * (h + 1));
    lanes.kind = kind;
    launch_lanes(x, lanes, out, numbers);
    return true;
}

void launch_fft_smooth(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers) {
    if (launch_rows(x, lines, out, numbers)) return;
    const Device device = x.device();
    const std::int64_t max_length = max_at_once(device, x.dtype), n = lines.n, inner = lines.inner;
    const bool simd = is_simd(device);
    if (n <= max_length && !(inner == 1 && few_rows(x, lines))) {
        const FftLanes lanes{.outer = lines.outer,
                             .lanes = inner,
                             .in_outer = lines.outer_stride,
                             .in_lane = lines.inner_stride,
                             .in_step = lines.step,
                             .out_outer = 2 * n * inner,
                             .out_q = 2,
                             .out_p = 0,
                             .out_step = 2 * inner,
                             .s = inner,
                             .m = 1,
                             .radices = 0,
                             .n = narrow(n),
                             .passes = 0,
                             .twiddled = 0,
                             .block = 0};
        return launch_lanes(x, inner == 1 ? row_lanes(lines, 2 * n) : lanes, out, numbers);
    }
    // Passes over memory. The last one writes the result; those before alternate between it and a temporary buffer.
    std::vector<std::int64_t> parts =
        fft_parts(n, simd ? max_length : std::min<std::int64_t>(max_length, kGroupNumbers / 2));
    if (parts.size() == 1) parts = fft_parts(n, n / 2);
    if (parts.size() > 1 && inner > 1 && lines.step != inner * lines.inner_stride) {
        // Lanes of the first pass have a constant distance.
        const View dense = View::make(device, x.dtype, {lines.outer, n, inner, 2});
        View strided = x;
        strided.shape = dense.shape;
        strided.strides = {lines.outer_stride, lines.step, lines.inner_stride, 1};
        copy(strided, dense);
        return launch_fft_smooth(dense, FftLines::dense(lines.outer, n, inner), out, numbers);
    }
    const View other = View::make(device, x.dtype, {lines.outer, n, inner, 2});
    std::int64_t s = inner, m = n;
    for (std::size_t pass = 0; pass < parts.size(); ++pass) {
        const std::int64_t r = parts[pass];
        m /= r;
        const bool first = pass == 0, last = pass + 1 == parts.size();
        const bool into_out = (parts.size() - 1 - pass) % 2 == 0;
        const std::int64_t between = first ? (inner > 1 ? lines.inner_stride : lines.step) : 2;
        const FftLanes lanes{.outer = lines.outer,
                             .lanes = s * m,
                             .in_outer = first ? lines.outer_stride : 2 * n * inner,
                             .in_lane = between,
                             .in_step = between * s * m,
                             .out_outer = 2 * n * inner,
                             .out_q = 2,
                             .out_p = 2 * s * r,
                             .out_step = 2 * s,
                             .s = s,
                             .m = m,
                             .radices = 0,
                             .n = narrow(r),
                             .passes = 0,
                             .twiddled = 1,
                             .block = 0};
        launch_lanes(first      ? x
                     : into_out ? other
                                : out,
                     lanes, into_out ? out : other, {numbers.conjugate, last ? numbers.scale : 1.0});
        s *= r;
    }
}

}  // namespace declivity::ops
