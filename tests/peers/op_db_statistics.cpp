// Adapters for PyTorch's statistics and rearranging functions.
#include <limits>

#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

Dims axes_of(A& a) { return a.dims(1, "dim", Dims{}); }

/// The correction, by either of PyTorch's argument names.
double correction_of(A& a) {
    if (a.has(9, "correction")) return a.number(9, "correction", 1);
    return a.flag(9, "unbiased", true) ? 1 : 0;
}

void add_pointwise(Table& all) {
    all["deg2rad"] = [](A& a) { return Tensors{deg2rad(a.tensor(0))}; };
    all["rad2deg"] = [](A& a) { return Tensors{rad2deg(a.tensor(0))}; };
    all["sinc"] = [](A& a) { return Tensors{sinc(a.tensor(0))}; };
    all["signbit"] = [](A& a) { return Tensors{signbit(a.tensor(0))}; };
    all["logit"] = [](A& a) {
        if (!a.is_given(1, "eps")) return Tensors{logit(a.tensor(0))};
        return Tensors{logit(a.tensor(0), a.number(1, "eps"))};
    };
    const std::pair<const char*, Tensor (*)(const TensorOrScalar&, const TensorOrScalar&)> binary_functions[] = {
        {"fmin", fmin}, {"fmax", fmax}, {"xlogy", xlogy}, {"ldexp", ldexp}, {"logaddexp2", logaddexp2}};
    for (const auto& [name, call] : binary_functions)
        all[name] = [call = call](A& a) {
            return Tensors{call(a.tensor_or_number(0), a.tensor_or_number(1, "other"))};
        };
    all["isclose"] = [](A& a) {
        return Tensors{isclose(a.tensor(0), a.tensor(1, "other"), a.number(2, "rtol", 1e-5), a.number(3, "atol", 1e-8),
                               a.flag(4, "equal_nan", false))};
    };
    all["isin"] = [](A& a) {
        a.ignore("assume_unique");
        return Tensors{isin(a.tensor(0), a.tensor(1, "test_elements"), a.flag(9, "invert", false))};
    };
    const auto options_of = [](A& a) {
        a.ignore("device");
        TensorOptions options;
        if (const Json& given = a.raw(99, "dtype"); given.is_object()) options.dtype = a.dtype(given);
        return options;
    };
    all["linspace"] = [=](A& a) {
        const TensorOptions options = options_of(a);
        return Tensors{linspace(a.scalar(0, "start"), a.scalar(1, "end"), a.integer(2, "steps"), options)};
    };
    all["logspace"] = [=](A& a) {
        const TensorOptions options = options_of(a);
        const double base = a.number(3, "base", 10);
        return Tensors{logspace(a.scalar(0, "start"), a.scalar(1, "end"), a.integer(2, "steps"), base, options)};
    };
}

void add_statistics(Table& all) {
    all["nansum"] = [](A& a) {
        const Dims axes = axes_of(a);
        return Tensors{nansum(a.tensor(0), axes, a.flag(2, "keepdim", false))};
    };
    all["nanmean"] = [](A& a) {
        const Dims axes = axes_of(a);
        return Tensors{nanmean(a.tensor(0), axes, a.flag(2, "keepdim", false))};
    };
    all["nanmedian"] = [](A& a) {
        if (!a.has(1, "dim")) return Tensors{nanmedian(a.tensor(0))};
        a.compare_first();
        const NanMedian both = nanmedian(a.tensor(0), a.integer(1, "dim"), a.flag(2, "keepdim", false));
        return Tensors{both.values, both.indices};
    };
    all["var_mean"] = [](A& a) {
        const double correction = correction_of(a);
        const Dims axes = axes_of(a);
        const VarMean both = var_mean(a.tensor(0), axes, correction, a.flag(9, "keepdim", false));
        return Tensors{both.var, both.mean};
    };
    all["std_mean"] = [](A& a) {
        const double correction = correction_of(a);
        const Dims axes = axes_of(a);
        const StdMean both = std_mean(a.tensor(0), axes, correction, a.flag(9, "keepdim", false));
        return Tensors{both.std, both.mean};
    };
    all["var_mean.unbiased"] = [](A& a) {
        const VarMean both = var_mean(a.tensor(0), {}, a.flag(1, "unbiased", true) ? 1 : 0);
        return Tensors{both.var, both.mean};
    };
    all["std_mean.unbiased"] = [](A& a) {
        const StdMean both = std_mean(a.tensor(0), {}, a.flag(1, "unbiased", true) ? 1 : 0);
        return Tensors{both.std, both.mean};
    };
    all["cov"] = [](A& a) {
        const std::int64_t correction = a.integer(9, "correction", 1);
        a.loosen(5);  // gradients of weights are differences that cancel
        const Tensor counts = a.tensor_or_none(9, "fweights"), weights = a.tensor_or_none(9, "aweights");
        return Tensors{cov(a.tensor(0), correction, counts, weights)};
    };
    all["corrcoef"] = [](A& a) { return Tensors{corrcoef(a.tensor(0))}; };
    all["renorm"] = [](A& a) {
        return Tensors{renorm(a.tensor(0), a.number(1, "p"), a.integer(2, "dim"), a.number(3, "maxnorm"))};
    };
    all["dist"] = [](A& a) { return Tensors{dist(a.tensor(0), a.tensor(1, "other"), a.number(2, "p", 2))}; };
    all["diff"] = [](A& a) {
        return Tensors{diff(a.tensor(0), a.integer(1, "n", 1), a.integer(2, "dim", -1), a.tensor_or_none(3, "prepend"),
                            a.tensor_or_none(4, "append"))};
    };
    for (const bool each : {false, true})
        all[each ? "cumulative_trapezoid" : "trapezoid"] = [each](A& a) {
            const std::int64_t axis = a.integer(9, "dim", -1);
            if (a.is_given(1, "x")) {
                const Tensor x = a.tensor(1, "x");
                return Tensors{each ? cumulative_trapezoid(a.tensor(0), x, axis) : trapezoid(a.tensor(0), x, axis)};
            }
            const Scalar dx = a.scalar(9, "dx", 1);
            return Tensors{each ? cumulative_trapezoid(a.tensor(0), dx, axis) : trapezoid(a.tensor(0), dx, axis)};
        };
}

void add_arrangements(Table& all) {
    const std::pair<const char*, Tensor (*)(const Tensor&)> unary_functions[] = {
        {"atleast_1d", atleast_1d}, {"atleast_2d", atleast_2d}, {"atleast_3d", atleast_3d},
        {"ravel", ravel},           {"fliplr", fliplr},         {"flipud", flipud}};
    for (const auto& [name, call] : unary_functions)
        all[name] = [call = call](A& a) {
            if (!a.raw(0).contains("list")) return Tensors{call(a.tensor(0))};
            Tensors results;
            for (const Tensor& tensor : a.tensors(0)) results.push_back(call(tensor));
            return results;
        };
    const std::pair<const char*, Tensor (*)(const Tensors&)> list_functions[] = {
        {"hstack", hstack}, {"vstack", vstack}, {"dstack", dstack}};
    for (const auto& [name, call] : list_functions)
        all[name] = [call = call](A& a) { return Tensors{call(a.tensors(0))}; };
    all["block_diag"] = [](A& a) {
        Tensors parts;
        for (std::size_t i = 0; i < a.positional_count(); ++i) parts.push_back(a.tensor(i));
        return Tensors{block_diag(parts)};
    };
    const std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)> by_example[] = {
        {"expand_as", expand_as}, {"reshape_as", reshape_as}, {"view_as", view_as}};
    for (const auto& [name, call] : by_example)
        all[name] = [call = call](A& a) { return Tensors{call(a.tensor(0), a.tensor(1, "other"))}; };
    all["diagflat"] = [](A& a) { return Tensors{diagflat(a.tensor(0), a.integer(1, "offset", 0))}; };
    all["narrow"] = [](A& a) {
        return Tensors{narrow(a.tensor(0), a.integer(1, "dim"), a.integer(2, "start"), a.integer(3, "length"))};
    };
    all["tensor_split"] = [](A& a) {
        const std::int64_t axis = a.integer(2, "dim", 0);
        const Json& sections = a.raw(1);
        if (sections.is_number_integer()) return tensor_split(a.tensor(0), sections.get<std::int64_t>(), axis);
        if (sections.contains("tensor")) throw UnsupportedSample("places as a tensor");
        std::vector<std::int64_t> indices;
        for (const Json& item : sections["list"]) indices.push_back(item.get<std::int64_t>());
        return tensor_split(a.tensor(0), indices, axis);
    };
    all["take_along_dim"] = [](A& a) {
        const Tensor index = a.tensor(1, "indices");
        if (!a.is_given(2, "dim")) return Tensors{take_along_dim(a.tensor(0), index)};
        return Tensors{take_along_dim(a.tensor(0), index, a.integer(2, "dim"))};
    };
    all["argwhere"] = [](A& a) { return Tensors{argwhere(a.tensor(0))}; };
    all["combinations"] = [](A& a) {
        return Tensors{combinations(a.tensor(0), a.integer(1, "r", 2), a.flag(2, "with_replacement", false))};
    };
}

const Adapters pointwise{add_pointwise}, statistics{add_statistics}, arrangements{add_arrangements};

}  // namespace
}  // namespace declivity::peers
