#include "fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <declivity/nn/loss.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "interrupt.hpp"
#include "nn/unregistered_calls.hpp"
#include "non_finite.hpp"
#include "runtime/recorder.hpp"

namespace declivity::train {
namespace {

// Batches between two looks at the device. The host may run ahead by twice as many.
constexpr std::int64_t kReportEvery = 20;

/// By the very type: a loss that calls one of these and does more is another.
bool is_of_library(const Loss& loss) {
    const std::type_info& type = loss.target_type();
    return type == typeid(nn::CrossEntropyLoss) || type == typeid(nn::MSELoss) || type == typeid(nn::BCEWithLogitsLoss);
}

}  // namespace

const FitOptions& checked(const FitOptions& options, const Trainer::State& state) {
    if (state.fitting)
        throw ValueError(
            "Trainer::fit: wants a trainer that is not fitting, got one that is, in a callback's call or another "
            "thread");
    if (options.epochs < 0)
        throw ValueError(fmt::format("Trainer::fit: wants epochs of at least 0, got {}", options.epochs));
    if (options.batch < 1)
        throw ValueError(fmt::format("Trainer::fit: wants a batch of at least 1, got {}", options.batch));
    if (!(options.clip_norm >= 0))
        throw ValueError(
            fmt::format("Trainer::fit: wants a clip_norm above 0, or 0 for no clipping, got {}", options.clip_norm));
    if (options.accumulate < 1)
        throw ValueError(
            fmt::format("Trainer::fit: wants accumulate, batches a step, of at least 1, got {}", options.accumulate));
    if (!state.of_model() && (options.accumulate != 1 || options.clip_norm != 0))
        throw ValueError(
            "Trainer::fit: wants accumulate and clip_norm with a model and a loss alone; a step of the program's own "
            "adds gradients up and clips them by itself");
    for (const auto& callback : options.callbacks)
        if (!callback) throw ValueError("Trainer::fit: wants callbacks, got a null pointer among them");
    return options;
}

Fit::Fit(Trainer& trainer, Trainer::State& state, const data::Dataset& train,
         const std::vector<NamedDataset>& validation, const FitOptions& options)
    : trainer_(trainer),
      state_(state),
      validation_(validation),
      options_(options),
      loader_(train, {.batch = options.batch,
                      .shuffle = options.shuffle && !options.sampler,
                      .seed = options.seed,
                      .transform = options.train_transform,
                      .collate = options.collate,
                      .sampler = options.sampler,
                      .threads = options.loader_threads,
                      .device = state.device}),
      own_(state, StepOf::Purpose::train, state.sums),
      step_(recorded(!state.of_model()         ? &Fit::own_step
                     : options.accumulate == 1 ? &Fit::model_step
                                               : &Fit::add_gradients)),
      apply_([this](const std::vector<Tensor>&) { return apply_gradients(), std::vector<Tensor>{}; },
             {.when_refused = WhenRefused::run, .recordings = 2, .device = state.device}),
      begin_([this](const std::vector<Tensor>&) { return begin_group(), std::vector<Tensor>{}; },
             {.when_refused = WhenRefused::run, .device = state.device}),
      bar_(options.quiet) {
    std::set<std::string> names{"train"};
    for (const auto& [name, set] : validation)
        if (name.empty() || name.find_first_of(",\n\"") != std::string::npos || !names.insert(name).second)
            throw ValueError(
                fmt::format("Trainer::fit: wants names of validation sets, without commas, each once and "
                            "none of them 'train', got '{}'",
                            name));
    if (!state.of_model() && !state.evaluate && !validation.empty())
        throw ValueError("Trainer::fit: wants, for validation sets, a trainer with Parts::evaluate, got one without");
    const Trainer::State::Run run{options.seed, options.batch, train.size(), options.accumulate, options.shuffle};
    if (state_.progress.batch > 0 && !(run == state_.run))
        throw ValueError(fmt::format(
            "Trainer::fit: the checkpoint stands in the middle of an epoch of {} examples in batches of {}, "
            "seed {}, {} batches a step; wants to go on with the same, got {} examples, batch {}, seed {}, {} a step",
            state_.run.examples, state_.run.batch, state_.run.seed, state_.run.accumulate, run.examples, run.batch,
            run.seed, run.accumulate));
    state_.run = run;
    state_.validation_sets.clear();
    for (const auto& [name, set] : validation) state_.validation_sets.push_back(name);
    state_.stop = false;
    state_.replays = {};
    state_.guard.fill_(0);
    state_.noted.fill_(0);
    if (state_.fitting.exchange(true)) (void)checked(options, state_);  // another thread was faster
}

Recorded Fit::recorded(void (Fit::*commands)(const data::Batch&)) {
    return Recorded(
        [this, commands](const std::vector<Tensor>& tensors) {
            (this->*commands)(current_->with(tensors));
            return std::vector<Tensor>{};
        },
        // Nobody has said of hooks of parameters what they do.
        {.when_refused = WhenRefused::run,
         .recordings = 2,
         .device = state_.device,
         .hooks = options_.record.value_or(false)});
}

bool Fit::ended() const { return state_.stop || detail::InterruptGuard::interrupted(); }

bool Fit::run() {
    const detail::InterruptGuard interrupt;
    std::vector<const nn::Module*> trained;
    for (const auto& [name, module] : state_.modules) trained.push_back(&module);
    const nn::detail::RefuseUnregisteredCalls refuse(trained);
    state_.planned_steps = options_.epochs * ((loader_.batches() + options_.accumulate - 1) / options_.accumulate);
    for (const auto& callback : options_.callbacks) callback->on_begin(trainer_);
    state_.set_training(true);
    if (const std::int64_t left = loader_.batches() % options_.accumulate; options_.accumulate > 1 && left > 0)
        bar_.note(fmt::format("{} batches in steps of {}: the last step of an epoch takes {}", loader_.batches(),
                              options_.accumulate, left));
    while (state_.progress.epoch < options_.epochs && !ended()) run_epoch();
    for (const auto& callback : options_.callbacks) callback->on_end(trainer_);
    if (detail::InterruptGuard::interrupted())
        bar_.note(
            fmt::format("interrupted in epoch {} after step {}", state_.progress.epoch + 1, state_.progress.step));
    return state_.progress.epoch >= options_.epochs && !detail::InterruptGuard::interrupted();
}

void Fit::begin_epoch() {
    const Progress& progress = state_.progress;
    if (progress.batch == 0) {
        state_.totals.fill_(0);
        state_.sums.reset();
        for (const NamedMetric& one : state_.metrics) one.metric->reset();
    }
    loader_.start(static_cast<std::uint64_t>(progress.epoch), progress.batch);
    bar_.start_epoch(progress.epoch + 1, options_.epochs, loader_.batches());
    const std::int64_t groups = (loader_.batches() + options_.accumulate - 1) / options_.accumulate;
    const std::int64_t done = (progress.batch + options_.accumulate - 1) / options_.accumulate;
    state_.planned_steps = progress.step - done + (options_.epochs - progress.epoch) * groups;
    steps_before_epoch_ = progress.step - done;
    examples_ = 0;
    for (std::int64_t batch = 0; batch < progress.batch; ++batch) examples_ += loader_.examples(batch);
    step_.confirm();  // callbacks may have changed what a step does
    apply_.confirm();
}

void Fit::run_epoch() {
    Progress& progress = state_.progress;
    const auto start = std::chrono::steady_clock::now();
    begin_epoch();
    Report reports[2];  // one on its way while the other is filled
    std::size_t current = 0;
    std::int64_t next_report = progress.batch / kReportEvery + 1;
    while (progress.batch < loader_.batches() && !ended()) {
        step();
        if (progress.batch / kReportEvery < next_report) continue;
        next_report = progress.batch / kReportEvery + 1;
        Report& earlier = reports[1 - current];
        read(earlier);
        reports[current].ask(state_, examples_);
        current = 1 - current;
    }
    Report last;
    last.ask(state_, examples_);
    read(last);
    if (progress.batch < loader_.batches()) return;
    end_epoch(last, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void Fit::end_epoch(const Report& last, double seconds) {
    Progress& progress = state_.progress;
    EpochFigures figures;
    figures.epoch = progress.epoch + 1;
    last.append(figures, "train_", state_);
    for (const auto& [name, set] : validation_)
        for (const auto& [figure, value] :
             trainer_.evaluate(set, {.transform = options_.test_transform, .collate = options_.collate}))
            figures.add(fmt::format("{}_{}", name, figure), value);
    for (const auto& [name, optimizer] : state_.optimizers)
        figures.add(state_.optimizers.size() == 1 ? "learning_rate" : name + "_learning_rate",
                    optimizer.learning_rate());
    figures.add("seconds", seconds);
    progress.batch = 0;
    ++progress.epoch;
    progress.history.push_back(figures);
    std::vector<std::string> sets{"train"};
    for (const auto& [name, set] : validation_) sets.push_back(name);
    bar_.end_epoch(figures, sets);
    for (const auto& callback : options_.callbacks) callback->after_epoch(trainer_, figures);
}

data::Batch Fit::next_batch() {
    std::optional<data::Batch> batch = loader_.next();
    if (!batch) throw ValueError("Trainer::fit: wants as many batches as the sampler planned, got fewer");
    return std::move(*batch);
}

void Fit::step() {
    for (const auto& callback : options_.callbacks) callback->before_step(trainer_);
    if (options_.accumulate == 1) one_batch(next_batch());
    else accumulated();
    ++state_.progress.step;
    for (const auto& callback : options_.callbacks) callback->after_step(trainer_);
}

void Fit::one_batch(const data::Batch& batch) {
    own_.begin(batch.size);
    call(step_, batch);
    ++state_.progress.batch;
    ++batches_;
    examples_ += batch.size;
}

void Fit::call(Recorded& recorded, const data::Batch& batch) {
    current_ = &batch;
    if (options_.record.value_or(true)) {
        recorded(batch.tensors());
        state_.replays.replayed = step_.replayed();
        if (state_.replays.refused.empty()) state_.replays.refused = step_.refused();
    } else {
        if (!state_.of_model()) own_step(batch);
        else if (options_.accumulate == 1) model_step(batch);
        else add_gradients(batch);
        state_.replays.refused = "FitOptions::record is false";
    }
    current_ = nullptr;
}

void Fit::accumulated() {
    const std::int64_t first = state_.progress.batch;
    const std::int64_t end = std::min(first + options_.accumulate, loader_.batches());
    std::int64_t examples = 0;
    for (std::int64_t batch = first; batch < end; ++batch) examples += loader_.examples(batch);
    if (!weight_.defined()) {
        weight_ = zeros({}, {DType::f32, state_.device});
        for (std::size_t group = 0; group < trainer_.optimizer().groups(); ++group)
            for (const Tensor& parameter : trainer_.optimizer().parameters(group))
                sums_.push_back(
                    {parameter, zeros(parameter.shape(), {compute_type(parameter.dtype()), state_.device})});
    }
    const bool may_record = options_.record.value_or(true);
    if (may_record) begin_({});
    else begin_group();
    for (std::int64_t i = first; i < end; ++i) {
        const data::Batch batch = next_batch();
        const double weight = static_cast<double>(batch.size) / static_cast<double>(examples);
        if (weight != weight_now_) weight_.fill_(weight);
        weight_now_ = weight;
        one_batch(batch);
    }
    if (may_record) apply_({});
    else apply_gradients();
}

void Fit::begin_group() {
    const NoGrad no_grad;
    trainer_.optimizer().zero_grad();
    for (Accumulated& one : sums_) one.sum.zero_();
}

void Fit::add_gradients(const data::Batch& batch) {
    refuse_where_not_replayable();
    trainer_.optimizer().zero_grad();
    const Trainer::State::Outcome outcome = state_.outcome_of(batch);
    require_loss(outcome.loss, "Trainer");
    check_loss(outcome.loss, state_.guard);
    (outcome.loss * weight_.to(outcome.loss.dtype())).backward();
    const NoGrad no_grad;
    for (Accumulated& one : sums_) {
        const Tensor gradient = one.parameter.grad();
        if (!gradient.defined()) continue;
        one.sum.add_(gradient.detach().to(one.sum.dtype()));
        one.used = true;
    }
    state_.measure(outcome, batch, state_.classification, state_.totals, state_.noted, state_.sums);
}

void Fit::apply_gradients() {
    if (Recorder* const recorder = Recorder::current())
        if (const std::string why = not_replayable(); !why.empty()) recorder->refuse(why);
    const NoGrad no_grad;
    for (Accumulated& one : sums_)
        if (one.used) one.parameter.set_grad(one.sum.to(one.parameter.dtype()));
    update();
}

void Fit::update() {
    const double clip_norm = record_guard([this] { return options_.clip_norm; });
    if (clip_norm > 0) optim::clip_grad_norm(state_.modules[0].module.parameters(), clip_norm);
    trainer_.optimizer().step();
}

void Fit::model_step(const data::Batch& batch) {
    refuse_where_not_replayable();
    trainer_.optimizer().zero_grad();
    const Trainer::State::Outcome outcome = state_.outcome_of(batch);
    require_loss(outcome.loss, "Trainer");
    check_loss(outcome.loss, state_.guard);
    outcome.loss.backward();
    update();
    const NoGrad no_grad;
    state_.measure(outcome, batch, state_.classification, state_.totals, state_.noted, state_.sums);
}

void Fit::own_step(const data::Batch& batch) {
    refuse_where_not_replayable();
    if (!state_.classification) state_.classification = false;
    state_.step(own_, batch);
    own_.end();
}

void Fit::refuse_where_not_replayable() const {
    (void)record_guard([this] { return current_ != nullptr ? current_->size : -1; });
    if (Recorder* const recorder = Recorder::current())
        if (const std::string why = not_replayable(); !why.empty()) recorder->refuse(why);
}

/// Why a replay might not be what a call of the step is; empty where every part of it says that it is.
std::string Fit::not_replayable() const {
    if (options_.record) return {};  // the program says so
    if (!state_.of_model()) return "the step is a function of the program's own (FitOptions::record)";
    if (const std::string module = state_.modules[0].module.not_replayable(); !module.empty())
        return fmt::format("{} does not say that it is replayable (nn::Module::replayable, FitOptions::record)",
                           module);
    if (!is_of_library(state_.loss)) return "the loss is a function of the program's own (FitOptions::record)";
    const optim::Optimizer& optimizer = state_.optimizers[0].optimizer;
    if (optimizer.replayable() != typeid(optimizer))
        return "the optimizer does not say that it is replayable (Optimizer::replayable, FitOptions::record)";
    for (const NamedMetric& one : state_.metrics) {
        const Metric& metric = *one.metric;
        if (one.of || metric.replayable() != typeid(metric))
            return fmt::format(
                "the metric '{}' does not say that it is replayable (Metric::replayable, "
                "FitOptions::record)",
                one.name);
    }
    return {};
}

void Fit::read(Report& report) {
    if (!report.asked()) return;
    report.wait();
    const auto guard = report.guard();
    if (guard[0] != 0) throw_non_finite(guard[0], report.noted()[1] == guard[0] ? report.noted() : NotedLabels{});
    Figures figures;
    report.append(figures, "", state_);
    bar_.update(state_.progress.batch, figures);
}

/// @param number of the batch in this fit, from 1; it is one of the present epoch, since each is read at its end
/// @param noted of its labels
void Fit::throw_non_finite(std::int64_t number, const NotedLabels& noted) {
    const std::int64_t position = state_.progress.batch - (batches_ - (number - 1));
    const std::int64_t step = steps_before_epoch_ + position / options_.accumulate + 1;
    loader_.start(static_cast<std::uint64_t>(state_.progress.epoch), position);
    throw_loss_not_finite(state_, next_batch(), noted, step, state_.progress.epoch + 1);
}

}  // namespace declivity::train
