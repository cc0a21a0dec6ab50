// Moments, covariances and norms, composed of other functions.
#include <declivity/functions/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/equals.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

Tensor without_nan(const Tensor& x) { return where(isnan(x), zeros({}, {x.dtype(), x.device()}), x); }

}  // namespace

Tensor nansum(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("nansum", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    return call.result(sum(is_floating(x.dtype()) ? without_nan(x) : x, axes, keep_axes));
}

Tensor nanmean(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("nanmean", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real("nanmean", "x", x.dtype());
    const Tensor upcast_x = upcast(x), count = sum(!isnan(x), axes, keep_axes);
    return call.result((sum(without_nan(upcast_x), axes, keep_axes) / count.to(upcast_x.dtype())).to(x.dtype()));
}

NanMedian nanmedian(const Tensor& x, std::int64_t axis, bool keep_axis) {
    const FunctionCall call("nanmedian", {{"x", x}}, {{"axis", axis}, {"keep_axis", keep_axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("nanmedian", axis, std::max(1, x.rank()));
    const Tensor rows = x.rank() == 0 ? reshape(x, {1}) : x;
    if (rows.size(along) == 0)
        throw ShapeError(
            fmt::format("nanmedian: expected at least one element along axis {}, got {}", along, x.shape().str()));
    // NaN is sorted last, so the median is that of the leading elements.
    const Sorted order = sort(rows, along);
    const Tensor middle = clamp_min(floor_divide(sum(!isnan(rows), {along}, true) - 1, 2), 0);
    Tensor values = gather(order.values, along, middle), indices = gather(order.indices, along, middle);
    if (!keep_axis || x.rank() == 0) values = squeeze(values, {along}), indices = squeeze(indices, {along});
    const NanMedian result{values, indices};
    call.results({result.values, result.indices});
    return result;
}

Tensor nanmedian(const Tensor& x) {
    const FunctionCall call("nanmedian", {{"x", x}});
    call.require_defined({"x"});
    if (x.numel() == 0 && is_floating(x.dtype()))
        return call.result(full({}, std::numeric_limits<double>::quiet_NaN(), {x.dtype(), x.device()}));
    const Tensor middle = nanmedian(reshape(x, {x.numel()}).detach(), 0).values;
    return call.result(detail::shared_by_equals("nanmedian", x, middle));
}

VarMean var_mean(const Tensor& x, const Dims& axes, double correction, bool keep_axes) {
    const FunctionCall call("var_mean", {{"x", x}},
                            {{"axes", axes}, {"correction", correction}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real("var_mean", "x", x.dtype());
    const VarMean result{var(x, axes, correction, keep_axes), mean(x, axes, keep_axes)};
    call.results({result.var, result.mean});
    return result;
}

StdMean std_mean(const Tensor& x, const Dims& axes, double correction, bool keep_axes) {
    const FunctionCall call("std_mean", {{"x", x}},
                            {{"axes", axes}, {"correction", correction}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real("std_mean", "x", x.dtype());
    const StdMean result{stddev(x, axes, correction, keep_axes), mean(x, axes, keep_axes)};
    call.results({result.std, result.mean});
    return result;
}

namespace {

void require_variables(const char* name, const Tensor& x) {
    if (x.rank() > 2)
        throw ShapeError(fmt::format("{}: expected x of shape (variables, observations) or (observations), got {}",
                                     name, x.shape().str()));
    if (x.dtype() == DType::boolean) throw TypeError(fmt::format("{}: expected a numeric type, got bool", name));
}

void require_weights(const char* what, const Tensor& weights, const Tensor& rows, bool floating) {
    if (!weights.defined()) return;
    ops::require_same_device("cov", rows.device(), weights.device());
    ops::require_shape("cov", what, weights.shape(), {rows.size(1)});
    const bool valid_type =
        floating ? is_floating(weights.dtype()) : !is_floating(weights.dtype()) && weights.dtype() != DType::boolean;
    if (!valid_type)
        throw TypeError(fmt::format("cov: expected {} as {}, got {}", floating ? "a floating type" : "integers", what,
                                    name_of(weights.dtype())));
}

}  // namespace

Tensor cov(const Tensor& x, std::int64_t correction, const Tensor& fweights, const Tensor& aweights) {
    const FunctionCall call("cov", {{"x", x}, {"fweights", fweights}, {"aweights", aweights}},
                            {{"correction", correction}});
    call.require_defined({"x"});
    require_variables("cov", x);
    const Tensor upcast_x = is_floating(x.dtype()) ? upcast(x) : x.to(DType::f32);
    const Tensor rows = x.rank() == 2 ? upcast_x : reshape(upcast_x, {1, x.numel()});
    require_weights("fweights", fweights, rows, false);
    require_weights("aweights", aweights, rows, true);
    const auto ddof = static_cast<double>(correction);
    Tensor sums;
    if (!fweights.defined() && !aweights.defined()) {
        const auto n = static_cast<double>(rows.size(1));
        const Tensor centred = rows - mean(rows, {1}, true);
        sums = matmul(centred, transpose(centred)) * (1 / std::max(0.0, n - ddof));
    } else {
        const Tensor a = upcast(aweights);
        Tensor weights = a.defined() ? a : fweights.to(rows.dtype());
        if (a.defined() && fweights.defined()) weights = a * fweights;
        const Tensor total = sum(weights);
        const Tensor centred = rows - sum(rows * weights, {1}, true) / total;
        const Tensor correction_term = a.defined() ? sum(weights * a) / total * ddof : full_like(total, ddof);
        sums = matmul(centred, transpose(centred * weights)) / clamp_min(total - correction_term, 0.0);
    }
    // One variable: a number.
    if (sums.numel() == 1) sums = reshape(sums, {});
    return call.result(is_16bit_float(x.dtype()) ? sums.to(x.dtype()) : sums);
}

Tensor corrcoef(const Tensor& x) {
    const FunctionCall call("corrcoef", {{"x", x}});
    call.require_defined({"x"});
    require_variables("corrcoef", x);
    const Tensor c = cov(is_16bit_float(x.dtype()) ? upcast(x) : x);
    const Tensor deviations = sqrt(c.rank() == 0 ? c : diag(c));
    const Tensor scaled = c.rank() == 0 ? c / c : clamp(c / unsqueeze(deviations, 1) / deviations, -1.0, 1.0);
    return call.result(is_16bit_float(x.dtype()) ? scaled.to(x.dtype()) : scaled);
}

Tensor renorm(const Tensor& x, double p, std::int64_t axis, double maxnorm) {
    const FunctionCall call("renorm", {{"x", x}}, {{"p", p}, {"axis", axis}, {"maxnorm", maxnorm}});
    call.require_defined({"x"});
    ops::require_real("renorm", "x", x.dtype());
    if (x.rank() < 2) throw ShapeError(fmt::format("renorm: expected at least two axes, got {}", x.shape().str()));
    const int along = normalize_axis("renorm", axis, x.rank());
    if (!(p > 0) || !(maxnorm >= 0))
        throw ValueError(fmt::format("renorm: expected p > 0 and maxnorm >= 0, got {} and {}", p, maxnorm));
    Dims others;
    for (int i = 0; i < x.rank(); ++i)
        if (i != along) others.push_back(i);
    const Tensor upcast_x = upcast(x), norms = norm(upcast_x, p, others, true);
    return call.result((upcast_x * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)).to(x.dtype()));
}

}  // namespace declivity
