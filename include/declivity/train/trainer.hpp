// Floor 5. Trainer: trains, evaluates and applies a network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <declivity/data/dataset.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/nn/module.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

class Callback;

/// From a network's output and the labels to a scalar: nn::CrossEntropyLoss() and its like, or a function of the
/// program's own, which is called by evaluate() as well as by each step that is not a replay.
using Loss = std::function<Tensor(const Tensor& output, const Tensor& labels)>;

/// What an epoch came to. Accuracies in [0, 1]; those of the test set are NaN when there is none.
struct EpochFigures {
    std::int64_t epoch = 0;  ///< from 1
    double train_loss = 0, train_accuracy = 0;
    double test_loss = 0, test_accuracy = 0;
    double learning_rate = 0;
    double seconds = 0;  ///< of training, without the evaluation
};

/// Where a training stands.
struct Progress {
    std::int64_t epoch = 0;  ///< epochs completed
    std::int64_t batch = 0;  ///< batches of the current epoch completed
    std::int64_t step = 0;   ///< batches completed in all
    std::vector<EpochFigures> history;
    double best_accuracy = -1;  ///< of the test set, so far
};

struct FitOptions {
    std::int64_t epochs = 1;  ///< in all: a resumed training does what is left
    std::int64_t batch = 64;
    std::uint64_t seed = 0;  ///< of the order and of the transform
    bool shuffle = true;
    data::Transform train_transform = {};
    data::Transform test_transform = {};
    int loader_threads = 1;
    double clip_norm = 0;  ///< clips gradients to this norm; 0 does not
    std::vector<std::shared_ptr<Callback>> callbacks = {};
    bool quiet = false;  ///< no progress bar and no lines
    /// Whether steps of the same shapes are recorded twice and then replayed (docs/recording.md), once more in each
    /// epoch. A replay does not call the model or the loss: what they decide on the host, by a counter or a random
    /// number of C++, it repeats. So, when not set, steps are recorded only where every part of them says that this is
    /// right: modules and optimizers by their replayable(), losses of nn/loss.hpp. true says so for the model, loss and
    /// optimizer of this call; false records nothing. What cannot be recorded runs plainly. Trainer::replays() tells
    /// what came of it.
    std::optional<bool> record = {};
};

struct EvaluateOptions {
    std::int64_t batch = 256;
    data::Transform transform = {};
};

struct Evaluation {
    double loss = 0;
    double accuracy = 0;
    std::int64_t examples = 0;
};

/// How the steps of a fit were made.
struct Replays {
    std::int64_t replayed = 0;  ///< steps that were replays of a recorded one
    /// Why steps are plain calls, such as "the loss is a function of the program's own"; empty while they are not.
    std::string refused;
};

/// A loss that was infinite or NaN. The parameters are those from before the step.
class DECLIVITY_API NonFiniteLoss : public Error {
  public:
    NonFiniteLoss(const std::string& what, std::int64_t step, std::string layer)
        : Error(what), step_(step), layer_(std::move(layer)) {}
    ~NonFiniteLoss() override;
    /// Number of the step, from 1.
    [[nodiscard]] std::int64_t step() const noexcept { return step_; }
    /// Path of the first layer whose output was not finite, "loss" for the loss itself, empty when a second run was
    /// finite.
    [[nodiscard]] const std::string& layer() const noexcept { return layer_; }

  private:
    std::int64_t step_;
    std::string layer_;
};

/// Trains a network for classification: outputs are scores (N, classes), labels i64 (N). The host enqueues step after
/// step; it looks at the device only now and then, to report the loss.
class DECLIVITY_API Trainer {
  public:
    /// Model and optimizer must outlive the trainer. The loss is cross entropy when none is given.
    /// @throws ValueError when the optimizer holds none of the model's parameters
    Trainer(nn::Module& model, optim::Optimizer& optimizer, Loss loss = {});
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    /// Trains until `options.epochs` epochs are complete, from where the trainer stands. Ctrl-C ends it after the
    /// current step, once the callbacks have saved; a second Ctrl-C ends the program.
    /// @return false when it was interrupted or a callback stopped it
    /// @throws NonFiniteLoss; ValueError for options out of range, while another fit is under way, and naming a label
    /// that is none of the classes that the model has outputs for; whatever reading the data threw
    bool fit(const data::Dataset& train, const FitOptions& options);
    bool fit(const data::Dataset& train, const data::Dataset& test, const FitOptions& options);
    /// Mean loss and accuracy over a data set, with the model in evaluation mode.
    /// @throws ValueError naming a label that is none of the classes that the model has outputs for
    [[nodiscard]] Evaluation evaluate(const data::Dataset& dataset, const EvaluateOptions& options = {});
    /// The model's outputs for a data set, on the device, with the model in evaluation mode: (size, ...).
    [[nodiscard]] Tensor predict(const data::Dataset& dataset, const EvaluateOptions& options = {});

    [[nodiscard]] const Progress& progress() const;
    /// Of the fit that is under way, or of the last one.
    [[nodiscard]] const Replays& replays() const;
    [[nodiscard]] nn::Module& model() const;
    [[nodiscard]] optim::Optimizer& optimizer() const;

    /// Writes model, optimizer, progress and random state, so that a training that goes on from it gives the same
    /// numbers to the bit. The file is a safetensors file; it is replaced whole or not at all.
    /// @throws IoError
    void save(const std::filesystem::path& path) const;
    /// Goes on from a checkpoint. @throws FormatError, IoError; ValueError, ShapeError, TypeError when it belongs to
    /// another model or optimizer
    void load(const std::filesystem::path& path);

    /// For callbacks: ends the training after this step.
    void stop();
    /// For callbacks: steps of the whole training, as far as it is planned.
    [[nodiscard]] std::int64_t planned_steps() const;

    struct State;  ///< of the implementation

  private:
    std::unique_ptr<State> state_;
};

/// Called by the trainer while it trains. The progress counts the step or epoch that just ended.
class DECLIVITY_API Callback {
  public:
    virtual ~Callback();
    virtual void on_begin(Trainer&) {}
    /// Before each step, for learning rates.
    virtual void before_step(Trainer&) {}
    virtual void after_step(Trainer&) {}
    virtual void after_epoch(Trainer&, const EpochFigures&) {}
    /// At the end, also when the training was interrupted; not after an exception.
    virtual void on_end(Trainer&) {}
};

}  // namespace declivity::train
