#include <declivity/train/trainer.hpp>

#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checks.hpp"
#include "fit.hpp"
#include "user_step.hpp"
#include "trainer_state.hpp"

namespace declivity::train {
namespace {

void require_batch(std::string_view function, std::int64_t batch) {
    if (batch < 1)
        throw ValueError(fmt::format("Trainer::{}: expected a batch of at least 1, got {}", function, batch));
}

/// Puts modules into evaluation mode, and restores the mode of each and of its descendants at the end.
class EvaluationMode {
  public:
    explicit EvaluationMode(const std::vector<NamedModule>& modules) {
        for (const auto& [name, module] : modules) {
            save_modes(module);
            module.eval();
        }
    }
    ~EvaluationMode() {
        // A module sets the modes of its descendants, which come after it here.
        for (const auto& [module, training] : saved_modes_) module->train(training);
    }
    EvaluationMode(const EvaluationMode&) = delete;
    EvaluationMode& operator=(const EvaluationMode&) = delete;

  private:
    void save_modes(nn::Module& module) {
        saved_modes_.emplace_back(&module, module.training());
        for (const auto& [name, child] : module.children()) save_modes(*child);
    }
    std::vector<std::pair<nn::Module*, bool>> saved_modes_;
};

/// Resets metrics, and restores their state at the end: an evaluation in the middle of an epoch does not change them.
class MetricStateGuard {
  public:
    explicit MetricStateGuard(const std::vector<NamedMetric>& metrics) : metrics_(metrics) {
        for (const NamedMetric& named_metric : metrics_) {
            for (const auto& [name, tensor] : named_metric.metric->state()) saved_states_.push_back(tensor.clone());
            named_metric.metric->reset();
        }
    }
    ~MetricStateGuard() {
        std::size_t index = 0;
        for (const NamedMetric& named_metric : metrics_)
            for (const auto& [name, tensor] : named_metric.metric->state())
                Tensor(tensor).copy_(saved_states_[index++]);
    }
    MetricStateGuard(const MetricStateGuard&) = delete;
    MetricStateGuard& operator=(const MetricStateGuard&) = delete;

  private:
    const std::vector<NamedMetric>& metrics_;
    std::vector<Tensor> saved_states_;
};

}  // namespace

NonFiniteLoss::~NonFiniteLoss() = default;
Callback::~Callback() = default;

Trainer::Trainer(Model model, optim::Optimizer& optimizer, Loss loss, ModelOptions options)
    : Trainer(std::move(model), optimizer, BatchLoss(), std::move(options)) {
    state_->loss = loss ? std::move(loss) : nn::CrossEntropyLoss();
}

Trainer::Trainer(Model model, optim::Optimizer& optimizer, BatchLoss loss, ModelOptions options) {
    require_parameters_of(model.module(), optimizer);
    if (options.inputs.size() > model.arguments())
        throw ValueError(fmt::format("Trainer: expected at most {} inputs, as many as the model takes, got {}",
                                     model.arguments(), options.inputs));
    state_ = std::make_unique<State>(std::vector<NamedModule>{{"model", model.module()}},
                                     std::vector<NamedOptimizer>{{"optimizer", optimizer}}, std::move(options.metrics),
                                     std::move(options.generators));
    state_->model = std::move(model);
    state_->batch_loss = std::move(loss);
    state_->inputs = std::move(options.inputs);
    state_->target = std::move(options.target);
}

Trainer::Trainer(Model model, optim::Optimizer& optimizer, ModelOptions options)
    : Trainer(std::move(model), optimizer, Loss(), std::move(options)) {}

Trainer::Trainer(Parts parts, TrainStep step) {
    if (!step) throw ValueError("Trainer: expected a step, got an empty function");
    for (const NamedMetric& metric : parts.metrics)
        if (metric.of)
            throw ValueError(
                fmt::format("Trainer: expected metrics that the step updates by itself, got '{}' with NamedMetric::of",
                            metric.name));
    state_ = std::make_unique<State>(std::move(parts.modules), std::move(parts.optimizers), std::move(parts.metrics),
                                     std::move(parts.generators));
    state_->step = std::move(step);
    state_->evaluate = std::move(parts.evaluate);
    state_->predict = std::move(parts.predict);
}

Trainer::~Trainer() = default;

const Progress& Trainer::progress() const { return state_->progress; }
const Replays& Trainer::replays() const { return state_->replays; }
nn::Module& Trainer::model() const { return state_->modules[0].module; }
optim::Optimizer& Trainer::optimizer() const {
    if (state_->optimizers.empty())
        throw ValueError("Trainer::optimizer: expected a trainer with one, got one without");
    return state_->optimizers[0].optimizer;
}
const std::vector<NamedModule>& Trainer::modules() const { return state_->modules; }
const std::vector<NamedOptimizer>& Trainer::optimizers() const { return state_->optimizers; }
void Trainer::stop() { state_->stop = true; }
std::int64_t Trainer::planned_steps() const { return state_->planned_steps; }
const std::vector<std::string>& Trainer::validation_sets() const { return state_->validation_sets; }

bool Trainer::fit(const data::DatasetRef& train, const FitOptions& options) {
    return fit(train, std::vector<NamedDataset>(), options);
}

namespace {

/// @param name if there are several. @throws ValueError for an empty data set, before anything is done
const data::Dataset& examples_of(const data::DatasetRef& dataset, const char* function, const std::string& name = {}) {
    const data::Dataset& examples = dataset.get(function);
    if (examples.size() < 1)
        throw ValueError(fmt::format("{}: expected a data set{} of at least one example, got an empty one", function,
                                     name.empty() ? "" : fmt::format(" '{}'", name)));
    return examples;
}

}  // namespace

bool Trainer::fit(const data::DatasetRef& train, const data::DatasetRef& test, const FitOptions& options) {
    return fit(train, std::vector<NamedDataset>{{"test", test}}, options);
}

bool Trainer::fit(const data::DatasetRef& train, const std::vector<NamedDataset>& validation,
                  const FitOptions& options) {
    for (const auto& [name, dataset] : validation) (void)examples_of(dataset, "Trainer::fit", name);
    return Fit(*this, *state_, examples_of(train, "Trainer::fit", "train"), validation, options).run();
}

Evaluation Trainer::evaluate(const data::DatasetRef& dataset, const EvaluateOptions& options) {
    require_batch("evaluate", options.batch);
    if (!state_->has_model() && !state_->evaluate)
        throw ValueError("Trainer::evaluate: expected a trainer with Parts::evaluate, got one without");
    const EvaluationMode mode(state_->modules);
    const NoGrad no_grad;
    const MetricStateGuard metric_guard(state_->metrics);
    const Tensor totals = zeros({4}, {DType::f32, state_->device}),
                 label_errors = zeros({4}, {DType::i64, state_->device});
    Sums sums(state_->device);
    UserStep step_context(*state_, UserStep::Purpose::evaluate, sums);
    std::optional<bool> classification;
    State::Outcome last;
    Evaluation evaluation;
    data::Loader loader(
        examples_of(dataset, "Trainer::evaluate"),
        {.batch = options.batch, .transform = options.transform, .collate = options.collate, .device = state_->device});
    for (const data::Batch& batch : loader.epoch(0)) {
        if (state_->has_model()) {
            last = state_->outcome_of(batch);
            state_->measure(last, batch, classification, totals, label_errors, sums);
        } else {
            const LossCalls calls;
            step_context.begin(batch.size);
            step_context.observe(calls);
            state_->evaluate(step_context, batch);
            step_context.end();
        }
        evaluation.examples += batch.size;
    }
    const auto totals_on_host = totals.to_vector<float>();
    if (classification.value_or(false) && !std::isfinite(totals_on_host[0]))
        require_labels(state_->loss, last.output, last.target.dtype(), label_errors);
    std::vector<io::HostArray> metric_states;
    for (const NamedMetric& named_metric : state_->metrics)
        for (const auto& [name, tensor] : named_metric.metric->state()) metric_states.push_back(io::to_host(tensor));
    append_metrics(evaluation, "", *state_, classification.value_or(false), totals_on_host, sums,
                   sums.values().to_vector<float>(), metric_states);
    return evaluation;
}

Tensor Trainer::predict(const data::DatasetRef& dataset, const EvaluateOptions& options) {
    require_batch("predict", options.batch);
    if (!state_->has_model() && !state_->predict)
        throw ValueError("Trainer::predict: expected a trainer with Parts::predict, got one without");
    const EvaluationMode mode(state_->modules);
    const NoGrad no_grad;
    std::vector<Tensor> outputs;
    data::Loader loader(
        examples_of(dataset, "Trainer::predict"),
        {.batch = options.batch, .transform = options.transform, .collate = options.collate, .device = state_->device});
    for (const data::Batch& batch : loader.epoch(0))
        outputs.push_back(state_->has_model() ? state_->output_of(batch) : state_->predict(batch));
    return concat(outputs, 0);
}

}  // namespace declivity::train
