// slice and select, which return a view of the same memory, and slice_scatter and select_scatter, which replace a part.
#include <algorithm>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/region_view.hpp"
#include "ops/support/work_split.hpp"
#include "tensor/region.hpp"

namespace declivity {
namespace {

using detail::Region;

/// Elements start, start + step, ... of an axis. @param end may be out of range, as may start
Region sliced(std::string_view name, const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end,
              std::int64_t step) {
    const int along = normalize_axis(name, axis, x.rank());
    const std::int64_t size = x.shape()[along];
    if (step < 1) throw ShapeError(fmt::format("{}: expected a step of at least 1, got {}", name, step));
    const auto within = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
    const std::int64_t first = within(start), last = within(end);
    Region region = Region::full(x.shape());
    region.axes[static_cast<std::size_t>(along)] = {first, last > first ? ceil_div(last - first, step) : 0, step};
    return region;
}

/// Element `index` of an axis.
Region selected(std::string_view name, const Tensor& x, std::int64_t axis, std::int64_t index) {
    const int along = normalize_axis(name, axis, x.rank());
    const std::int64_t size = x.shape()[along];
    if (index < -size || index >= size)
        throw ShapeError(fmt::format("{}: expected an index from {} to {} along axis {}, got {}", name, -size, size - 1,
                                     along, index));
    Region region = Region::full(x.shape());
    region.axes[static_cast<std::size_t>(along)] = {index < 0 ? index + size : index, 1, 1, true};
    return region;
}

}  // namespace

Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
    const FunctionCall call("slice", {{"x", x}}, {{"axis", axis}, {"start", start}, {"end", end}, {"step", step}});
    call.require_defined({"x"});
    return call.result(part_of(x, sliced("slice", x, axis, start, end, step), "slice"));
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
    const FunctionCall call("select", {{"x", x}}, {{"axis", axis}, {"index", index}});
    call.require_defined({"x"});
    return call.result(part_of(x, selected("select", x, axis, index), "select"));
}

Tensor slice_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
    const FunctionCall call("slice_scatter", {{"x", x}, {"src", src}},
                            {{"axis", axis}, {"start", start}, {"end", end}, {"step", step}});
    call.require_defined({"x", "src"});
    const Region region = sliced("slice_scatter", x, axis, start, end, step);
    return call.result(with_region("slice_scatter", std::move(x), std::move(src), region));
}

Tensor select_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t index) {
    const FunctionCall call("select_scatter", {{"x", x}, {"src", src}}, {{"axis", axis}, {"index", index}});
    call.require_defined({"x", "src"});
    const Region region = selected("select_scatter", x, axis, index);
    return call.result(with_region("select_scatter", std::move(x), std::move(src), region));
}

}  // namespace declivity
