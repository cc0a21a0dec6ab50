// Floor 5. What can be hung onto a training: checkpoints, schedules, early stopping, logs, pictures.
#pragma once

#include <filesystem>
#include <string>

#include <declivity/optim/schedule.hpp>
#include <declivity/train/trainer.hpp>

namespace declivity::train {

struct CheckpointOptions {
    std::filesystem::path last =
        {};  ///< written at the end of each epoch, and when the training ends or is interrupted
    std::filesystem::path best = {};  ///< written when the accuracy on the test set is the best so far
    std::int64_t every_steps = 0;     ///< writes `last` also after each so many steps; 0 does not
};
class DECLIVITY_API Checkpoint : public Callback {
  public:
    /// @throws ValueError when every_steps is negative, or given without `last`
    explicit Checkpoint(CheckpointOptions options);
    void after_step(Trainer& trainer) override;
    void after_epoch(Trainer& trainer, const EpochFigures& figures) override;
    void on_end(Trainer& trainer) override;

  private:
    CheckpointOptions options_;
    std::int64_t saved_step_ = -1;
};

/// Sets the learning rate before each step, from the number of steps or of epochs.
class DECLIVITY_API LearningRate : public Callback {
  public:
    enum class Unit : std::uint8_t { step, epoch };
    LearningRate(optim::Schedule schedule, Unit unit) : schedule_(std::move(schedule)), unit_(unit) {}
    void before_step(Trainer& trainer) override;

  private:
    optim::Schedule schedule_;
    Unit unit_;
};

/// Stops when the test loss has not fallen by at least `margin` for `patience` epochs.
class DECLIVITY_API EarlyStopping : public Callback {
  public:
    explicit EarlyStopping(std::int64_t patience, double margin = 0);
    void after_epoch(Trainer& trainer, const EpochFigures& figures) override;

  private:
    std::int64_t patience_;
    double margin_;
};

/// A line for each epoch: epoch, train_loss, train_accuracy, test_loss, test_accuracy, learning_rate, seconds. A
/// resumed training rewrites the lines that its checkpoint knows.
class DECLIVITY_API CsvLog : public Callback {
  public:
    explicit CsvLog(std::filesystem::path path) : path_(std::move(path)) {}
    void after_epoch(Trainer& trainer, const EpochFigures& figures) override;

  private:
    std::filesystem::path path_;
};

/// A picture of losses and accuracies by epoch, drawn anew after each.
class DECLIVITY_API LearningCurvePicture : public Callback {
  public:
    LearningCurvePicture(std::filesystem::path path, std::string title)
        : path_(std::move(path)), title_(std::move(title)) {}
    void after_epoch(Trainer& trainer, const EpochFigures& figures) override;

  private:
    std::filesystem::path path_;
    std::string title_;
};

}  // namespace declivity::train
