#include <declivity/train/trainer.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <declivity/nn/loss.hpp>
#include <declivity/ops/classification.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <declivity/tensor/record.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "interrupt.hpp"
#include "non_finite.hpp"
#include "progress_bar.hpp"
#include "trainer_state.hpp"
#include "runtime/recorder.hpp"

namespace declivity::train {
namespace {

// Steps between two looks at the device. The host may run ahead by twice as many.
constexpr std::int64_t kReportEvery = 20;

Device device_of(const nn::Module& model) {
    const auto parameters = model.parameters();
    return parameters.empty() ? default_device() : parameters[0].device();
}

/// Numbers on their way from the device: asked for at one report, read at the next, when they have long arrived.
struct Report {
    std::array<float, 2> totals{};
    std::array<std::int32_t, 2> guard{};
    NotedLabels noted{};
    Event totals_read, guard_read, noted_read;

    void ask(const Tensor& totals_on_device, const Tensor& guard_on_device, const Tensor& noted_on_device) {
        noted_read = download(noted_on_device.view().buffer, 0, std::as_writable_bytes(std::span(noted)));
        guard_read = download(guard_on_device.view().buffer, 0, std::as_writable_bytes(std::span(guard)));
        totals_read = download(totals_on_device.view().buffer, 0, std::as_writable_bytes(std::span(totals)));
    }
    /// The events must not outlive an exception: the device would write into freed memory.
    ~Report() {
        try {
            wait();
        } catch (...) {
        }
    }
    void wait() const {
        noted_read.wait();
        guard_read.wait();
        totals_read.wait();
    }
};

void add_to_totals(const Tensor& output, const Tensor& labels, const Tensor& loss, const Tensor& totals,
                   const Tensor& noted) {
    ops::add_classification(output.dense_view(), labels.dense_view(), loss.view(), totals.view(), noted.view());
}

/// By the very type: a loss that calls one of these and does more is another.
bool is_of_library(const Loss& loss) {
    const std::type_info& type = loss.target_type();
    return type == typeid(nn::CrossEntropyLoss) || type == typeid(nn::MSELoss) || type == typeid(nn::BCEWithLogitsLoss);
}

/// The model in evaluation mode, and back in the end.
class EvaluationMode {
  public:
    explicit EvaluationMode(nn::Module& model) : model_(model), before_(model.training()) { model_.eval(); }
    ~EvaluationMode() { model_.train(before_); }
    EvaluationMode(const EvaluationMode&) = delete;
    EvaluationMode& operator=(const EvaluationMode&) = delete;

  private:
    nn::Module& model_;
    bool before_;
};

}  // namespace

NonFiniteLoss::~NonFiniteLoss() = default;
Callback::~Callback() = default;

Trainer::State::State(nn::Module& network, optim::Optimizer& steps, Loss of)
    : model(network),
      optimizer(steps),
      loss(of ? std::move(of) : nn::CrossEntropyLoss()),
      device(device_of(network)),
      dtype(type_of(network)),
      totals(zeros({2}, {DType::f32, device})),
      guard(zeros({2}, {DType::i32, device})),
      noted(zeros({4}, {DType::i64, device})) {
    require_parameters_of(model, optimizer);
    optimizer.set_guard(guard);
}

Trainer::Trainer(nn::Module& model, optim::Optimizer& optimizer, Loss loss)
    : state_(std::make_unique<State>(model, optimizer, std::move(loss))) {}
Trainer::~Trainer() = default;

const Progress& Trainer::progress() const { return state_->progress; }
const Replays& Trainer::replays() const { return state_->replays; }
nn::Module& Trainer::model() const { return state_->model; }
optim::Optimizer& Trainer::optimizer() const { return state_->optimizer; }
void Trainer::stop() { state_->stop = true; }
std::int64_t Trainer::planned_steps() const { return state_->planned_steps; }

namespace {

void require_batch(std::string_view function, std::int64_t batch) {
    if (batch < 1) throw ValueError(fmt::format("Trainer::{}: wants a batch of at least 1, got {}", function, batch));
}

const FitOptions& checked(const FitOptions& options, const Trainer::State& state) {
    if (state.fitting)
        throw ValueError(
            "Trainer::fit: wants a trainer that is not fitting, got one that is, in a callback's call or another "
            "thread");
    if (options.epochs < 0)
        throw ValueError(fmt::format("Trainer::fit: wants epochs of at least 0, got {}", options.epochs));
    require_batch("fit", options.batch);
    if (!(options.clip_norm >= 0))
        throw ValueError(
            fmt::format("Trainer::fit: wants a clip_norm above 0, or 0 for no clipping, got {}", options.clip_norm));
    for (const auto& callback : options.callbacks)
        if (!callback) throw ValueError("Trainer::fit: wants callbacks, got a null pointer among them");
    return options;
}

/// One fit, from where the trainer stands.
class Fit {
  public:
    Fit(Trainer& trainer, Trainer::State& state, const data::Dataset& train, const data::Dataset* test,
        const FitOptions& options)
        : trainer_(trainer),
          state_(state),
          test_(test),
          options_(options),
          loader_(train, {.batch = options.batch,
                          .shuffle = options.shuffle,
                          .seed = options.seed,
                          .transform = options.train_transform,
                          .threads = options.loader_threads,
                          .device = state.device}),
          step_(
              [this](const std::vector<Tensor>& batch) { return commands(batch[0], batch[1]), std::vector<Tensor>{}; },
              // Nobody has said of hooks of parameters what they do.
              {.when_refused = WhenRefused::run,
               .recordings = 2,
               .device = state.device,
               .hooks = options.record.value_or(false)}),
          bar_(options.quiet) {
        const Trainer::State::Run run{options.seed, options.batch, train.size(), options.shuffle};
        if (state_.progress.batch > 0 && !(run == state_.run))
            throw ValueError(fmt::format(
                "Trainer::fit: the checkpoint stands in the middle of an epoch of {} examples in batches of {}, "
                "seed {}; wants to go on with the same, got {} examples, batch {}, seed {}",
                state_.run.examples, state_.run.batch, state_.run.seed, run.examples, run.batch, run.seed));
        state_.run = run;
        state_.planned_steps = options.epochs * loader_.batches();
        state_.stop = false;
        state_.replays = {};
        state_.guard.fill_(0);
        state_.noted.fill_(0);
        first_step_ = state_.progress.step;
        if (state_.fitting.exchange(true)) (void)checked(options, state_);  // another thread was faster
    }
    ~Fit() { state_.fitting = false; }
    Fit(const Fit&) = delete;
    Fit& operator=(const Fit&) = delete;

    bool run() {
        const detail::InterruptGuard interrupt;
        for (const auto& callback : options_.callbacks) callback->on_begin(trainer_);
        state_.model.train();
        while (state_.progress.epoch < options_.epochs && !ended()) run_epoch();
        for (const auto& callback : options_.callbacks) callback->on_end(trainer_);
        if (detail::InterruptGuard::interrupted())
            bar_.note(
                fmt::format("interrupted in epoch {} after step {}", state_.progress.epoch + 1, state_.progress.step));
        return state_.progress.epoch >= options_.epochs && !detail::InterruptGuard::interrupted();
    }

  private:
    [[nodiscard]] bool ended() const { return state_.stop || detail::InterruptGuard::interrupted(); }

    void run_epoch() {
        Progress& progress = state_.progress;
        bar_.start_epoch(progress.epoch + 1, options_.epochs, loader_.batches());
        const auto start = std::chrono::steady_clock::now();
        if (progress.batch == 0) state_.totals.fill_(0);
        loader_.start(static_cast<std::uint64_t>(progress.epoch), progress.batch);
        step_.confirm();    // callbacks may have changed what a step does
        Report reports[2];  // one on its way while the other is filled
        std::size_t current = 0;
        while (progress.batch < loader_.batches() && !ended()) {
            step(*loader_.next());
            if (progress.batch % kReportEvery != 0) continue;
            const Report& earlier = reports[1 - current];
            read(earlier);
            reports[current].ask(state_.totals, state_.guard, state_.noted);
            current = 1 - current;
        }
        Report last;
        last.ask(state_.totals, state_.guard, state_.noted);
        read(last);
        if (progress.batch < loader_.batches()) return;
        const double examples = static_cast<double>(loader_.dataset().size());
        EpochFigures figures{
            .epoch = progress.epoch + 1,
            .train_loss = last.totals[0] / examples,
            .train_accuracy = last.totals[1] / examples,
            .test_loss = NAN,
            .test_accuracy = NAN,
            .learning_rate = state_.optimizer.learning_rate(),
            .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
        if (test_ != nullptr) {
            const Evaluation evaluation = trainer_.evaluate(*test_, {.transform = options_.test_transform});
            figures.test_loss = evaluation.loss;
            figures.test_accuracy = evaluation.accuracy;
            progress.best_accuracy = std::max(progress.best_accuracy, evaluation.accuracy);
        }
        progress.batch = 0;
        ++progress.epoch;
        progress.history.push_back(figures);
        bar_.end_epoch(figures, test_ != nullptr);
        for (const auto& callback : options_.callbacks) callback->after_epoch(trainer_, figures);
    }

    void step(const data::Batch& batch) {
        for (const auto& callback : options_.callbacks) callback->before_step(trainer_);
        if (options_.record.value_or(true)) {
            step_(batch.tensors());
            state_.replays.replayed = step_.replayed();
            if (state_.replays.refused.empty()) state_.replays.refused = step_.refused();
        } else {
            commands(batch[0], batch[1]);
            state_.replays.refused = "FitOptions::record is false";
        }
        ++state_.progress.batch;
        ++state_.progress.step;
        for (const auto& callback : options_.callbacks) callback->after_step(trainer_);
    }

    /// What a step does on the device.
    void commands(const Tensor& features, const Tensor& labels) {
        if (Recorder* const recorder = Recorder::current())
            if (const std::string why = not_replayable(); !why.empty()) recorder->refuse(why);
        state_.optimizer.zero_grad();
        const Tensor output = outputs_of(state_.model, state_.dtype, features);
        const Tensor loss = state_.loss(output, labels);
        if (!loss.defined())
            throw ValueError("Trainer: wants a loss of one element, got an undefined tensor from the loss function");
        if (loss.numel() != 1)
            throw ShapeError(fmt::format("Trainer: wants a loss of one element, got {}", loss.shape().str()));
        ops::check_finite(loss.view(), state_.guard.view());
        loss.backward();
        const double clip_norm = record_guard([this] { return options_.clip_norm; });
        if (clip_norm > 0) optim::clip_grad_norm(state_.model.parameters(), clip_norm);
        state_.optimizer.step();
        const NoGrad no_grad;
        add_to_totals(output, labels, loss, state_.totals, state_.noted);
    }

    /// Why a replay might not be what a call of the step is; empty where every part of it says that it is.
    [[nodiscard]] std::string not_replayable() const {
        if (options_.record) return {};  // the program says so
        if (const std::string module = state_.model.not_replayable(); !module.empty())
            return fmt::format("{} does not say that it is replayable (nn::Module::replayable, FitOptions::record)",
                               module);
        if (!is_of_library(state_.loss)) return "the loss is a function of the program's own (FitOptions::record)";
        if (state_.optimizer.replayable() != typeid(state_.optimizer))
            return "the optimizer does not say that it is replayable (Optimizer::replayable, FitOptions::record)";
        return {};
    }

    void read(const Report& report) {
        if (!report.totals_read) return;
        report.wait();
        if (report.guard[0] != 0)
            throw_non_finite(report.guard[0], report.noted[1] == report.guard[0] ? report.noted : NotedLabels{});
        const double examples =
            static_cast<double>(std::min(state_.progress.batch * options_.batch, loader_.dataset().size()));
        bar_.update(state_.progress.batch, report.totals[0] / examples, report.totals[1] / examples);
    }

    /// @param number of the step in this fit, from 1; @param noted of its labels
    [[noreturn]] void throw_non_finite(std::int64_t number, const NotedLabels& noted) {
        const std::int64_t step = first_step_ + number;
        // Steps since the last completed epoch, counted back from where the host stands now.
        const std::int64_t position =
            state_.progress.epoch * loader_.batches() + state_.progress.batch - (state_.progress.step - (step - 1));
        loader_.start(static_cast<std::uint64_t>(position / loader_.batches()), position % loader_.batches());
        const data::Batch batch = *loader_.next();
        throw_loss_not_finite(state_.model, state_.loss, batch, noted, step, position / loader_.batches() + 1);
    }

    Trainer& trainer_;
    Trainer::State& state_;
    const data::Dataset* test_;
    const FitOptions& options_;
    data::Loader loader_;
    Recorded step_;
    detail::ProgressBar bar_;
    std::int64_t first_step_ = 0;
};

}  // namespace

bool Trainer::fit(const data::Dataset& train, const FitOptions& options) {
    return Fit(*this, *state_, train, nullptr, checked(options, *state_)).run();
}

bool Trainer::fit(const data::Dataset& train, const data::Dataset& test, const FitOptions& options) {
    return Fit(*this, *state_, train, &test, checked(options, *state_)).run();
}

Evaluation Trainer::evaluate(const data::Dataset& dataset, const EvaluateOptions& options) {
    require_batch("evaluate", options.batch);
    const EvaluationMode mode(state_->model);
    const NoGrad no_grad;
    const Tensor totals = zeros({2}, {DType::f32, state_->device}), noted = zeros({4}, {DType::i64, state_->device});
    Tensor output, labels;
    data::Loader loader(dataset, {.batch = options.batch, .transform = options.transform, .device = state_->device});
    loader.start(0);
    while (const auto batch = loader.next()) {
        output = outputs_of(state_->model, state_->dtype, (*batch)[0]);
        labels = (*batch)[1];
        add_to_totals(output, labels, state_->loss(output, labels), totals, noted);
    }
    const auto sums = totals.to_vector<float>();
    if (!std::isfinite(sums[0])) require_labels(state_->loss, output, labels.dtype(), noted);
    const double examples = static_cast<double>(dataset.size());
    return {.loss = sums[0] / examples, .accuracy = sums[1] / examples, .examples = dataset.size()};
}

Tensor Trainer::predict(const data::Dataset& dataset, const EvaluateOptions& options) {
    require_batch("predict", options.batch);
    const EvaluationMode mode(state_->model);
    const NoGrad no_grad;
    std::vector<Tensor> outputs;
    data::Loader loader(dataset, {.batch = options.batch, .transform = options.transform, .device = state_->device});
    loader.start(0);
    while (const auto batch = loader.next()) outputs.push_back(outputs_of(state_->model, state_->dtype, (*batch)[0]));
    return concat(outputs, 0);
}

}  // namespace declivity::train
