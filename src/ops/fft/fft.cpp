#include <declivity/ops/fft.hpp>

#include <cmath>
#include <limits>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "fft_launch.hpp"
#include "fft_plan.hpp"
#include "fft_tables.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Attributes of the operations.
struct FftCall {
    std::int64_t axis;
    double scale;
    bool conjugate;
};

/// 5 n log2 n flops for a complex transform.
Work work_of(const View& x, const View& y, double n, double transforms) {
    return {.flops = transforms * 5 * n * std::log2(std::max(2.0, n)),
            .bytes = bytes_of(x) + bytes_of(y),
            .f64 = x.dtype == DType::f64};
}

EpilogueFused launch_complex(const OperationViews& views, const FftCall& call) {
    const View &x = views.in(0), &out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    const int axis = static_cast<int>(call.axis);
    const auto n = static_cast<double>(x.shape[axis]);
    const WorkScope scope("fft", work_of(x, out, n, static_cast<double>(x.numel()) / (2 * n)));
    const FftNumbers numbers{call.conjugate, call.scale};
    if (const auto lines = FftLines::of(x, axis)) {
        launch_fft(x, *lines, out, numbers);
    } else {
        const View dense = View::make(x.device(), x.dtype, x.shape);
        copy(x, dense);
        launch_fft(dense, *FftLines::of(dense, axis), out, numbers);
    }
    return EpilogueFused::no;
}

/// Launches the step before (kC2R) or after (kR2C) transforms of half the length.
void launch_real_part(const View& from, std::int64_t rows, std::int64_t h, std::int32_t kind, double scale,
                      const View& out) {
    const Device device = from.device();
    const bool simd = is_simd(device);
    const std::int64_t each = simd ? kSimdWork / 4 : 1;
    Defines defines = real_defines(from.dtype);
    defines.set("PER_ITEM", each).set("VW", simd ? vector_form(device, from.dtype).vector : 1);
    launch({device, {"fft_real.cl", "fft_real", defines}},
           {.global = {to_size(ceil_div(h / 2 + 1, each)), to_size(rows), 1}},
           {narrow(h), kind, real_argument(from.dtype, scale), from.argument(),
            fft_circle_table(device, from.dtype, 2 * h, h + 1).argument(), out.argument()});
}

/// Rows of 2 h real numbers and of h + 1 complex ones.
void launch_real(const View& x, const View& out, bool back, double scale) {
    const View& numbers = back ? out : x;
    const std::int64_t n = numbers.shape[numbers.rank() - 1], h = n / 2, rows = numbers.numel() / n;
    const WorkScope scope("fft_real", work_of(x, out, static_cast<double>(n), 0.5 * static_cast<double>(rows)));
    if (fft_smooth(h) && launch_fft_real_smooth(x, rows, h, back, out, scale)) return;
    const FftLines lines = FftLines::dense(rows, h, 1);
    const View half = View::make(x.device(), x.dtype, {rows, h, 2});
    if (back) {
        launch_real_part(x, rows, h, kC2R, scale, half);
        launch_fft(half, lines, reshaped(out, half.shape), {.conjugate = true});
    } else {
        launch_fft(reshaped(x, half.shape), lines, half, {});
        launch_real_part(half, rows, h, kR2C, scale, out);
    }
}

EpilogueFused launch_real_forward(const OperationViews& views, const FftCall& call) {
    if (views.out(0).numel() > 0) launch_real(dense_copy_if_needed(views.in(0)), views.out(0), false, call.scale);
    return EpilogueFused::no;
}

EpilogueFused launch_real_inverse(const OperationViews& views, const FftCall& call) {
    if (views.out(0).numel() > 0) launch_real(dense_copy_if_needed(views.in(0)), views.out(0), true, call.scale);
    return EpilogueFused::no;
}

void check(std::string_view function, const View& x, std::int64_t n) {
    require_real(function, "x", x.dtype);
    constexpr std::int64_t limit = std::int64_t{1} << 29;
    if (n < 1 || n > limit)
        throw ShapeError(
            fmt::format("{}: expected 1 to 2^29 elements along the axis, got x of {}", function, x.shape.str()));
}

void check_pairs(std::string_view function, const View& x) {
    if (x.rank() < 2 || x.shape[x.rank() - 1] != 2)
        throw ShapeError(fmt::format("{}: expected complex numbers as pairs along a last axis of size 2, got x of {}",
                                     function, x.shape.str()));
}

}  // namespace

std::optional<FftLines> FftLines::of(const View& x, int axis) {
    if (x.strides[x.rank() - 1] != 1) return std::nullopt;
    FftLines lines{.n = x.shape[axis], .step = x.strides[axis]};
    // Axes from the last to the first: each transform reads the result of the previous one.
    const auto joined = [&](int from, int to, std::int64_t& count, std::int64_t& stride) {
        for (int i = to - 1; i >= from; --i) {
            if (x.shape[i] == 1) continue;
            if (count == 1) stride = x.strides[i];
            else if (x.strides[i] != stride * count) return false;
            count *= x.shape[i];
        }
        return true;
    };
    if (!joined(0, axis, lines.outer, lines.outer_stride) ||
        !joined(axis + 1, x.rank() - 1, lines.inner, lines.inner_stride))
        return std::nullopt;
    return lines;
}

void launch_fft(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers) {
    if (lines.n > 1 && fft_smooth(lines.n)) return launch_fft_smooth(x, lines, out, numbers);
    launch_fft_chirp(x, lines, out, numbers);
}

LazyArray fft(std::string_view function, const View& x, int axis, bool conjugate, double scale) {
    check_pairs(function, x);
    check(function, x, x.shape[axis]);
    return operation("fft", launch_complex, FftCall{axis, scale, conjugate},
                     {.reads = {x}, .outputs = {{x.dtype, x.shape}}, .upcasts_to_f32 = true})[0];
}

LazyArray fft_real(std::string_view function, const View& x, double scale) {
    const std::int64_t n = x.rank() == 0 ? 0 : x.shape[x.rank() - 1];
    check(function, x, n % 2 == 0 ? n : 0);
    Shape shape = x.shape;
    shape[x.rank() - 1] = n / 2 + 1;
    shape.push_back(2);
    return operation("fft_real", launch_real_forward, FftCall{0, scale, false},
                     {.reads = {x}, .outputs = {{x.dtype, shape}}, .upcasts_to_f32 = true})[0];
}

LazyArray fft_real_inverse(std::string_view function, const View& x, double scale) {
    check_pairs(function, x);
    const std::int64_t n = 2 * (x.shape[x.rank() - 2] - 1);
    check(function, x, n);
    Dims sizes;
    for (int i = 0; i + 2 < x.rank(); ++i) sizes.push_back(x.shape[i]);
    sizes.push_back(n);
    return operation("fft_real_inverse", launch_real_inverse, FftCall{0, scale, false},
                     {.reads = {x}, .outputs = {{x.dtype, Shape(sizes)}}, .upcasts_to_f32 = true})[0];
}

}  // namespace declivity::ops
