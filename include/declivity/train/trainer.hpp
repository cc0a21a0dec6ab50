// Layer 5. Trainer: trains, evaluates and applies networks.
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

class Callback;

/// From a network's output and the target, such as labels, to a scalar, the mean over the batch: nn::CrossEntropyLoss()
/// and its like, or a function of the program's own, which is called by evaluate() as well as by each step that is not
/// a replay. It returns a tensor, or a LossValue, which says the weight that the loss was divided by as well.
using Loss = std::function<LossValue(const Tensor& output, const Tensor& target)>;
/// The same from the output and the whole batch, for targets of several fields, weights, lengths.
using BatchLoss = std::function<LossValue(const Tensor& output, const data::Batch& batch)>;

/// What a trainer calls: a module from one tensor, or several, to one; or from a tensor and something that calls may
/// leave out, such as models::CausalInputs. It is made of the module, which must outlive it.
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
    /// How many tensors it takes.
    [[nodiscard]] std::size_t arguments() const noexcept { return arguments_; }
    /// @param inputs as many as it takes, of which some may be undefined
    Tensor operator()(const std::vector<Tensor>& inputs) const { return call_(inputs); }

  private:
    nn::Module* module_;
    std::size_t arguments_;
    std::function<Tensor(const std::vector<Tensor>&)> call_;
};

/// A generator of the program's own that a training draws from (nn::Dropout::set_generator, a step): saved and restored
/// as the device's own always is.
struct NamedGenerator {
    std::string name;
    Generator generator;
};

/// What of a batch a model gets, and what is measured.
struct ModelOptions {
    /// Fields that are the model's arguments; when empty, the first ones, as many as it takes. A model that is given
    /// fewer than it takes gets undefined tensors for the others.
    std::vector<std::string> inputs = {};
    /// The field that losses and metrics compare with; when empty, the first one that is no input.
    std::string target = {};
    /// In place of "accuracy", which is measured where targets are numbers of classes (N) and outputs scores (N,
    /// classes).
    std::vector<NamedMetric> metrics = {};
    std::vector<NamedGenerator> generators = {};  ///< beside the device's own
};

struct NamedModule {
    std::string name;
    nn::Module& module;
};
struct NamedOptimizer {
    std::string name;
    optim::Optimizer& optimizer;
};

/// What a step of the program's own works with. All of it must outlive the trainer.
struct Parts {
    std::vector<NamedModule> modules;        ///< put into training and evaluation mode, and saved
    std::vector<NamedOptimizer> optimizers;  ///< guarded, scheduled, and saved
    std::vector<NamedMetric> metrics = {};   ///< updated by the step; reported, reset, and saved
    /// For evaluate() and validation sets: reports figures and updates metrics. Called without gradients.
    TrainStep evaluate = {};
    /// For predict(): the outputs for a batch, (size, ...). Called without gradients.
    std::function<Tensor(const data::Batch& batch)> predict = {};
    std::vector<NamedGenerator> generators = {};  ///< beside the device's own
};

/// Where a training stands.
struct Progress {
    std::int64_t epoch = 0;  ///< epochs completed
    std::int64_t batch = 0;  ///< batches of the current epoch completed
    std::int64_t step = 0;   ///< steps completed in all: batches, or groups of them where gradients are accumulated
    std::vector<EpochMetrics> history;
};

struct FitOptions {
    std::int64_t epochs = 1;  ///< in all: a resumed training does what is left
    std::int64_t batch = 64;
    std::uint64_t seed = 0;  ///< of the order and of the transform
    bool shuffle = true;     ///< where there is no sampler
    data::Transform train_transform = {};
    data::Transform test_transform = {};                     ///< of validation sets
    data::Collate collate = {};                              ///< of all data sets
    std::shared_ptr<const data::Sampler> sampler = nullptr;  ///< of the training set
    int loader_threads = 1;
    /// Batches whose gradients are added up for one step of the optimizer, weighted so that they are those of one batch
    /// of all their examples (LossValue says by what). What is left at the end of an epoch is a smaller group. For a
    /// trainer of a model and a loss.
    std::int64_t accumulate = 1;
    double clip_norm = 0;  ///< clips gradients of a model and a loss to this norm; 0 does not
    std::vector<std::shared_ptr<Callback>> callbacks = {};
    bool quiet = false;  ///< no progress bar and no lines
    /// Whether steps of the same shapes are recorded twice and then replayed (docs/capture.md), once more in each
    /// epoch. A replay does not call the model, the loss or the step: what they decide on the host, by a counter or a
    /// random number of C++, it repeats. So, when not set, steps are recorded only where every part of them says that
    /// this is right: modules, optimizers and metrics by their capture_safe(), losses of nn/loss.hpp. true says so for
    /// the model, loss, metrics and optimizer, or for the step, of this call; false records nothing. What cannot be
    /// recorded runs plainly. Trainer::replays() tells what came of it.
    std::optional<bool> record = {};
};

/// A validation set: figures are called "<name>_loss" and so on.
struct NamedDataset {
    std::string name;
    data::DatasetRef dataset;  ///< a data set, which must outlive the fit, or a std::shared_ptr
};

struct EvaluateOptions {
    std::int64_t batch = 256;
    data::Transform transform = {};
    data::Collate collate = {};
};

/// How the steps of a fit were made.
struct Replays {
    std::int64_t replayed = 0;  ///< steps that were replays of a recorded one
    /// Why steps are plain calls, such as "the loss is a function of the program's own"; empty while they are not.
    std::string refused;
};

/// A loss, or a gradient of a finite loss, that was infinite or NaN. The parameters are those from before the step.
class DECLIVITY_API NonFiniteLoss : public Error {
  public:
    NonFiniteLoss(const std::string& what, std::int64_t step, std::string layer)
        : Error(what), step_(step), layer_(std::move(layer)) {}
    ~NonFiniteLoss() override;
    /// Number of the step, from 1.
    [[nodiscard]] std::int64_t step() const noexcept { return step_; }
    /// Path of the first layer whose output was not finite, "loss" for the loss itself, "gradient of PARAMETER" where
    /// only gradients were not finite, empty when a second run was finite.
    [[nodiscard]] const std::string& layer() const noexcept { return layer_; }

  private:
    std::int64_t step_;
    std::string layer_;
};

/// Trains networks over a data set: the host enqueues step after step, and looks at the device only now and then, to
/// report.
///
///     train::Trainer trainer(model, optimizer);                       // cross entropy of scores (N, C) and labels (N)
///     train::Trainer trainer(model, optimizer, nn::MSELoss());
///     train::Trainer trainer(model, optimizer, [](const Tensor& output, const data::Batch& batch) { ... });
///     train::Trainer trainer({.modules = {{"generator", generator}, {"critic", critic}},
///                             .optimizers = {{"generator", first}, {"critic", second}}},
///                            [&](train::Step& step, const data::Batch& batch) { ... });
class DECLIVITY_API Trainer {
  public:
    /// Model and optimizer must outlive the trainer. The loss is cross entropy when none is given.
    /// @throws ValueError when the optimizer holds none of the model's parameters, and for metrics without a name or of
    /// the same
    Trainer(Model model, optim::Optimizer& optimizer, Loss loss = {}, ModelOptions options = {});
    Trainer(Model model, optim::Optimizer& optimizer, BatchLoss loss, ModelOptions options = {});
    Trainer(Model model, optim::Optimizer& optimizer, ModelOptions options);
    /// For steps of the program's own.
    /// @throws ValueError for no module, an empty step, and for names that are empty, have a dot or come twice
    Trainer(Parts parts, TrainStep step);
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    /// Trains until `options.epochs` epochs are complete, those of earlier fits included, from where the trainer
    /// stands; where they are complete already it prints so. Ctrl-C ends it after the current step, once the callbacks
    /// have saved; a second Ctrl-C ends the program. A single validation set is called "test". Data sets are given by
    /// reference, and must outlive the call, or as std::shared_ptr.
    ///
    /// A fit that throws in a step, or because of one, leaves the trainer as it was before that step: progress, sums,
    /// metrics, buffers of the modules such as running statistics, generators and, unless an optimizer itself threw,
    /// parameters and optimizers (of several, those before it have made their step). Another fit goes on with that
    /// step. What was done by callbacks stays.
    /// @return false when it was interrupted or a callback stopped it
    /// @throws NonFiniteLoss; ValueError for options out of range, data sets without examples, while another fit is
    /// under way, and naming a label that is none of the classes that the model has outputs for; whatever reading the
    /// data threw
    bool fit(const data::DatasetRef& train, const FitOptions& options);
    bool fit(const data::DatasetRef& train, const data::DatasetRef& test, const FitOptions& options);
    /// @throws ValueError also for names of validation sets that are empty, "train", or come twice
    bool fit(const data::DatasetRef& train, const std::vector<NamedDataset>& validation, const FitOptions& options);
    /// Figures over a data set, with the model in evaluation mode: "loss", "accuracy", the trainer's metrics, or what
    /// Parts::evaluate reports.
    /// @throws ValueError naming a label that is none of the classes that the model has outputs for, and where a step
    /// of the program's own has no Parts::evaluate
    [[nodiscard]] Evaluation evaluate(const data::DatasetRef& dataset, const EvaluateOptions& options = {});
    /// The model's outputs for a data set, on the device, with the model in evaluation mode: (size, ...). The data set
    /// needs no target.
    /// @throws ValueError where a step of the program's own has no Parts::predict
    [[nodiscard]] Tensor predict(const data::DatasetRef& dataset, const EvaluateOptions& options = {});

    [[nodiscard]] const Progress& progress() const;
    /// Of the fit that is under way, or of the last one.
    [[nodiscard]] const Replays& replays() const;
    /// The only or first one.
    [[nodiscard]] nn::Module& model() const;
    [[nodiscard]] optim::Optimizer& optimizer() const;
    /// All of them; the only ones are called "model" and "optimizer".
    [[nodiscard]] const std::vector<NamedModule>& modules() const;
    [[nodiscard]] const std::vector<NamedOptimizer>& optimizers() const;

    /// Writes modules, optimizers, metrics, progress and the states of generators, so that a training that goes on from
    /// it gives the same numbers to the bit, in the middle of an epoch too. The file is a safetensors file; it is
    /// replaced whole or not at all, and has a checksum.
    /// @throws IoError; ValueError for names that are not UTF-8; during a fit NonFiniteLoss, as the fit would later
    void save(const std::filesystem::path& path) const;
    /// Goes on from a checkpoint. @throws FormatError for a damaged file or a value that is out of range, and for one
    /// that another version of the library wrote, IoError;
    /// ValueError, ShapeError, TypeError when it belongs to other modules, optimizers, metrics or generators;
    /// all is then as it was
    void load(const std::filesystem::path& path);

    /// For callbacks: ends the training after this step.
    void stop();
    /// For callbacks: steps of the whole training, as far as it is planned: as many epochs as the present one.
    [[nodiscard]] std::int64_t planned_steps() const;
    /// For callbacks: the names of the validation sets of the fit that is under way, or of the last one.
    [[nodiscard]] const std::vector<std::string>& validation_sets() const;

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
    virtual void after_epoch(Trainer&, const EpochMetrics&) {}
    /// At the end, also when the training was interrupted; not after an exception.
    virtual void on_end(Trainer&) {}
};

}  // namespace declivity::train
