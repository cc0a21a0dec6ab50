#include <declivity/functions/padding.hpp>

#include <algorithm>
#include <span>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/support/int32_range.hpp"

namespace declivity {
namespace {

constexpr std::int64_t kOne = 1;

/// `count` elements of an axis: in reverse order for reflect, repeated for replicate.
Tensor border(const Tensor& x, int axis, std::int64_t count, bool begin, PadMode mode) {
    const std::int64_t n = x.shape()[axis];
    if (mode == PadMode::circular) return begin ? slice(x, axis, n - count, n) : slice(x, axis, 0, count);
    if (mode == PadMode::reflect)
        return flip(begin ? slice(x, axis, 1, count + 1) : slice(x, axis, n - 1 - count, n - 1), {axis});
    Shape shape = x.shape();
    shape[axis] = count;
    return expand(begin ? slice(x, axis, 0, 1) : slice(x, axis, n - 1, n), shape);
}

Tensor pad_axis(const Tensor& x, int axis, std::int64_t begin, std::int64_t end, PadMode mode) {
    std::vector<Tensor> parts;
    if (begin > 0) parts.push_back(border(x, axis, begin, true, mode));
    parts.push_back(x);
    if (end > 0) parts.push_back(border(x, axis, end, false, mode));
    return parts.size() == 1 ? x : concat(parts, axis);
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& pads, PadMode mode, Scalar value) {
    const FunctionCall call("pad", {{"x", x}},
                            {{"pads", std::span<const std::int64_t>(pads)}, {"mode", mode}, {"value", value}});
    call.require_defined({"x"});
    const auto pairs = static_cast<int>(pads.size() / 2);
    if (pads.size() % 2 != 0 || pairs > x.rank())
        throw ShapeError(fmt::format("pad: expected a pair of numbers for each of at most {} axes, got {} for {}",
                                     x.rank(), pads, x.shape().str()));
    Dims before = Dims::filled(x.rank(), 0), after = before;
    for (int i = 0; i < pairs; ++i) {
        before[x.rank() - 1 - i] = pads[static_cast<std::size_t>(2 * i)];
        after[x.rank() - 1 - i] = pads[static_cast<std::size_t>(2 * i + 1)];
    }
    for (const Dims& widths : {before, after}) ops::check_int32_range("pad", "the pads", widths);
    if (mode == PadMode::constant) return call.result(pad(x, before, after, value));
    // Circular padding is cropped before it is extended at the other end. Other modes are cropped afterwards, as in
    // PyTorch.
    const bool circular = mode == PadMode::circular;
    for (int axis = 0; axis < x.rank(); ++axis) {  // checks everything first
        const std::int64_t cut = std::min<std::int64_t>(before[axis], 0) + std::min<std::int64_t>(after[axis], 0);
        const std::int64_t n = x.shape()[axis] + (circular ? cut : 0);
        const std::int64_t max_pad = std::max<std::int64_t>({before[axis], after[axis], 0});
        const std::int64_t required = mode == PadMode::reflect && max_pad > 0 ? max_pad + 1
                                      : circular                              ? max_pad
                                                                              : std::min(max_pad, kOne);
        if (n < required || x.shape()[axis] + before[axis] + after[axis] < 0)
            throw ShapeError(
                fmt::format("pad: expected at least {} elements along axis {} for {} and {} of mode {}, got {}",
                            std::max(required, -cut), axis, before[axis], after[axis], name_of(mode), x.shape().str()));
    }
    Tensor y = x;
    const auto crop_axis = [&](int axis) {
        const std::int64_t first = std::max<std::int64_t>(-before[axis], 0),
                           last = y.shape()[axis] + std::min<std::int64_t>(after[axis], 0);
        return first > 0 || last < y.shape()[axis] ? slice(y, axis, first, last) : y;
    };
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
        if (circular) y = crop_axis(axis);
        y = pad_axis(y, axis, before[axis], after[axis], mode);
        if (!circular) y = crop_axis(axis);
    }
    return call.result(y);
}

}  // namespace declivity
