#include "checks.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "tensor/access.hpp"

namespace declivity::train {

void require_parameters_of(const nn::Module& model, const optim::Optimizer& optimizer) {
    std::set<const void*> optimized;
    for (std::size_t group = 0; group < optimizer.groups(); ++group)
        for (const Tensor& parameter : optimizer.parameters(group)) optimized.insert(state_of(parameter).get());
    const auto is_optimized = [&](const Tensor& parameter) { return optimized.contains(state_of(parameter).get()); };
    if (std::ranges::none_of(model.parameters(), is_optimized))
        throw ValueError("Trainer: expected an optimizer of the model's parameters, got one without any of them");
}

DType type_of(const nn::Module& model) {
    const auto parameters = model.parameters();
    return parameters.empty() ? DType::f32 : parameters[0].dtype();
}

Tensor outputs_of(const Model& model, DType dtype, std::vector<Tensor> inputs) {
    if (!is_16bit_float(dtype)) return model(inputs);
    for (Tensor& input : inputs)
        if (input.defined() && is_floating(input.dtype())) input = input.to(dtype);
    const Tensor out = model(inputs);
    return out.to(compute_type(out.dtype()));
}

std::vector<std::int64_t> suspect_labels(const LabelErrors& label_errors) {
    return label_errors[1] == 0 ? std::vector<std::int64_t>{} : std::vector{label_errors[2], label_errors[3]};
}

std::vector<std::int64_t> suspect_labels(const Tensor& scores, const Tensor& target) {
    constexpr std::size_t max_labels = 8;
    std::set<std::int64_t> out_of_range;
    if (!is_integer(target.dtype()) || target.rank() + 1 != scores.rank()) return {};
    for (const std::int64_t label : target.to(DType::i64).to_vector<std::int64_t>())
        if ((label < 0 || label >= scores.size(1)) && out_of_range.size() < max_labels) out_of_range.insert(label);
    return {out_of_range.begin(), out_of_range.end()};
}

std::optional<std::int64_t> refused_label(const Loss& loss, const Tensor& scores, DType type,
                                          const std::vector<std::int64_t>& suspects) {
    const NoGrad no_grad;
    // Rows with label 0, so that the mean is defined if the other label is ignored.
    const std::int64_t rows = std::max<std::int64_t>(2, scores.size(0));
    const Tensor uniform_scores = zeros({rows, scores.size(1)}, {scores.dtype(), scores.device()});
    for (const std::int64_t label : suspects) {
        std::vector<std::int64_t> labels(static_cast<std::size_t>(rows), 0);
        labels[0] = label;
        try {
            const Tensor value = loss(uniform_scores, Tensor::from(labels, {rows}, scores.device()).to(type)).loss();
            if (!std::isfinite(value.to(DType::f32).item<float>())) return label;
        } catch (const Error&) {
            // A loss that rejects the synthetic batch gives no information about the label.
        }
    }
    return std::nullopt;
}

void require_labels(const Loss& loss, const Tensor& scores, DType type, const Tensor& label_errors) {
    LabelErrors labels{};
    label_errors.copy_to(std::span<std::int64_t>(labels));
    if (const auto label = refused_label(loss, scores, type, suspect_labels(labels)))
        throw ValueError(fmt::format(
            "Trainer::evaluate: expected labels in [0, {}), as many as the model has outputs, got label {} in batch {}",
            scores.size(1), *label, labels[1] - 1));
}

}  // namespace declivity::train
