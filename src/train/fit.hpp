// Floor 5, private. One fit of a trainer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <declivity/tensor/record.hpp>
#include <declivity/train/trainer.hpp>

#include "progress_bar.hpp"
#include "step_of.hpp"
#include "trainer_state.hpp"

namespace declivity::train {

/// @throws ValueError for options out of range, and while another fit is under way
const FitOptions& checked(const FitOptions& options, const Trainer::State& state);

/// From where the trainer stands.
class Fit {
  public:
    Fit(Trainer& trainer, Trainer::State& state, const data::Dataset& train,
        const std::vector<NamedDataset>& validation, const FitOptions& options);
    ~Fit() { state_.fitting = false; }
    Fit(const Fit&) = delete;
    Fit& operator=(const Fit&) = delete;

    bool run();

  private:
    [[nodiscard]] bool ended() const;
    void run_epoch();
    void begin_epoch();
    void end_epoch(const Report& last, double seconds);
    void step();
    void one_batch(const data::Batch& batch);
    void accumulated();
    [[nodiscard]] data::Batch next_batch();

    /// Calls a step, or replays it.
    void call(Recorded& recorded, const data::Batch& batch);
    Recorded recorded(void (Fit::*commands)(const data::Batch&));
    // What these do on the device.
    void model_step(const data::Batch& batch);
    void own_step(const data::Batch& batch);
    void add_gradients(const data::Batch& batch);
    void begin_group();
    void apply_gradients();
    void update();

    void refuse_where_not_replayable() const;
    [[nodiscard]] std::string not_replayable() const;
    void read(Report& report);
    [[noreturn]] void throw_non_finite(std::int64_t number, const NotedLabels& noted);

    Trainer& trainer_;
    Trainer::State& state_;
    const std::vector<NamedDataset>& validation_;
    const FitOptions& options_;
    data::Loader loader_;
    StepOf own_;
    const data::Batch* current_ = nullptr;  // for what the tensors of a recorded step do not say
    Recorded step_, apply_, begin_;
    detail::ProgressBar bar_;

    // Of accumulated gradients: sums for each parameter, and the present batch's weight.
    struct Accumulated {
        Tensor parameter, sum;
        bool used = false;
    };
    std::vector<Accumulated> sums_;
    Tensor weight_;
    double weight_now_ = -1;

    std::int64_t examples_ = 0;  // of this epoch, so far
    std::int64_t batches_ = 0;   // of this fit, which the guard counts
    std::int64_t steps_before_epoch_ = 0;
};

}  // namespace declivity::train
