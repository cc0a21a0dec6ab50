#include "trainer_state.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <declivity/nn/loss.hpp>
#include <declivity/ops/classification.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "user_step.hpp"

namespace declivity::train {
namespace {

Device device_of(const std::vector<NamedModule>& modules) {
    if (modules.empty()) throw ValueError("Trainer: expected at least one module, got none");
    for (const auto& [name, module] : modules)
        if (const auto parameters = module.parameters(); !parameters.empty()) return parameters[0].device();
    return default_device();
}

void check_names(std::string_view what, const std::vector<std::string>& names) {
    std::set<std::string> seen;
    for (const std::string& name : names)
        if (name.empty() || name.find_first_of(".,\n\"") != std::string::npos || !seen.insert(name).second)
            throw ValueError(
                fmt::format("Trainer: expected names of {} without dots and commas, each once, got {}", what, names));
}

bool is_classification(const Tensor& output, const Tensor& target) {
    return is_integer(target.dtype()) && target.rank() == 1 && output.rank() == 2 && output.size(0) == target.size(0) &&
           is_floating(output.dtype());
}

}  // namespace

Trainer::State::State(std::vector<NamedModule> module_list, std::vector<NamedOptimizer> optimizer_list,
                      std::vector<NamedMetric> metric_list, std::vector<NamedGenerator> generator_list)
    : modules(std::move(module_list)),
      optimizers(std::move(optimizer_list)),
      metrics(std::move(metric_list)),
      generators(std::move(generator_list)),
      device(device_of(modules)),
      dtype(type_of(modules[0].module)),
      totals(zeros({4}, {DType::f32, device})),
      sums(device),
      guard(zeros({2}, {DType::i32, device})),
      label_errors(zeros({4}, {DType::i64, device})) {
    check_names("modules", names_of(modules));
    check_names("optimizers", names_of(optimizers));
    check_names("metrics", names_of(metrics));
    check_names("generators", names_of(generators));
    for (const NamedMetric& named_metric : metrics) {
        if (!named_metric.metric)
            throw ValueError(fmt::format("Trainer: expected a metric as '{}', got null", named_metric.name));
        named_metric.metric->to(device);
    }
}

Tensor Trainer::State::output_of(const data::Batch& batch) const {
    const std::size_t arguments = model->arguments();
    if (inputs.empty() && batch.tensors().size() < arguments)
        throw ValueError(
            fmt::format("Trainer: expected a batch with the {} inputs of the model, got {} (ModelOptions::inputs "
                        "names them)",
                        arguments, batch.names()));
    std::vector<Tensor> model_inputs(arguments);
    for (std::size_t i = 0; i < (inputs.empty() ? arguments : inputs.size()); ++i)
        model_inputs[i] = inputs.empty() ? batch[i] : batch[inputs[i]];
    return outputs_of(*model, dtype, std::move(model_inputs));
}

Trainer::State::Outcome Trainer::State::outcome_of(const data::Batch& batch) const {
    Outcome out;
    out.output = output_of(batch);
    const bool metrics_need_target = std::ranges::any_of(metrics, [](const NamedMetric& metric) { return !metric.of; });
    if (loss || metrics_need_target) {
        if (!target.empty()) {
            out.target = batch[target];
        } else {
            std::size_t target_index = inputs.empty() ? model->arguments() : 0;
            while (target_index < batch.names().size() &&
                   std::ranges::find(inputs, batch.names()[target_index]) != inputs.end())
                ++target_index;
            if (target_index >= batch.names().size())
                throw ValueError(
                    fmt::format("Trainer: expected a target in addition to the inputs of the model, which takes {}, "
                                "got a batch of {} "
                                "(ModelOptions names inputs and target)",
                                model->arguments(), batch.names()));
            out.target = batch[target_index];
        }
    }
    const LossCalls calls;
    const LossValue value = loss ? loss(out.output, out.target) : batch_loss(out.output, batch);
    out.loss = value.loss();
    require_loss(out.loss, "Trainer");
    out.weight = value.has_weight()
                     ? LossWeight::of(value, "Trainer")
                     : calls.weight_of_combination(out.loss, batch.size).value_or(LossWeight::of_examples(batch.size));
    return out;
}

void Trainer::State::measure(const Outcome& outcome, const data::Batch& batch, std::optional<bool>& as_classification,
                             const Tensor& out_totals, const Tensor& out_label_errors, Sums& out_sums) const {
    if (!as_classification) as_classification = loss && is_classification(outcome.output, outcome.target);
    if (*as_classification) {
        const DType label = outcome.target.dtype();
        const bool supported = label == DType::i32 || label == DType::i64;
        ops::add_classification(outcome.output.dense_view(),
                                (supported ? outcome.target : outcome.target.to(DType::i64)).dense_view(),
                                outcome.loss.view(), outcome.weight.view(), out_totals.view(), out_label_errors.view());
    } else {
        out_sums.add("loss", outcome.loss, outcome.weight);
    }
    for (const NamedMetric& named_metric : metrics) {
        if (!named_metric.of) {
            named_metric.metric->update(outcome.output, outcome.target);
            continue;
        }
        const auto [output, metric_target] = named_metric.of(outcome.output, batch);
        named_metric.metric->update(output, metric_target);
    }
}

void Trainer::State::set_training(bool on) const {
    for (const auto& [name, module] : modules) module.train(on);
}

void append_metrics(Metrics& metrics, const std::string& prefix, const Trainer::State& state, bool classification,
                    std::span<const float> totals, const Sums& sums, std::span<const float> sums_on_host,
                    std::span<const io::HostArray> metric_states) {
    if (classification) {
        metrics.add(prefix + "loss", static_cast<double>(totals[0]) / static_cast<double>(totals[2]));
        if (state.metrics.empty())
            metrics.add(prefix + "accuracy", static_cast<double>(totals[1]) / static_cast<double>(totals[3]));
    }
    sums.append(metrics, prefix, sums_on_host);
    std::size_t index = 0;
    for (const NamedMetric& named_metric : state.metrics) {
        std::vector<std::string> names;
        std::vector<io::HostArray> arrays;
        for (const auto& [name, tensor] : named_metric.metric->state()) {
            names.push_back(name);
            arrays.push_back(metric_states[index++]);
        }
        metrics.add(prefix + named_metric.name,
                    named_metric.metric->compute(Metric::States(std::move(names), std::move(arrays))));
    }
}

Report::~Report() {
    try {
        wait();
    } catch (...) {
    }
}

void Report::request(const Trainer::State& state) {
    wait();
    std::vector<Tensor> tensors{state.guard, state.label_errors, state.totals, state.sums.values()};
    for (const NamedMetric& named_metric : state.metrics)
        for (const auto& [name, tensor] : named_metric.metric->state()) tensors.push_back(tensor);
    arrays_.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const ops::View& view = tensors[i].view();
        arrays_[i].dtype = view.dtype;
        arrays_[i].shape = view.shape;
        arrays_[i].bytes.resize(view.bytes());
        events_.push_back(
            download(view.buffer, static_cast<std::size_t>(view.offset) * size_of(view.dtype), arrays_[i].bytes));
    }
}

void Report::wait() {
    if (!events_.empty()) events_.back().wait();  // in the order of the queue
    events_.clear();
}

void Report::append(Metrics& metrics, const std::string& prefix, const Trainer::State& state) const {
    append_metrics(metrics, prefix, state, state.classification.value_or(false), arrays_[2].as<float>(), state.sums,
                   arrays_[3].as<float>(), std::span(arrays_).subspan(4));
}

std::array<std::int32_t, 2> Report::guard() const {
    const auto values = arrays_[0].as<std::int32_t>();
    return {values[0], values[1]};
}

LabelErrors Report::label_errors() const {
    LabelErrors out{};
    std::ranges::copy(arrays_[1].as<std::int64_t>(), out.begin());
    return out;
}

}  // namespace declivity::train
