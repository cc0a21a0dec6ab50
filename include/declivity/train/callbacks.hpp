// Layer 7. Callbacks of a Trainer: checkpoints, learning rate schedules, early stopping, logs, plots.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <declivity/optim/schedule.hpp>
#include <declivity/train/trainer.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

struct CheckpointOptions {
    std::filesystem::path last = {};  ///< written at the end of each epoch, and when training ends or is interrupted
    std::filesystem::path best = {};  ///< written when the monitored metric improves
    std::int64_t every_steps = 0;     ///< if above 0, `last` is also written after every so many steps
    Monitor monitor = {"test_accuracy", Monitor::Better::higher};  ///< metric that selects `best`
};
class DECLIVITY_API Checkpoint : public Callback {
  public:
    /// @throws ValueError if every_steps is negative, or set without `last`
    explicit Checkpoint(CheckpointOptions options);
    /// @throws ValueError if `best` monitors a metric of a missing validation set
    void on_begin(Trainer& trainer) override;
    void after_step(Trainer& trainer) override;
    /// @throws ValueError listing the available metrics if the one for `best` does not exist
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;
    void on_end(Trainer& trainer) override;

  private:
    CheckpointOptions options_;
    std::int64_t saved_step_ = -1;
};

/// Learning rate schedule: sets the rate before each step, as a function of the number of steps or epochs.
class DECLIVITY_API LearningRate : public Callback {
  public:
    enum class Unit : std::uint8_t { step, epoch };
    /// @param optimizer name of the optimizer whose rate is set; all optimizers if empty
    LearningRate(optim::Schedule schedule, Unit unit, std::string optimizer = {})
        : schedule_(std::move(schedule)), unit_(unit), optimizer_(std::move(optimizer)) {}
    /// @throws ValueError if the trainer has no such optimizer
    void on_begin(Trainer& trainer) override;
    void before_step(Trainer& trainer) override;

  private:
    optim::Schedule schedule_;
    Unit unit_;
    std::string optimizer_;
};

/// Stops training if a metric, the test loss by default, has not improved by more than `margin` for `patience` epochs.
class DECLIVITY_API EarlyStopping : public Callback {
  public:
    /// @throws ValueError for a patience below 1
    explicit EarlyStopping(std::int64_t patience, double margin = 0, Monitor monitor = {"test_loss"});
    /// @throws ValueError for a metric of a missing validation set
    void on_begin(Trainer& trainer) override;
    /// @throws ValueError listing the available metrics if there is no such metric
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;

  private:
    std::int64_t patience_;
    double margin_;
    Monitor monitor_;
};

/// CSV log with one line per epoch: epoch, train_loss, train_accuracy, test_loss, test_accuracy, learning_rate,
/// seconds, or whatever metrics exist; empty for metrics that an epoch does not have. When training is resumed, the
/// lines of epochs in the checkpoint are rewritten.
class DECLIVITY_API CsvLog : public Callback {
  public:
    explicit CsvLog(std::filesystem::path path) : path_(std::move(path)) {}
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;

  private:
    std::filesystem::path path_;
};

struct LearningCurveOptions {
    std::string title = {};
    /// Metrics of the left panel, of any range; those whose name ends in "loss" if empty.
    std::vector<std::string> losses = {};
    /// Metrics of the right panel, 0 to 1; those whose name ends in "accuracy" if empty.
    std::vector<std::string> accuracies = {};
};
/// Plot of metrics by epoch, updated after each epoch.
class DECLIVITY_API LearningCurvePicture : public Callback {
  public:
    LearningCurvePicture(std::filesystem::path path, std::string title)
        : LearningCurvePicture(std::move(path), LearningCurveOptions{.title = std::move(title)}) {}
    LearningCurvePicture(std::filesystem::path path, LearningCurveOptions options)
        : path_(std::move(path)), options_(std::move(options)) {}
    /// @throws ValueError for a metric of a missing validation set
    void on_begin(Trainer& trainer) override;
    /// @throws ValueError listing the available metrics if there is no such metric
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;

  private:
    std::filesystem::path path_;
    LearningCurveOptions options_;
};

/// @}

}  // namespace declivity::train
