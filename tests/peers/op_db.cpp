// Compares functions with PyTorch's on the samples that op_db.py wrote: values, and gradients of a weighted sum of
// them. Of f16 and bf16 PyTorch's are computed in f32, from which a result may differ by its own rounding alone.
//
//   declivity_op_db FILE.json [OPERATOR...]
//
// Prints a line for each operator: how many samples agree, how many the function does not take (with the reasons), and
// how many are wrong; the first wrong ones in full. Ends with 1 where one is wrong.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "op_db.hpp"

using namespace declivity;
using namespace declivity::peers;

namespace {

struct Tally {
    int right = 0, unsupported = 0, wrong = 0;
    std::set<std::string> messages;
};

/// Twice the relative spacing of numbers, for f16 and bf16.
double unit_roundoff(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : 0x1p-8; }

/// Tolerance for a result and PyTorch's number, since both round.
/// @param dtype of the result: f16 and bf16 results compared with an f32 number round once
double allowed(DType dtype, double expected, double largest) {
    switch (dtype) {
        case DType::f16:
        case DType::bf16:
            return 1.01 * unit_roundoff(dtype) * std::abs(expected) + 1e-5 * largest +
                   (dtype == DType::f16 ? 0x1p-25 : 0);
        case DType::f32:
            return 2e-5 * std::abs(expected) + 1e-5 * largest;
        case DType::f64:
            return 1e-7 * std::abs(expected) + 1e-9 * largest;
        default:
            return 0;
    }
}

std::vector<double> values_of(const Tensor& x) { return x.to(DType::f64).to_vector<double>(); }

/// Rounds values beyond the range of f16 to infinity.
double in_range(DType dtype, double value) {
    return dtype == DType::f16 && std::abs(value) >= 65520 ? std::copysign(INFINITY, value) : value;
}

/// The comparison of two tensors.
struct Comparison {
    bool type = false;                      ///< the types must be equal
    double tolerance_factor = 1;            ///< factor of the tolerance
    double min_scale = 1e-3;                ///< relative to the largest number
    bool nan_is_any = false;                ///< PyTorch's NaN may be a number here
    bool both_ways = false;                 ///< and a number of PyTorch may be NaN here
    const Tensor* nan_reference = nullptr;  ///< where it is NaN, nothing is compared
    bool relative_to_largest = false;       ///< rounding errors of f16 and bf16 are relative to the largest number
};

std::string compared(const char* what, std::size_t at, const Tensor& got, const Tensor& expected,
                     const Comparison& options) {
    if (!got.defined()) return fmt::format("{} {} is missing", what, at);
    if (!(got.shape() == expected.shape()))
        return fmt::format("{} {} has shape {}, expected {}", what, at, got.shape().str(), expected.shape().str());
    const bool rounds = is_16bit_float(got.dtype()) && expected.dtype() == DType::f32;
    if (options.type && !rounds && got.dtype() != expected.dtype())
        return fmt::format("{} {} is {}, expected {}", what, at, name_of(got.dtype()), name_of(expected.dtype()));
    const auto a = values_of(got), b = values_of(expected);
    double largest = options.min_scale;
    for (const double value : b)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    const DType type = rounds ? got.dtype() : expected.dtype();
    const auto skipped = options.nan_reference != nullptr ? values_of(*options.nan_reference) : std::vector<double>{};
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (i < skipped.size() && std::isnan(skipped[i])) continue;
        if ((options.nan_is_any || std::isnan(a[i])) && std::isnan(b[i])) continue;
        if (options.both_ways && std::isnan(a[i])) continue;
        // A pole, which PyTorch's functions miss by the rounding of pi.
        if (std::abs(b[i]) > 1e12 && std::isinf(a[i])) continue;
        const double target = in_range(type, b[i]);
        double allowed_error = options.tolerance_factor * allowed(type, target, largest);
        if (options.relative_to_largest && rounds)
            allowed_error += 4 * options.tolerance_factor * unit_roundoff(type) * largest;
        if (a[i] != target && !(std::abs(a[i] - target) <= allowed_error))
            return fmt::format("{} {}: element {} of {} is {}, expected {}", what, at, i, got.shape().str(), a[i],
                               b[i]);
    }
    return {};
}

bool contains_any(const std::string& name, std::initializer_list<const char*> parts) {
    return std::ranges::any_of(parts, [&](const char* part) { return name.find(part) != std::string::npos; });
}

/// Samples of equal numbers or NaN: the selection among equal elements is unspecified.
bool chooses_among_equals(const std::string& name, const std::string& variant) {
    return (variant == "extremes" && contains_any(name, {"max_pool"})) ||
           (!variant.empty() && (name == "mode" || name == "sort" || name == "msort" || name == "argsort" ||
                                 contains_any(name, {"kthvalue", "topk", "scatter_reduce.am"})));
}

/// Samples with infinities: PyTorch's NaN, or its absence, depends on its algorithm (a mean of infinity is NaN in
/// var_mean() and infinite in mean(); the gradient of hardtanh at NaN is 1 in three elements and 0 in eight; polygamma
/// of order 2 is NaN at infinity, where its limit is 0, and infinite at -infinity, where it has none).
bool nan_by_steps(const std::string& name, const std::string& variant) {
    static const std::set<std::string> all{"cdist",
                                           "clamp",
                                           "cumprod",
                                           "polygamma.polygamma_n_0",
                                           "polygamma.polygamma_n_1",
                                           "polygamma.polygamma_n_2",
                                           "polygamma.polygamma_n_3",
                                           "polygamma.polygamma_n_4",
                                           "prod",
                                           "quantile",
                                           "renorm",
                                           "std_mean",
                                           "std_mean.unbiased",
                                           "var",
                                           "var.unbiased",
                                           "var_mean",
                                           "var_mean.unbiased",
                                           "scatter_reduce.amax",
                                           "scatter_reduce.amin",
                                           "native_batch_norm",
                                           "native_layer_norm"};
    static const std::set<std::string> networks{"batch_norm",
                                                "group_norm",
                                                "instance_norm",
                                                "layer_norm",
                                                "binary_cross_entropy_with_logits",
                                                "multi_margin_loss",
                                                "multilabel_margin_loss",
                                                "conv1d",
                                                "conv2d",
                                                "conv3d",
                                                "conv_transpose1d",
                                                "conv_transpose2d",
                                                "conv_transpose3d",
                                                "embedding_bag",
                                                "gelu",
                                                "silu",
                                                "mish",
                                                "hardshrink",
                                                "softshrink",
                                                "hardtanh",
                                                "relu6",
                                                "interpolate.linear",
                                                "interpolate.bilinear",
                                                "interpolate.bicubic",
                                                "interpolate.trilinear",
                                                "upsample_bilinear",
                                                "scaled_dot_product_attention"};
    constexpr std::string_view kNetworks = "nn.functional.";
    if (variant != "extremes") return false;
    return name.starts_with(kNetworks) ? networks.contains(name.substr(kNetworks.size())) : all.contains(name);
}

/// Returns whether an element of the result depends only on the elements at the same index.
bool elementwise_of(const std::string& name) {
    static const std::set<std::string> all{"clamp",
                                           "nn.functional.gelu",
                                           "nn.functional.silu",
                                           "nn.functional.mish",
                                           "nn.functional.hardshrink",
                                           "nn.functional.softshrink",
                                           "nn.functional.hardtanh",
                                           "nn.functional.relu6"};
    return all.contains(name);
}

std::optional<DType> half_of(const std::string& variant) {
    if (variant == "f16") return DType::f16;
    if (variant == "bf16") return DType::bf16;
    return std::nullopt;
}

std::string difference_of(const Adapter& adapter, const Json& call, const Reader& reader) {
    Arguments arguments(call, reader);
    const Json& expected_results = call["results"];
    const std::string name = call["op"], variant = call.value("variant", "");
    arguments.set_reduced_precision(half_of(variant).has_value());
    std::vector<Tensor> results = adapter(arguments);
    const bool open = chooses_among_equals(name, variant), any = nan_by_steps(name, variant);
    // Some adapters use a sign, or an order, from PyTorch's results, which are f32.
    if (const std::optional<DType> half = half_of(variant))
        for (Tensor& result : results)
            if (result.dtype() == DType::f32) result = result.to(*half);
    const std::size_t compares = arguments.compares_first() || open ? 1 : results.size();
    if (results.size() != expected_results.size())
        return fmt::format("{} results, expected {}", results.size(), expected_results.size());
    for (std::size_t i = 0; i < compares; ++i)
        if (auto text = compared("result", i, results[i], reader.tensor(expected_results[i]),
                                 {.type = true,
                                  .tolerance_factor = half_of(variant) ? arguments.looseness() : 1,
                                  .nan_is_any = any,
                                  .both_ways = any});
            !text.empty())
            return text;
    // PyTorch's gradients are those of f32, which represents results that f16 does not.
    for (std::size_t i = 0; variant == "f16" && i < compares; ++i)
        for (const double item : values_of(reader.tensor(expected_results[i])))
            if (std::isfinite(item) && std::isinf(in_range(DType::f16, item))) return {};
    if (!call.contains("gradients") || arguments.compares_values_alone() || open) return {};
    if (!variant.empty() && name == "polar") return {};  // whose gradient PyTorch drops for a size of 0
    const bool twice = call.contains("second_gradients");
    Tensor total;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (call["weights"][i].is_null()) continue;
        if (!results[i].requires_grad()) continue;  // the gradient must be 0
        const Tensor part = sum(results[i] * reader.tensor(call["weights"][i]));
        total = total.defined() ? total + part : part;
    }
    const auto& inputs = arguments.attach_backward();
    std::vector<Tensor> gradients(inputs.size());
    if (total.defined()) gradients = grad({total}, inputs, {.create_graph = twice, .allow_unused = true});
    // PyTorch's functions differ in which element a NaN comes from.
    const bool has_nan =
        any && std::ranges::any_of(inputs, [](const Tensor& x) {
            return std::ranges::any_of(values_of(x.detach()), [](double value) { return std::isnan(value); });
        });
    for (std::size_t i = 0; i < inputs.size() && i < call["gradients"].size(); ++i) {
        const bool none = call["gradients"][i].is_null();
        const Tensor expected = none ? zeros_like(inputs[i].detach()) : reader.tensor(call["gradients"][i]);
        const Tensor got = gradients[i].defined() ? gradients[i] : zeros_like(inputs[i].detach());
        const bool same_shape = results.size() == 1 && results[0].shape() == inputs[i].shape() && elementwise_of(name);
        if (has_nan && !same_shape) continue;
        const Tensor x = inputs[i].detach();
        const Tensor nan_reference = any && same_shape ? where(isnan(x), x, results[0].detach()) : Tensor();
        if (auto text = compared("gradient", i, arguments.compared_part(i, got), arguments.compared_part(i, expected),
                                 {.tolerance_factor = arguments.looseness(),
                                  .min_scale = 1,
                                  .nan_is_any = !variant.empty(),
                                  .both_ways = any,
                                  .nan_reference = nan_reference.defined() ? &nan_reference : nullptr,
                                  .relative_to_largest = true});
            !text.empty())
            return text;
    }
    // Second derivatives of elements skipped by xlogy(), outside of the domain of logit() and at poles depend on the
    // algorithm.
    if (!twice || contains_any(name, {"xlogy", "logit", "polygamma"})) return {};
    Tensor second_total;
    for (std::size_t i = 0; i < inputs.size() && i < call["second_weights"].size(); ++i) {
        if (call["second_weights"][i].is_null() || !gradients[i].defined() || !gradients[i].requires_grad()) continue;
        const Tensor part = sum(gradients[i] * reader.tensor(call["second_weights"][i]));
        second_total = second_total.defined() ? second_total + part : part;
    }
    std::vector<Tensor> second(inputs.size());
    if (second_total.defined()) second = grad({second_total}, inputs, {.allow_unused = true});
    for (std::size_t i = 0; i < inputs.size() && i < call["second_gradients"].size(); ++i) {
        const bool none = call["second_gradients"][i].is_null();
        const Tensor expected = none ? zeros_like(inputs[i].detach()) : reader.tensor(call["second_gradients"][i]);
        const Tensor got = second[i].defined() ? second[i] : zeros_like(inputs[i].detach());
        if (auto text = compared(
                "second gradient", i, got, expected,
                {.tolerance_factor = 4 * arguments.looseness(), .min_scale = 1, .nan_is_any = true, .both_ways = any});
            !text.empty())
            return text;
    }
    return {};
}

}  // namespace

int main(int count, char** arguments_of_main) try {
    if (count < 2) {
        std::cerr << "declivity_op_db: expected the file that op_db.py wrote, and names of operators, if not all\n";
        return 2;
    }
    const std::string path = arguments_of_main[1];
    std::set<std::string> only(arguments_of_main + 2, arguments_of_main + count);
    std::ifstream file(path);
    const Json calls = Json::parse(file);
    const Reader reader(path.substr(0, path.rfind('.')) + ".bin", default_device());
    std::map<std::string, Tally> all;
    std::map<std::string, Adapter> known_adapters = adapters();
    std::set<std::string> unknown;
    for (const Json& call : calls) {
        const std::string name = call["op"];
        if (!only.empty() && !only.contains(name)) continue;
        const auto found = known_adapters.find(name);
        if (found == known_adapters.end()) {
            unknown.insert(name);
            continue;
        }
        Tally& tally = all[name];
        try {
            const std::string wrong = difference_of(found->second, call, reader);
            if (wrong.empty()) {
                ++tally.right;
                continue;
            }
            if (++tally.wrong <= 3) std::cout << fmt::format("WRONG {}: {}\n    {}\n", name, wrong, describe(call));
        } catch (const UnsupportedSample& reason) {
            ++tally.unsupported;
            tally.messages.insert(std::string("(not taken) ") + reason.what());
        } catch (const Error& error) {
            ++tally.unsupported;
            tally.messages.insert(std::string(error.what()).substr(0, 110));
        }
    }
    int right = 0, wrong = 0, unsupported = 0;
    for (const auto& [name, tally] : all) {
        right += tally.right, wrong += tally.wrong, unsupported += tally.unsupported;
        std::cout << fmt::format("{:42} {:4} agree {:4} not taken {:4} wrong\n", name, tally.right, tally.unsupported,
                                 tally.wrong);
        int shown = 0;
        for (const std::string& line : tally.messages)
            if (shown++ < 4) std::cout << "      " << line << "\n";
    }
    if (only.empty() && !unknown.empty()) {
        std::cout << "Operators without an adapter:";
        for (const std::string& line : unknown) std::cout << " " << line;
        std::cout << "\n";
    }
    std::cout << fmt::format("{} operators: {} samples agree, {} are not taken, {} are wrong\n", all.size(), right,
                             unsupported, wrong);
    return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << "declivity_op_db: " << error.what() << "\n";
    return 2;
}
