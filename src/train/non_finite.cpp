#include "non_finite.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <fmt/format.h>

#include "step_of.hpp"

namespace declivity::train {
namespace {

constexpr std::string_view kGradientOf = "gradient of ";

struct Found {
    std::string layer;   // the first with a non-finite output
    Tensor output = {};  // of the model, if it was called
    Tensor target = {};
};

std::string in_the_batch(const data::Batch& batch) {
    for (std::size_t i = 0; i < batch.names().size(); ++i)
        if (is_floating(batch[i].dtype()) && !is_finite(batch[i]))
            return i == 0 ? "input" : fmt::format("field {}", batch.names()[i]);
    return {};
}

std::string among_parameters(const Trainer::State& state) {
    for (const auto& [name, module] : state.modules)
        for (const auto& [path, parameter] : module.named_parameters())
            if (!is_finite(parameter))
                return state.of_model() ? fmt::format("parameter {}", path)
                                        : fmt::format("parameter {}.{}", name, path);
    return {};
}

/// @param number of the step, from 0
Found first_not_finite(const Trainer::State& state, const data::Batch& batch, std::int64_t number) {
    if (const std::string field = in_the_batch(batch); !field.empty()) return {field};
    if (const std::string parameter = among_parameters(state); !parameter.empty()) return {parameter};
    Found found;
    // Inner modules are reported before the modules that contain them, so the first one is the most precise.
    const nn::ObserveCalls observe(
        [&](const std::string& path, const nn::Module&, const std::vector<Tensor>&, const std::vector<Tensor>& out) {
            if (found.layer.empty() && !std::ranges::all_of(out, is_finite)) found.layer = path;
        });
    if (state.of_model()) {
        Trainer::State::Outcome outcome = state.outcome_of(batch);
        found.output = outcome.output.detach();
        found.target = outcome.target;
        if (found.layer.empty() && !is_finite(outcome.loss)) found.layer = "loss";
        if (!found.layer.empty() || !outcome.loss.requires_grad()) return found;
        nn::Module& model = state.modules[0].module;
        model.zero_grad();
        outcome.loss.backward();
        if (const std::string gradient = non_finite_gradient(state); !gradient.empty())
            found.layer = std::string(kGradientOf) + gradient;
        model.zero_grad();
    } else {  // the guard prevents updates by its optimizers
        Sums nowhere(state.device);
        StepOf step(state, StepOf::Purpose::find, nowhere, number);
        const LossCalls calls;
        step.begin(batch.size);
        step.observe(calls);
        state.step(step, batch);
        if (found.layer.empty() && step.found()) found.layer = "loss";
        if (found.layer.empty() && !step.found_gradient().empty())
            found.layer = std::string(kGradientOf) + step.found_gradient();
    }
    return found;
}

}  // namespace

void throw_loss_not_finite(const Trainer::State& state, const data::Batch& batch, const NotedLabels& noted,
                           std::int64_t step, std::int64_t epoch, bool last) {
    const auto [layer, output, target] = first_not_finite(state, batch, step - 1);
    if (layer.empty() && !last) return;
    if (output.defined() && target.defined() && (layer.empty() || layer == "loss"))
        if (const auto label = refused_label(state.loss, output, target.dtype(),
                                             target.rank() > 1 ? suspects(output, target) : suspects(noted)))
            throw ValueError(fmt::format(
                "Trainer: expected labels in [0, {}), as many as the model has outputs, got label {} at step "
                "{} (epoch {}, batch {}). "
                "The parameters are those from before the step",
                output.size(1), *label, step, epoch, batch.number));
    const bool of_data = layer == "input" || layer.starts_with("field ");
    const bool of_gradient = layer.starts_with(kGradientOf);
    throw NonFiniteLoss(
        fmt::format(
            "Trainer: {} infinite or NaN at step {} (epoch {}, batch {}); {}. The parameters are "
            "those from before the step. {}",
            of_gradient ? "the loss was finite, its gradient was" : "the loss was", step, epoch, batch.number,
            layer.empty() ? "a second run of that batch was finite"
            : of_gradient ? fmt::format("the first parameter with a non-finite gradient is '{}'",
                                        layer.substr(kGradientOf.size()))
                          : fmt::format("the first non-finite value is in '{}'", layer),
            of_data ? "Look at the data and its transform" : "A smaller learning rate or clip_norm often helps"),
        step, layer);
}

}  // namespace declivity::train
