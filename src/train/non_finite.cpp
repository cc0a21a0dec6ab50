#include "non_finite.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <fmt/format.h>

#include "user_step.hpp"

namespace declivity::train {
namespace {

constexpr std::string_view kGradientOf = "gradient of ";

struct NonFiniteOrigin {
    std::string layer;   // the first with a non-finite output
    Tensor output = {};  // of the model, if it was called
    Tensor target = {};
};

std::string non_finite_field(const data::Batch& batch) {
    for (std::size_t i = 0; i < batch.names().size(); ++i)
        if (is_floating(batch[i].dtype()) && !is_finite(batch[i]))
            return i == 0 ? "input" : fmt::format("field {}", batch.names()[i]);
    return {};
}

std::string non_finite_parameter(const Trainer::State& state) {
    for (const auto& [name, module] : state.modules)
        for (const auto& [path, parameter] : module.named_parameters())
            if (!is_finite(parameter))
                return state.has_model() ? fmt::format("parameter {}", path)
                                         : fmt::format("parameter {}.{}", name, path);
    return {};
}

/// @param step_number from 0
NonFiniteOrigin first_not_finite(const Trainer::State& state, const data::Batch& batch, std::int64_t step_number) {
    if (const std::string field = non_finite_field(batch); !field.empty()) return {field};
    if (const std::string parameter = non_finite_parameter(state); !parameter.empty()) return {parameter};
    NonFiniteOrigin origin;
    // Inner modules are reported before the modules that contain them, so the first one is the most precise.
    const nn::ObserveCalls observe(
        [&](const std::string& path, const nn::Module&, const std::vector<Tensor>&, const std::vector<Tensor>& out) {
            if (origin.layer.empty() && !std::ranges::all_of(out, is_finite)) origin.layer = path;
        });
    if (state.has_model()) {
        Trainer::State::Outcome outcome = state.outcome_of(batch);
        origin.output = outcome.output.detach();
        origin.target = outcome.target;
        if (origin.layer.empty() && !is_finite(outcome.loss)) origin.layer = "loss";
        if (!origin.layer.empty() || !outcome.loss.requires_grad()) return origin;
        nn::Module& model = state.modules[0].module;
        model.zero_grad();
        outcome.loss.backward();
        if (const std::string gradient = non_finite_gradient(state); !gradient.empty())
            origin.layer = std::string(kGradientOf) + gradient;
        model.zero_grad();
    } else {  // the guard prevents updates by its optimizers
        Sums discarded_sums(state.device);
        UserStep step(state, UserStep::Purpose::diagnose, discarded_sums, step_number);
        const LossCalls calls;
        step.begin(batch.size);
        step.observe(calls);
        state.step(step, batch);
        if (origin.layer.empty() && step.found_loss()) origin.layer = "loss";
        if (origin.layer.empty() && !step.found_gradient().empty())
            origin.layer = std::string(kGradientOf) + step.found_gradient();
    }
    return origin;
}

}  // namespace

void throw_loss_not_finite(const Trainer::State& state, const data::Batch& batch, const LabelErrors& label_errors,
                           std::int64_t step, std::int64_t epoch, bool last) {
    const auto [layer, output, target] = first_not_finite(state, batch, step - 1);
    if (layer.empty() && !last) return;
    if (output.defined() && target.defined() && (layer.empty() || layer == "loss"))
        if (const auto label =
                refused_label(state.loss, output, target.dtype(),
                              target.rank() > 1 ? suspect_labels(output, target) : suspect_labels(label_errors)))
            throw ValueError(fmt::format(
                "Trainer: expected labels in [0, {}), as many as the model has outputs, got label {} at step "
                "{} (epoch {}, batch {}). "
                "The parameters are those from before the step",
                output.size(1), *label, step, epoch, batch.number));
    const bool in_data = layer == "input" || layer.starts_with("field ");
    const bool in_gradient = layer.starts_with(kGradientOf);
    throw NonFiniteLoss(
        fmt::format(
            "Trainer: {} infinite or NaN at step {} (epoch {}, batch {}); {}. The parameters are "
            "those from before the step. {}",
            in_gradient ? "the loss was finite, its gradient was" : "the loss was", step, epoch, batch.number,
            layer.empty() ? "a second run of that batch was finite"
            : in_gradient ? fmt::format("the first parameter with a non-finite gradient is '{}'",
                                        layer.substr(kGradientOf.size()))
                          : fmt::format("the first non-finite value is in '{}'", layer),
            in_data ? "Look at the data and its transform" : "A smaller learning rate or clip_norm often helps"),
        step, layer);
}

}  // namespace declivity::train
