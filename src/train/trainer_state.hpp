// Layer 7, private. State of a Trainer.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/train/trainer.hpp>

#include "checks.hpp"
#include "loss_weight.hpp"
#include "sums.hpp"

namespace declivity::train {

/// The names of modules, optimizers, metrics or generators.
template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& items) {
    std::vector<std::string> names;
    for (const Named& item : items) names.push_back(item.name);
    return names;
}

struct Trainer::State {
    State(std::vector<NamedModule> module_list, std::vector<NamedOptimizer> optimizer_list,
          std::vector<NamedMetric> metric_list, std::vector<NamedGenerator> generator_list);

    /// Results of model and loss for a batch.
    struct Outcome {
        Tensor output;
        Tensor target;  // undefined if it is not needed
        Tensor loss;
        LossWeight weight = {};
    };
    [[nodiscard]] bool has_model() const noexcept { return !step; }
    [[nodiscard]] Tensor output_of(const data::Batch& batch) const;
    /// @throws ValueError if there is none
    [[nodiscard]] Outcome outcome_of(const data::Batch& batch) const;
    /// Updates metrics and sums; the first batch decides whether batches count as classification by add_classification.
    /// @param totals, label_errors, sums of the training, or of an evaluation
    void measure(const Outcome& outcome, const data::Batch& batch, std::optional<bool>& classification,
                 const Tensor& totals, const Tensor& label_errors, Sums& sums) const;
    void set_training(bool on) const;

    std::vector<NamedModule> modules;
    std::vector<NamedOptimizer> optimizers;
    std::vector<NamedMetric> metrics;
    std::vector<NamedGenerator> generators;
    // With a model and a loss:
    std::optional<Model> model;
    Loss loss;
    BatchLoss batch_loss;
    std::vector<std::string> inputs;
    std::string target;
    // With a user-defined step:
    TrainStep step, evaluate;
    std::function<Tensor(const data::Batch&)> predict;

    Device device;
    DType dtype;  // of the first module's parameters
    Progress progress;
    Replays replays;
    /// The sums of the current epoch are part of checkpoints, so that the metrics of a resumed epoch are those of an
    /// uninterrupted one. `totals`, f32 [4], for classification, see ops/classification.hpp; `sums` for all else.
    Tensor totals;
    Sums sums;
    std::optional<bool> classification;
    Tensor guard;         // i32 [2], see ops/finite.hpp; the guard of the optimizers during a fit
    Tensor label_errors;  // i64 [4], see ops/classification.hpp
    std::int64_t planned_steps = 0;
    std::vector<std::string> validation_sets;
    bool stop = false;
    std::atomic<bool> fitting = false;
    /// During a fit: throws if the device has found a non-finite loss or gradient. Synchronises.
    std::function<void()> require_finite;
    /// Parameters that determine the order of the examples; a checkpoint in the middle of an epoch requires the same.
    struct Run {
        std::uint64_t seed = 0;
        std::int64_t batch = 0, examples = 0, accumulate = 1;
        bool shuffle = true;
        friend bool operator==(const Run&, const Run&) = default;
    } run;
};

/// Asynchronous read-back: requested at one report and read at the next, when the copy has long finished.
class Report {
  public:
    Report() = default;
    Report(const Report&) = delete;
    Report& operator=(const Report&) = delete;
    /// Waits for the copies: after an exception the device would write to freed memory.
    ~Report();
    void request(const Trainer::State& state);
    [[nodiscard]] bool requested() const noexcept { return !arrays_.empty(); }
    void wait();

    /// Means of the epoch up to the request.
    void append(Metrics& metrics, const std::string& prefix, const Trainer::State& state) const;
    [[nodiscard]] std::array<std::int32_t, 2> guard() const;
    [[nodiscard]] LabelErrors label_errors() const;

  private:
    std::vector<io::HostArray> arrays_;  // guard, label errors, totals, sums, then the states of metrics
    std::vector<Event> events_;          // pending until waited for
};

/// Means of the accumulated values. @param metric_states of all metrics, in order
void append_metrics(Metrics& metrics, const std::string& prefix, const Trainer::State& state, bool classification,
                    std::span<const float> totals, const Sums& sums, std::span<const float> sums_on_host,
                    std::span<const io::HostArray> metric_states);

}  // namespace declivity::train
