#include <declivity/tensor/creation.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/ops/arange.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

Device device_of(const TensorOptions& options) { return options.device ? *options.device : default_device(); }

/// Attribute common to all functions in this file.
CallAttribute type_of(const TensorOptions& options) { return {"dtype", options.dtype}; }

ops::View make(std::string_view function, const Shape& shape, const TensorOptions& options) {
    return ops::View::make(device_of(options), options.dtype, shape, BufferUse::compute, function);
}

Tensor filled(std::string_view function, const Shape& shape, const Scalar& value, const TensorOptions& options) {
    const ops::View out = make(function, shape, options);
    ops::fill(out, value, function);
    return Tensor(out);
}

}  // namespace

Tensor full(const Shape& shape, Scalar value, const TensorOptions& options) {
    const FunctionCall call("full", {}, {{"shape", shape}, {"value", value}, type_of(options)});
    return call.result(filled("full", shape, value, options));
}

Tensor zeros(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("zeros", {}, {{"shape", shape}, type_of(options)});
    return call.result(filled("zeros", shape, 0, options));
}

Tensor ones(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("ones", {}, {{"shape", shape}, type_of(options)});
    return call.result(filled("ones", shape, 1, options));
}

Tensor zeros_like(const Tensor& like) {
    const FunctionCall call("zeros_like", {{"like", like}});
    call.require_defined({"like"});
    return call.result(filled("zeros_like", like.shape(), 0, {like.dtype(), like.device()}));
}

Tensor ones_like(const Tensor& like) {
    const FunctionCall call("ones_like", {{"like", like}});
    call.require_defined({"like"});
    return call.result(filled("ones_like", like.shape(), 1, {like.dtype(), like.device()}));
}

Tensor full_like(const Tensor& like, Scalar value) {
    const FunctionCall call("full_like", {{"like", like}}, {{"value", value}});
    call.require_defined({"like"});
    return call.result(filled("full_like", like.shape(), value, {like.dtype(), like.device()}));
}

Tensor empty(const Shape& shape, const TensorOptions& options) {
    const FunctionCall call("empty", {}, {{"shape", shape}, type_of(options)});
    return call.result(Tensor(make("empty", shape, options)));
}

Tensor empty_like(const Tensor& like) {
    const FunctionCall call("empty_like", {{"like", like}});
    call.require_defined({"like"});
    return call.result(Tensor(make("empty_like", like.shape(), {like.dtype(), like.device()})));
}

namespace {

std::int64_t count_of(const Scalar& start, const Scalar& end, const Scalar& step) {
    const auto arguments = {start, end, step};
    if (step.to_double() == 0 ||
        !std::ranges::all_of(arguments, [](const Scalar& n) { return std::isfinite(n.to_double()); }))
        throw ValueError(fmt::format("arange: expected finite bounds and a finite step other than 0, got {}, {}, {}",
                                     start.str(), end.str(), step.str()));
    const double quotient = (end.to_double() - start.to_double()) / step.to_double(), steps = std::ceil(quotient);
    if (quotient < 0)
        throw ValueError(fmt::format("arange: expected a step that leads from start to end, got {}, {}, {}",
                                     start.str(), end.str(), step.str()));
    if (!(steps < 0x1p63))
        throw ValueError(fmt::format("arange: expected a number of elements that fits into 63 bits, got {}", steps));
    const auto is_i64 = [](const Scalar& n) { return !n.is_floating() && n.fits(DType::i64); };
    if (steps == 0 || !std::ranges::all_of(arguments, is_i64)) return static_cast<std::int64_t>(steps);
    // Where doubles would round: the distance fits into 64 bits unsigned.
    const bool up = step.to<std::int64_t>() > 0;
    const std::uint64_t distance = up ? end.to<std::uint64_t>() - start.to<std::uint64_t>()
                                      : start.to<std::uint64_t>() - end.to<std::uint64_t>(),
                        increment = up ? step.to<std::uint64_t>() : (-step).to<std::uint64_t>();
    return static_cast<std::int64_t>((distance - 1) / increment + 1);
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& options) {
    const FunctionCall call("arange", {}, {{"start", start}, {"end", end}, {"step", step}, type_of(options)});
    const std::int64_t count = count_of(start, end, step);
    TensorOptions compute_options = options;
    compute_options.dtype = compute_type(options.dtype);
    const ops::View out = make("arange", {count}, compute_options);
    ops::arange(out, start, step);
    return call.result(Tensor(out).to(options.dtype));
}

}  // namespace declivity
