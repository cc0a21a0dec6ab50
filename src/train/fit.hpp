// Layer 7, private. One fit of a trainer.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/train/trainer.hpp>

#include "progress_bar.hpp"
#include "rollback.hpp"
#include "user_step.hpp"
#include "trainer_state.hpp"

namespace declivity::train {

/// While an instance is alive, no other fit of the trainer can start, and its optimizers use its guard.
class FitScope {
  public:
    /// @throws ValueError for options out of range, and if another instance is alive; nothing is changed then
    FitScope(Trainer::State& state, const FitOptions& options);
    ~FitScope();
    FitScope(const FitScope&) = delete;
    FitScope& operator=(const FitScope&) = delete;

  private:
    Trainer::State& state_;
};

/// Starts at the trainer's progress.
class Fit {
  public:
    Fit(Trainer& trainer, Trainer::State& state, const data::Dataset& train,
        const std::vector<NamedDataset>& validation, const FitOptions& options);
    ~Fit() { state_.require_finite = nullptr; }
    Fit(const Fit&) = delete;
    Fit& operator=(const Fit&) = delete;

    bool run();

  private:
    [[nodiscard]] bool ended() const;
    void run_epoch();
    void begin_epoch();
    void end_epoch(const Report& last, double seconds);
    void step();
    void run_step();
    void save_for_rollback();
    void run_batch(const data::Batch& batch);
    void run_accumulated_step();
    [[nodiscard]] data::Batch next_batch();

    /// Calls a captured step, or replays it.
    void call(CapturedStep& captured, const data::Batch& batch);
    CapturedStep make_captured(void (Fit::*commands)(const data::Batch&));
    // The device work of the captured steps.
    void model_step(const data::Batch& batch);
    void custom_step(const data::Batch& batch);
    void add_gradients(const data::Batch& batch);
    void begin_group();
    void apply_gradients();
    void update();

    void refuse_unless_capture_safe() const;
    [[nodiscard]] std::string not_capture_safe() const;
    void read(Report& report);
    void require_finite();
    [[noreturn]] void throw_non_finite(std::int64_t failed_batch, const LabelErrors& label_errors);
    /// Index in the current epoch, from 0, of a batch that is counted over this fit, from 1.
    [[nodiscard]] std::int64_t epoch_batch(std::int64_t fit_batch) const {
        return state_.progress.batch - (batches_ - (fit_batch - 1));
    }
    [[nodiscard]] std::int64_t step_begin(std::int64_t batch) const { return batch - batch % options_.accumulate; }
    void save_generators();
    void restore_generators(std::int64_t batch);
    /// Restores the trainer from before the step that begins with this batch. @param started whether the step had begun
    void roll_back(std::int64_t first, bool started);
    /// Undoes the step that begins with this batch, after an exception in it.
    void undo(std::int64_t first) noexcept;

    Trainer& trainer_;
    Trainer::State& state_;
    const std::vector<NamedDataset>& validation_;
    const FitOptions& options_;
    const std::optional<bool> capture_;  // FitOptions::capture
    FitScope scope_;
    data::Loader loader_;
    UserStep step_context_;
    const data::Batch* current_ = nullptr;  // for state that the tensors of a captured step do not include
    CapturedStep step_, apply_, begin_, save_;
    std::optional<Rollback> rollback_;
    detail::ProgressBar bar_;

    // Accumulated gradients: for each parameter the sum of gradients times weights, and the sum of weights.
    struct Accumulated {
        Tensor parameter, sum;
        bool used = false;
    };
    std::vector<Accumulated> sums_;
    Tensor weights_;            // f32 []
    bool loss_is_sum_ = false;  // the loss is a sum: no division

    /// Generator states before a batch that the device may not have finished yet.
    struct Generators {
        std::int64_t batch;
        RandomState device;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> named;
    };
    std::deque<Generators> generators_;
    bool saved_ = false;  // for a rollback of the current step

    std::int64_t batches_ = 0;  // of this fit, counted by the guard
    std::int64_t steps_before_epoch_ = 0;
};

}  // namespace declivity::train
