// Layer 5. What can be hung onto a training: checkpoints, schedules, early stopping, logs, pictures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <declivity/optim/schedule.hpp>
#include <declivity/train/trainer.hpp>

namespace declivity::train {

struct CheckpointOptions {
    std::filesystem::path last =
        {};  ///< written at the end of each epoch, and when the training ends or is interrupted
    std::filesystem::path best = {};  ///< written when the watched figure is the best so far
    std::int64_t every_steps = 0;     ///< writes `last` also after each so many steps; 0 does not
    Monitor monitor = {"test_accuracy", Monitor::Better::higher};  ///< what `best` goes by
};
class DECLIVITY_API Checkpoint : public Callback {
  public:
    /// @throws ValueError when every_steps is negative, or given without `last`
    explicit Checkpoint(CheckpointOptions options);
    /// @throws ValueError when `best` goes by a figure of a validation set that there is not
    void on_begin(Trainer& trainer) override;
    void after_step(Trainer& trainer) override;
    /// @throws ValueError naming the figures there are, when there is no such figure for `best`
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;
    void on_end(Trainer& trainer) override;

  private:
    CheckpointOptions options_;
    std::int64_t saved_step_ = -1;
};

/// Sets the learning rate before each step, from the number of steps or of epochs.
class DECLIVITY_API LearningRate : public Callback {
  public:
    enum class Unit : std::uint8_t { step, epoch };
    /// @param optimizer the name of the one whose rate it is; that of all of them when empty
    LearningRate(optim::Schedule schedule, Unit unit, std::string optimizer = {})
        : schedule_(std::move(schedule)), unit_(unit), optimizer_(std::move(optimizer)) {}
    /// @throws ValueError when the trainer has no such optimizer
    void on_begin(Trainer& trainer) override;
    void before_step(Trainer& trainer) override;

  private:
    optim::Schedule schedule_;
    Unit unit_;
    std::string optimizer_;
};

/// Stops when a figure, the test loss unless told, has not become better by more than `margin` for `patience` epochs.
class DECLIVITY_API EarlyStopping : public Callback {
  public:
    /// @throws ValueError for a patience below 1
    explicit EarlyStopping(std::int64_t patience, double margin = 0, Monitor monitor = {"test_loss"});
    /// @throws ValueError for a figure of a validation set that there is not
    void on_begin(Trainer& trainer) override;
    /// @throws ValueError naming the figures there are, when there is no such figure
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;

  private:
    std::int64_t patience_;
    double margin_;
    Monitor monitor_;
};

/// A line for each epoch: epoch, train_loss, train_accuracy, test_loss, test_accuracy, learning_rate, seconds, or
/// whatever figures there are; empty where an epoch does not have one that others have. A resumed training rewrites the
/// lines that its checkpoint knows.
class DECLIVITY_API CsvLog : public Callback {
  public:
    explicit CsvLog(std::filesystem::path path) : path_(std::move(path)) {}
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;

  private:
    std::filesystem::path path_;
};

struct LearningCurveOptions {
    std::string title = {};
    /// Figures of the left panel, of any values; those that end in "loss" if none.
    std::vector<std::string> losses = {};
    /// Figures of the right panel, 0 to 1; those that end in "accuracy" if none.
    std::vector<std::string> accuracies = {};
};
/// A picture of figures by epoch, drawn anew after each.
class DECLIVITY_API LearningCurvePicture : public Callback {
  public:
    LearningCurvePicture(std::filesystem::path path, std::string title)
        : LearningCurvePicture(std::move(path), LearningCurveOptions{.title = std::move(title)}) {}
    LearningCurvePicture(std::filesystem::path path, LearningCurveOptions options)
        : path_(std::move(path)), options_(std::move(options)) {}
    /// @throws ValueError for a figure of a validation set that there is not
    void on_begin(Trainer& trainer) override;
    /// @throws ValueError naming the figures there are, when there is no such figure
    void after_epoch(Trainer& trainer, const EpochMetrics& metrics) override;

  private:
    std::filesystem::path path_;
    LearningCurveOptions options_;
};

}  // namespace declivity::train
