#include "fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "interrupt.hpp"
#include "nn/unregistered_calls.hpp"
#include "non_finite.hpp"
#include "runtime/capture.hpp"

namespace declivity::train {
namespace {

// Number of batches between two checks of the device. The host may run ahead by twice as many.
constexpr std::int64_t kReportEvery = 20;

/// Compares exact types: a function that wraps one of these losses is not equivalent.
template <class... Losses>
bool is_one_of(const std::type_info& type) {
    return ((type == typeid(Losses)) || ...);
}
bool is_of_library(const Loss& loss) {
    return is_one_of<nn::CrossEntropyLoss, nn::MSELoss, nn::BCEWithLogitsLoss, nn::NLLLoss, nn::MultiMarginLoss,
                     nn::BCELoss, nn::MultiLabelSoftMarginLoss, nn::MultiLabelMarginLoss, nn::SoftMarginLoss,
                     nn::HingeEmbeddingLoss, nn::L1Loss, nn::SmoothL1Loss, nn::HuberLoss, nn::KLDivLoss,
                     nn::PoissonNLLLoss>(loss.target_type());
}

void check(const FitOptions& options, const Trainer::State& state) {
    if (options.epochs < 0)
        throw ValueError(fmt::format("Trainer::fit: expected epochs of at least 0, got {}", options.epochs));
    if (options.batch < 1)
        throw ValueError(fmt::format("Trainer::fit: expected a batch of at least 1, got {}", options.batch));
    if (!(options.clip_norm >= 0))
        throw ValueError(
            fmt::format("Trainer::fit: expected a clip_norm above 0, or 0 for no clipping, got {}", options.clip_norm));
    if (options.accumulate < 1)
        throw ValueError(fmt::format("Trainer::fit: expected accumulate, batches a step, of at least 1, got {}",
                                     options.accumulate));
    if (!state.has_model() && (options.accumulate != 1 || options.clip_norm != 0))
        throw ValueError(
            "Trainer::fit: expected accumulate and clip_norm only with a model and a loss; a user-defined step "
            "accumulates and clips gradients itself");
    for (const auto& callback : options.callbacks)
        if (!callback) throw ValueError("Trainer::fit: expected callbacks, got a null pointer among them");
}

}  // namespace

FitScope::FitScope(Trainer::State& state, const FitOptions& options) : state_(state) {
    check(options, state);
    if (state.fitting.exchange(true))
        throw ValueError(
            "Trainer::fit: expected a trainer that is not fitting, got one that is, in a callback's call or another "
            "thread");
    try {
        state.guard.fill_(0);
        state.label_errors.fill_(0);
        for (const auto& [name, optimizer] : state.optimizers) optimizer.set_guard(state.guard);
    } catch (...) {
        state.fitting = false;
        throw;
    }
}

FitScope::~FitScope() {
    try {
        for (const auto& [name, optimizer] : state_.optimizers) optimizer.set_guard({});
        state_.guard.fill_(0);
    } catch (...) {  // the device is lost
    }
    state_.fitting = false;
}

Fit::Fit(Trainer& trainer, Trainer::State& state, const data::Dataset& train,
         const std::vector<NamedDataset>& validation, const FitOptions& options)
    : trainer_(trainer),
      state_(state),
      validation_(validation),
      options_(options),
      capture_(options.capture ? options.capture : options.record),
      scope_(state, options),
      loader_(train, {.batch = options.batch,
                      .shuffle = options.shuffle && !options.sampler,
                      .seed = options.seed,
                      .transform = options.train_transform,
                      .collate = options.collate,
                      .sampler = options.sampler,
                      .threads = options.loader_threads,
                      .device = state.device}),
      step_context_(state, UserStep::Purpose::train, state.sums),
      step_(make_captured(!state.has_model()        ? &Fit::custom_step
                          : options.accumulate == 1 ? &Fit::model_step
                                                    : &Fit::add_gradients)),
      apply_([this](const std::vector<Tensor>&) { return apply_gradients(), std::vector<Tensor>{}; },
             {.when_refused = WhenRefused::run, .warmup_captures = 2, .device = state.device}),
      begin_([this](const std::vector<Tensor>&) { return begin_group(), std::vector<Tensor>{}; },
             {.when_refused = WhenRefused::run, .device = state.device}),
      save_([this](const std::vector<Tensor>&) { return rollback_->save(), std::vector<Tensor>{}; },
            {.when_refused = WhenRefused::run, .device = state.device}),
      bar_(options.quiet) {
    std::set<std::string> names{"train"};
    for (const auto& [name, set] : validation)
        if (name.empty() || name.find_first_of(",\n\"") != std::string::npos || !names.insert(name).second)
            throw ValueError(
                fmt::format("Trainer::fit: expected names of validation sets, without commas, each once and "
                            "none of them 'train', got '{}'",
                            name));
    if (!state.has_model() && !state.evaluate && !validation.empty())
        throw ValueError("Trainer::fit: expected a trainer with Parts::evaluate for validation sets, got one without");
    const Trainer::State::Run run{options.seed, options.batch, train.size(), options.accumulate, options.shuffle};
    if (state_.progress.batch > 0 && !(run == state_.run))
        throw ValueError(fmt::format(
            "Trainer::fit: the training is in the middle of an epoch of {} examples in batches of {}, "
            "seed {}, {} batches a step; expected to continue with the same, got {} examples, batch {}, seed "
            "{}, {} a step",
            state_.run.examples, state_.run.batch, state_.run.seed, state_.run.accumulate, run.examples, run.batch,
            run.seed, run.accumulate));
    state_.run = run;
    state_.validation_sets.clear();
    for (const auto& [name, set] : validation) state_.validation_sets.push_back(name);
    state_.stop = false;
    state_.replays = {};
    state_.require_finite = [this] { require_finite(); };
}

CapturedStep Fit::make_captured(void (Fit::*commands)(const data::Batch&)) {
    return CapturedStep(
        [this, commands](const std::vector<Tensor>& tensors) {
            (this->*commands)(current_->with(tensors));
            return std::vector<Tensor>{};
        },
        // The effects of parameter hooks are unknown.
        {.when_refused = WhenRefused::run,
         .warmup_captures = 2,
         .device = state_.device,
         .hooks = capture_.value_or(false)});
}

bool Fit::ended() const { return state_.stop || detail::InterruptGuard::interrupted(); }

bool Fit::run() {
    const detail::InterruptGuard interrupt;
    std::vector<const nn::Module*> trained;
    for (const auto& [name, module] : state_.modules) trained.push_back(&module);
    const nn::detail::RefuseUnregisteredCalls refuse(trained);
    if (options_.epochs > 0 && state_.progress.epoch >= options_.epochs)
        bar_.print_line(
            fmt::format("nothing to do: {} of {} epochs are complete (FitOptions::epochs counts those of earlier fits "
                        "and of checkpoints)",
                        state_.progress.epoch, options_.epochs));
    state_.planned_steps = options_.epochs * ((loader_.batches() + options_.accumulate - 1) / options_.accumulate);
    for (const auto& callback : options_.callbacks) callback->on_begin(trainer_);
    state_.set_training(true);
    if (const std::int64_t remaining = loader_.batches() % options_.accumulate;
        options_.accumulate > 1 && remaining > 0)
        bar_.print_line(fmt::format("{} batches in steps of {}: the last step of an epoch takes {}", loader_.batches(),
                                    options_.accumulate, remaining));
    while (state_.progress.epoch < options_.epochs && !ended()) run_epoch();
    for (const auto& callback : options_.callbacks) callback->on_end(trainer_);
    if (detail::InterruptGuard::interrupted())
        bar_.print_line(
            fmt::format("interrupted in epoch {} after step {}", state_.progress.epoch + 1, state_.progress.step));
    return state_.progress.epoch >= options_.epochs && !detail::InterruptGuard::interrupted();
}

void Fit::begin_epoch() {
    const Progress& progress = state_.progress;
    if (progress.batch == 0) {
        state_.totals.fill_(0);
        state_.sums.reset();
        for (const NamedMetric& named_metric : state_.metrics) named_metric.metric->reset();
    }
    loader_.start(static_cast<std::uint64_t>(progress.epoch), progress.batch);
    bar_.start_epoch(progress.epoch + 1, options_.epochs, loader_.batches());
    const std::int64_t groups = (loader_.batches() + options_.accumulate - 1) / options_.accumulate;
    const std::int64_t done = (progress.batch + options_.accumulate - 1) / options_.accumulate;
    state_.planned_steps = progress.step - done + (options_.epochs - progress.epoch) * groups;
    steps_before_epoch_ = progress.step - done;
    generators_.clear();
    if (!rollback_) {
        std::vector<Tensor> buffers, always_changing{state_.totals, state_.sums.values()};
        for (const auto& [name, module] : state_.modules)
            for (const auto& [path, buffer] : module.named_buffers()) buffers.push_back(buffer);
        for (const NamedMetric& named_metric : state_.metrics)
            for (const auto& [path, tensor] : named_metric.metric->state()) always_changing.push_back(tensor);
        rollback_.emplace(buffers, always_changing, state_.guard);
    }
    step_.confirm();  // callbacks may have changed what a step does
    apply_.confirm();
}

void Fit::run_epoch() {
    Progress& progress = state_.progress;
    const auto start = std::chrono::steady_clock::now();
    begin_epoch();
    Report reports[2];  // one is copied while the other is filled
    std::size_t current = 0;
    std::int64_t next_report = progress.batch / kReportEvery + 1;
    while (progress.batch < loader_.batches() && !ended()) {
        step();
        if (progress.batch / kReportEvery < next_report) continue;
        next_report = progress.batch / kReportEvery + 1;
        Report& earlier = reports[1 - current];
        read(earlier);
        reports[current].request(state_);
        current = 1 - current;
    }
    Report last;
    last.request(state_);
    read(last);
    if (progress.batch < loader_.batches()) return;
    end_epoch(last, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void Fit::end_epoch(const Report& last, double seconds) {
    Progress& progress = state_.progress;
    EpochMetrics metrics;
    metrics.epoch = progress.epoch + 1;
    last.append(metrics, "train_", state_);
    for (const auto& [name, set] : validation_)
        for (const auto& [metric, value] :
             trainer_.evaluate(set, {.transform = options_.test_transform, .collate = options_.collate}))
            metrics.add(fmt::format("{}_{}", name, metric), value);
    for (const auto& [name, optimizer] : state_.optimizers)
        metrics.add(state_.optimizers.size() == 1 ? "learning_rate" : name + "_learning_rate",
                    optimizer.learning_rate());
    metrics.add("seconds", seconds);
    progress.batch = 0;
    ++progress.epoch;
    progress.history.push_back(metrics);
    std::vector<std::string> sets{"train"};
    for (const auto& [name, set] : validation_) sets.push_back(name);
    bar_.end_epoch(metrics, sets);
    for (const auto& callback : options_.callbacks) callback->after_epoch(trainer_, metrics);
}

data::Batch Fit::next_batch() {
    std::optional<data::Batch> batch = loader_.next();
    if (!batch) throw ValueError("Trainer::fit: expected as many batches as the sampler planned, got fewer");
    return std::move(*batch);
}

void Fit::step() {
    for (const auto& callback : options_.callbacks) callback->before_step(trainer_);
    const std::int64_t first = state_.progress.batch;
    try {
        run_step();
    } catch (...) {
        undo(first);
        throw;
    }
    ++state_.progress.step;
    for (const auto& callback : options_.callbacks) callback->after_step(trainer_);
}

void Fit::run_step() {
    saved_ = false;
    if (options_.accumulate > 1) return run_accumulated_step();
    const data::Batch batch = next_batch();
    save_for_rollback();
    run_batch(batch);
}

void Fit::save_for_rollback() {
    if (capture_.value_or(true)) save_({});
    else rollback_->save();
    saved_ = true;
}

void Fit::run_batch(const data::Batch& batch) {
    step_context_.begin(batch.size);
    save_generators();
    call(step_, batch);
    ++state_.progress.batch;
    ++batches_;
}

void Fit::save_generators() {
    Generators current{state_.progress.batch, random_state(state_.device), {}};
    for (const auto& [name, generator] : state_.generators)
        current.named.emplace_back(generator.seed(), generator.position());
    generators_.push_back(std::move(current));
    // Limits how far the device may be behind.
    if (std::ssize(generators_) > 4 * std::max(kReportEvery, options_.accumulate)) generators_.pop_front();
}

void Fit::restore_generators(std::int64_t batch) {
    const auto found = std::ranges::find(generators_, batch, &Generators::batch);
    if (found == generators_.end()) return;
    set_random_state(state_.device, found->device);
    for (std::size_t i = 0; i < state_.generators.size(); ++i)
        state_.generators[i].generator.manual_seed(found->named[i].first).set_position(found->named[i].second);
}

void Fit::roll_back(std::int64_t first, bool started) {
    state_.progress.batch = first;
    state_.progress.step = steps_before_epoch_ + first / options_.accumulate;
    if (!started) return;
    restore_generators(first);
    rollback_->restore();
}

void Fit::undo(std::int64_t first) noexcept {
    try {
        const std::int32_t failed_batch = state_.guard.to_vector<std::int32_t>()[0];
        // The guard may have recorded an earlier step.
        if (failed_batch > 0) roll_back(step_begin(epoch_batch(failed_batch)), true);
        else roll_back(first, saved_);
    } catch (...) {  // the device is lost: at least the counts are right
        state_.progress.batch = first;
        state_.progress.step = steps_before_epoch_ + first / options_.accumulate;
    }
}

void Fit::call(CapturedStep& captured, const data::Batch& batch) {
    current_ = &batch;
    if (capture_.value_or(true)) {
        captured(batch.tensors());
        state_.replays.replayed = step_.replayed();
        if (state_.replays.refused.empty()) state_.replays.refused = step_.refused();
    } else {
        if (!state_.has_model()) custom_step(batch);
        else if (options_.accumulate == 1) model_step(batch);
        else add_gradients(batch);
        state_.replays.refused = "FitOptions::capture is false";
    }
    current_ = nullptr;
}

void Fit::run_accumulated_step() {
    const std::int64_t first = state_.progress.batch;
    const std::int64_t end = std::min(first + options_.accumulate, loader_.batches());
    if (!weights_.defined()) {
        weights_ = zeros({}, {DType::f32, state_.device});
        for (std::size_t group = 0; group < trainer_.optimizer().groups(); ++group)
            for (const Tensor& parameter : trainer_.optimizer().parameters(group))
                sums_.push_back(
                    {parameter, zeros(parameter.shape(), {compute_type(parameter.dtype()), state_.device})});
    }
    save_for_rollback();
    // Replayed batches have gradients for the same parameters each time; otherwise each step determines them.
    if (!capture_.value_or(true) || !step_.refused().empty())
        for (Accumulated& sum : sums_) sum.used = false;
    const bool may_capture = capture_.value_or(true);
    if (may_capture) begin_({});
    else begin_group();
    for (std::int64_t i = first; i < end; ++i) run_batch(next_batch());
    if (may_capture && step_.refused().empty()) apply_({});
    else apply_gradients();
}

void Fit::begin_group() {
    const NoGrad no_grad;
    trainer_.optimizer().zero_grad();
    for (Accumulated& accumulated : sums_) accumulated.sum.zero_();
    weights_.zero_();
}

void Fit::add_gradients(const data::Batch& batch) {
    refuse_unless_capture_safe();
    trainer_.optimizer().zero_grad();
    const Trainer::State::Outcome outcome = state_.outcome_of(batch);
    const LossWeight& weight = outcome.weight;
    check_loss(outcome.loss, weight, state_.guard, false);
    outcome.loss.backward();
    const NoGrad no_grad;
    loss_is_sum_ = weight.is_sum;
    for (Accumulated& accumulated : sums_) {
        Tensor gradient = accumulated.parameter.grad();
        if (!gradient.defined()) continue;
        gradient = gradient.detach().to(accumulated.sum.dtype());
        if (!weight.is_sum && !weight.tensor.defined()) {
            gradient = gradient * weight.count;
        } else if (!weight.is_sum) {  // gradients of an empty mean may be NaN, and have weight 0
            const Tensor factor = weight.tensor.to(gradient.dtype());
            gradient = where(factor == 0, 0, gradient * factor);
        }
        accumulated.sum.add_(gradient);
        accumulated.used = true;
    }
    weights_.add_(weight.on(state_.device));
    state_.measure(outcome, batch, state_.classification, state_.totals, state_.label_errors, state_.sums);
}

void Fit::apply_gradients() {
    if (Capture* const capture = Capture::current())
        if (const std::string why = not_capture_safe(); !why.empty()) capture->refuse(why);
    const NoGrad no_grad;
    const Tensor divisor = where(weights_ == 0, 1, weights_);
    for (Accumulated& accumulated : sums_) {
        if (!accumulated.used) continue;
        if (!loss_is_sum_) accumulated.sum.div_(divisor.to(accumulated.sum.dtype()));
        accumulated.parameter.set_grad(accumulated.sum.to(accumulated.parameter.dtype()));
    }
    ops::skip_weightless(weights_.view(), state_.guard.view());
    update();
    ops::end_skip(state_.guard.view());
}

void Fit::update() {
    const double clip_norm = capture_guard([this] { return options_.clip_norm; });
    if (clip_norm > 0) optim::clip_grad_norm(state_.modules[0].module.parameters(), clip_norm);
    trainer_.optimizer().step();
}

void Fit::model_step(const data::Batch& batch) {
    refuse_unless_capture_safe();
    trainer_.optimizer().zero_grad();
    const Trainer::State::Outcome outcome = state_.outcome_of(batch);
    check_loss(outcome.loss, outcome.weight, state_.guard, true);
    outcome.loss.backward();
    update();
    const NoGrad no_grad;
    state_.measure(outcome, batch, state_.classification, state_.totals, state_.label_errors, state_.sums);
}

void Fit::custom_step(const data::Batch& batch) {
    refuse_unless_capture_safe();
    if (!state_.classification) state_.classification = false;
    const LossCalls calls;
    step_context_.observe(calls);
    state_.step(step_context_, batch);
    step_context_.end();
}

void Fit::refuse_unless_capture_safe() const {
    (void)capture_guard([this] { return current_ != nullptr ? current_->size : -1; });
    if (Capture* const capture = Capture::current())
        if (const std::string why = not_capture_safe(); !why.empty()) capture->refuse(why);
}

/// Reason why a replay may differ from a call of the step; empty if every part is declared capture-safe.
std::string Fit::not_capture_safe() const {
    if (capture_) return {};  // declared by the program
    if (!state_.has_model()) return "the step is a user-defined function (FitOptions::capture)";
    if (const std::string module = state_.modules[0].module.not_capture_safe(); !module.empty())
        return fmt::format("{} is not declared capture-safe (nn::Module::capture_safe, FitOptions::capture)", module);
    if (!is_of_library(state_.loss)) return "the loss is a user-defined function (FitOptions::capture)";
    const optim::Optimizer& optimizer = state_.optimizers[0].optimizer;
    if (optimizer.capture_safe() != typeid(optimizer))
        return "the optimizer is not declared capture-safe (Optimizer::capture_safe, FitOptions::capture)";
    for (const NamedMetric& named_metric : state_.metrics) {
        const Metric& metric = *named_metric.metric;
        if (named_metric.of || metric.capture_safe() != typeid(metric))
            return fmt::format(
                "the metric '{}' is not declared capture-safe (Metric::capture_safe, "
                "FitOptions::capture)",
                named_metric.name);
    }
    return {};
}

void Fit::read(Report& report) {
    if (!report.requested()) return;
    report.wait();
    const auto guard = report.guard();
    if (guard[0] > 0)
        throw_non_finite(guard[0], report.label_errors()[1] == guard[0] ? report.label_errors() : LabelErrors{});
    Metrics metrics;
    report.append(metrics, "", state_);
    bar_.update(state_.progress.batch, metrics);
}

void Fit::require_finite() {
    const std::int32_t failed_batch = state_.guard.to_vector<std::int32_t>()[0];
    if (failed_batch <= 0) return;
    LabelErrors label_errors{};
    state_.label_errors.copy_to(std::span<std::int64_t>(label_errors));
    throw_non_finite(failed_batch, label_errors[1] == failed_batch ? label_errors : LabelErrors{});
}

/// @param failed_batch number of the batch in this fit, from 1; in the current epoch, since the guard is read at the
/// end of each
/// @param label_errors statistics of its labels
void Fit::throw_non_finite(std::int64_t failed_batch, const LabelErrors& label_errors) {
    const std::int64_t last_batch = epoch_batch(failed_batch), first = step_begin(last_batch);
    const std::int64_t step = steps_before_epoch_ + last_batch / options_.accumulate + 1;
    const auto roll_back_step = [&] {
        try {
            roll_back(first, true);
        } catch (...) {  // the device is lost
        }
    };
    try {
        // Accumulated gradients are checked once, after the last batch of a step.
        for (std::int64_t batch = first; batch <= last_batch; ++batch) {
            loader_.start(static_cast<std::uint64_t>(state_.progress.epoch), batch);
            const data::Batch replayed_batch = next_batch();
            restore_generators(batch);
            throw_loss_not_finite(state_, replayed_batch, label_errors, step, state_.progress.epoch + 1,
                                  batch == last_batch);
        }
    } catch (...) {
        roll_back_step();
        throw;
    }
    throw Error("Trainer::fit: expected to find a step that was not finite");
}

}  // namespace declivity::train
