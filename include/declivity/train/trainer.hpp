// Layer 7. Trainer: trains, evaluates and applies models.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/data/dataset.hpp>
#include <declivity/data/dataset_ref.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>
#include <declivity/train/epoch_metrics.hpp>
#include <declivity/train/loss_value.hpp>
#include <declivity/train/metric.hpp>
#include <declivity/train/step.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

class Callback;

/// Loss function: maps a model's output and the target, such as labels, to a scalar, the mean over the batch:
/// nn::CrossEntropyLoss() and similar, or a custom function, which is called by evaluate() and by each step that is not
/// a replay. It returns a tensor, or a LossValue, which includes the weight that the loss was divided by.
using Loss = std::function<LossValue(const Tensor& output, const Tensor& target)>;
/// Loss function of the whole batch, for several target fields, weights, lengths.
using BatchLoss = std::function<LossValue(const Tensor& output, const data::Batch& batch)>;

/// Model of a trainer: a module from one or more tensors to one, or from a tensor and an optional argument such as
/// models::CausalInputs. It refers to the module, which must outlive it.
class Model {
  public:
    template <class... Args>
    requires(sizeof...(Args) > 0 && (std::is_same_v<Args, Tensor> && ...))
        Model(nn::Callable<Tensor(Args...)>& module)  // NOLINT: a trainer is given the module
        : module_(&module), arguments_(sizeof...(Args)), call_([&module](const std::vector<Tensor>& inputs) {
              return [&]<std::size_t... I>(std::index_sequence<I...>) { return module(inputs.at(I)...); }
              (std::index_sequence_for<Args...>());
          }) {}
    template <class Inputs>
    requires(!std::is_same_v<Inputs, Tensor> && std::default_initializable<Inputs>)
        Model(nn::Callable<Tensor(Tensor, Inputs)>& module)  // NOLINT
        : module_(&module),
          arguments_(1),
          call_([&module](const std::vector<Tensor>& inputs) { return module(inputs.at(0)); }) {}

    [[nodiscard]] nn::Module& module() const { return *module_; }
    /// Number of input tensors.
    [[nodiscard]] std::size_t arguments() const noexcept { return arguments_; }
    /// @param inputs one for each argument; some may be undefined
    Tensor operator()(const std::vector<Tensor>& inputs) const { return call_(inputs); }

  private:
    nn::Module* module_;
    std::size_t arguments_;
    std::function<Tensor(const std::vector<Tensor>&)> call_;
};

/// A custom random generator used in training (nn::Dropout::set_generator, a step): saved and restored like the
/// generator of the device.
struct NamedGenerator {
    std::string name;
    Generator generator;
};

/// Inputs, target and metrics of a model.
struct ModelOptions {
    /// Fields passed to the model as arguments; by default the first ones, as many as there are arguments. With fewer
    /// fields the remaining arguments are undefined tensors.
    std::vector<std::string> inputs = {};
    /// The field passed to losses and metrics; by default the first one that is not an input.
    std::string target = {};
    /// Replaces the default metric "accuracy", which is computed if targets are class labels (N) and outputs scores (N,
    /// classes).
    std::vector<NamedMetric> metrics = {};
    std::vector<NamedGenerator> generators = {};  ///< in addition to the generator of the device
};

struct NamedModule {
    std::string name;
    nn::Module& module;
};
struct NamedOptimizer {
    std::string name;
    optim::Optimizer& optimizer;
};

/// Components of a custom training step. All of them must outlive the trainer.
struct Parts {
    std::vector<NamedModule> modules;        ///< switched between training and evaluation mode, and saved
    std::vector<NamedOptimizer> optimizers;  ///< guarded, scheduled, and saved
    std::vector<NamedMetric> metrics = {};   ///< updated by the step; reported, reset, and saved
    /// Evaluation step, for evaluate() and validation sets: reports values and updates metrics. Called without grad
    /// mode.
    TrainStep evaluate = {};
    /// Prediction, for predict(): the outputs for a batch, (size, ...). Called without grad mode.
    std::function<Tensor(const data::Batch& batch)> predict = {};
    std::vector<NamedGenerator> generators = {};  ///< in addition to the generator of the device
};

/// Training progress.
struct Progress {
    std::int64_t epoch = 0;  ///< epochs completed
    std::int64_t batch = 0;  ///< batches of the current epoch completed
    std::int64_t step = 0;   ///< total steps completed: batches, or groups of them with gradient accumulation
    std::vector<EpochMetrics> history;
};

struct FitOptions {
    std::int64_t epochs = 1;  ///< total number: a resumed training does the remaining epochs
    std::int64_t batch = 64;
    std::uint64_t seed = 0;  ///< of the order and of transforms
    bool shuffle = true;     ///< without a sampler
    data::Transform train_transform = {};
    data::Transform test_transform = {};                     ///< of validation sets
    data::Collate collate = {};                              ///< of all data sets
    std::shared_ptr<const data::Sampler> sampler = nullptr;  ///< of the training set
    int loader_threads = 1;
    /// Gradient accumulation: number of batches whose gradients are summed for one optimizer step, weighted to equal
    /// those of one batch of all their examples (see LossValue). The last group of an epoch may be smaller. Only for a
    /// trainer of a model and a loss.
    std::int64_t accumulate = 1;
    double clip_norm = 0;  ///< maximum gradient norm, for a model and a loss; 0 disables clipping
    std::vector<std::shared_ptr<Callback>> callbacks = {};
    bool quiet = false;  ///< no progress bar and no log lines
    /// Graph capture of steps (docs/internals/capture.md): steps of the same shapes are captured twice and then
    /// replayed, and captured once more in each epoch. A replay does not call the model, the loss or the step:
    /// host-side decisions, by a counter or a C++ random number, are frozen. By default, steps are captured only if
    /// every part declares this to be safe: modules, optimizers and metrics by capture_safe(), losses if they are from
    /// nn/loss.hpp. true declares it for the model, loss, metrics and optimizer, or for the step, of this call; false
    /// disables capture. Steps that cannot be captured run normally. See Trainer::replays().
    std::optional<bool> capture = {};
    std::optional<bool> record = {};  ///< deprecated name of capture, used if that is not set
};

/// A validation set; its metrics are called "<name>_loss" etc.
struct NamedDataset {
    std::string name;
    data::DatasetRef dataset;  ///< a reference, which must outlive the fit, or a std::shared_ptr
};

struct EvaluateOptions {
    std::int64_t batch = 256;
    data::Transform transform = {};
    data::Collate collate = {};
};

/// Graph capture statistics of a fit.
struct Replays {
    std::int64_t replayed = 0;  ///< number of steps that were replays of a captured step
    /// Reason why steps were not captured, such as "the loss is a user-defined function"; empty if they were.
    std::string refused;
};

/// A loss, or a gradient of a finite loss, was infinite or NaN. The parameters are those before the step.
class DECLIVITY_API NonFiniteLoss : public Error {
  public:
    NonFiniteLoss(const std::string& what, std::int64_t step, std::string layer)
        : Error(what), step_(step), layer_(std::move(layer)) {}
    ~NonFiniteLoss() override;
    /// Number of the step, from 1.
    [[nodiscard]] std::int64_t step() const noexcept { return step_; }
    /// Path of the first layer with a non-finite output, "loss" for the loss itself, "gradient of PARAMETER" if only
    /// gradients were not finite, empty if a rerun of the step was finite.
    [[nodiscard]] const std::string& layer() const noexcept { return layer_; }

  private:
    std::int64_t step_;
    std::string layer_;
};

/// Trains models on a data set. Steps are enqueued asynchronously; the host synchronises only occasionally, to report.
///
///     train::Trainer trainer(model, optimizer);                       // cross entropy of scores (N, C) and labels (N)
///     train::Trainer trainer(model, optimizer, nn::MSELoss());
///     train::Trainer trainer(model, optimizer, [](const Tensor& output, const data::Batch& batch) { ... });
///     train::Trainer trainer({.modules = {{"generator", generator}, {"critic", critic}},
///                             .optimizers = {{"generator", first}, {"critic", second}}},
///                            [&](train::Step& step, const data::Batch& batch) { ... });
class DECLIVITY_API Trainer {
  public:
    /// Model and optimizer must outlive the trainer. The default loss is cross entropy.
    /// @throws ValueError if the optimizer has none of the model's parameters, and for metrics with empty or duplicate
    /// names
    Trainer(Model model, optim::Optimizer& optimizer, Loss loss = {}, ModelOptions options = {});
    Trainer(Model model, optim::Optimizer& optimizer, BatchLoss loss, ModelOptions options = {});
    Trainer(Model model, optim::Optimizer& optimizer, ModelOptions options);
    /// Trainer of a custom step.
    /// @throws ValueError for no modules, an empty step, and for names that are empty, contain a dot or are duplicates
    Trainer(Parts parts, TrainStep step);
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    /// Trains until `options.epochs` epochs are complete, including those of earlier fits, starting from the current
    /// progress; prints a message if they are complete already. Ctrl-C ends training after the current step, once the
    /// callbacks have saved; a second Ctrl-C ends the program. A single validation set is called "test". Data sets are
    /// passed by reference, and must outlive the call, or as std::shared_ptr.
    ///
    /// A fit that throws in or because of a step leaves the trainer in the state before that step: progress, sums,
    /// metrics, buffers of the modules such as running statistics, generators and, unless an optimizer itself threw,
    /// parameters and optimizers (with several optimizers, those before the one that threw have made their step).
    /// Another fit continues with that step. Effects of callbacks are not undone.
    /// @return false if it was interrupted or stopped by a callback
    /// @throws NonFiniteLoss; ValueError for options out of range, empty data sets, a fit in progress, and for a label
    /// that is not below the number of the model's outputs; any exception thrown while reading data
    bool fit(const data::DatasetRef& train, const FitOptions& options);
    bool fit(const data::DatasetRef& train, const data::DatasetRef& test, const FitOptions& options);
    /// @throws ValueError also for names of validation sets that are empty, "train", or duplicates
    bool fit(const data::DatasetRef& train, const std::vector<NamedDataset>& validation, const FitOptions& options);
    /// Evaluates a data set in evaluation mode: returns "loss", "accuracy", the trainer's metrics, or the values
    /// reported by Parts::evaluate.
    /// @throws ValueError for a label that is not below the number of the model's outputs, and for a custom step
    /// without Parts::evaluate
    [[nodiscard]] Evaluation evaluate(const data::DatasetRef& dataset, const EvaluateOptions& options = {});
    /// Returns the model's outputs for a data set, on the device, in evaluation mode: (size, ...). The data set needs
    /// no target.
    /// @throws ValueError for a custom step without Parts::predict
    [[nodiscard]] Tensor predict(const data::DatasetRef& dataset, const EvaluateOptions& options = {});

    [[nodiscard]] const Progress& progress() const;
    /// Graph capture statistics of the current or last fit.
    [[nodiscard]] const Replays& replays() const;
    /// The only or first model.
    [[nodiscard]] nn::Module& model() const;
    [[nodiscard]] optim::Optimizer& optimizer() const;
    /// All modules and optimizers; single ones are called "model" and "optimizer".
    [[nodiscard]] const std::vector<NamedModule>& modules() const;
    [[nodiscard]] const std::vector<NamedOptimizer>& optimizers() const;

    /// Writes a checkpoint: modules, optimizers, metrics, progress and generator states, so that a resumed training is
    /// bitwise identical, even from the middle of an epoch. The file is a safetensors file with a checksum; it is
    /// written atomically.
    /// @throws IoError; ValueError for names that are not UTF-8; during a fit NonFiniteLoss, as the fit would later
    void save(const std::filesystem::path& path) const;
    /// Restores a checkpoint. @throws FormatError for a corrupt file, a value out of range, or a file of another
    /// version of the library; IoError; ValueError, ShapeError, TypeError if it does not match the modules, optimizers,
    /// metrics or generators; nothing is changed then
    void load(const std::filesystem::path& path);

    /// For callbacks: ends training after this step.
    void stop();
    /// For callbacks: planned total number of steps, if all remaining epochs have as many steps as the current one.
    [[nodiscard]] std::int64_t planned_steps() const;
    /// For callbacks: names of the validation sets of the current or last fit.
    [[nodiscard]] const std::vector<std::string>& validation_sets() const;

    struct State;  ///< private implementation

  private:
    std::unique_ptr<State> state_;
};

/// Callbacks of a Trainer during a fit. The progress includes the step or epoch that just ended.
class DECLIVITY_API Callback {
  public:
    virtual ~Callback();
    virtual void on_begin(Trainer&) {}
    /// Called before each step, for learning rates.
    virtual void before_step(Trainer&) {}
    virtual void after_step(Trainer&) {}
    virtual void after_epoch(Trainer&, const EpochMetrics&) {}
    /// Called at the end, including interruption, but not after an exception.
    virtual void on_end(Trainer&) {}
};

/// @}

}  // namespace declivity::train
