// Layer 5. Metric: a figure of how good a model is, added up on the device batch by batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <declivity/data/batch.hpp>
#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

/// Base of all metrics. A subclass keeps its state in device tensors, adds to them in `do_update`, and says in `value`
/// what they come to:
///
///     struct Recall : train::Metric {
///         Tensor hits = state("hits", {}), wanted = state("wanted", {});
///         void do_update(const Tensor& output, const Tensor& target) override {
///             hits.add_(sum((argmax(output) == 1) & (target == 1)));
///             wanted.add_(sum(target == 1));
///         }
///         double value(const States& states) const override {
///             return states.number("hits") / states.number("wanted");
///         }
///     };
class DECLIVITY_API Metric {
  public:
    /// State on the host, by name.
    class DECLIVITY_API States {
      public:
        States() = default;
        States(std::vector<std::string> names, std::vector<io::HostArray> arrays);
        /// A state of one element. @throws ValueError naming those there are; ShapeError when it has more
        [[nodiscard]] double number(std::string_view name) const;
        /// All elements, row-major. @throws ValueError naming those there are
        [[nodiscard]] std::vector<double> numbers(std::string_view name) const;

      private:
        [[nodiscard]] const io::HostArray& array(std::string_view name) const;
        std::vector<std::string> names_;
        std::vector<io::HostArray> arrays_;
    };

    /// @param device of the state; default_device() if none. A trainer moves it to its own
    explicit Metric(const std::optional<Device>& device = std::nullopt);
    virtual ~Metric();
    Metric(const Metric&) = delete;
    Metric& operator=(const Metric&) = delete;

    /// Takes a batch in, outside of any graph. Enqueues and returns.
    void update(const Tensor& output, const Tensor& target);
    /// What the batches since reset() came to. Reads the state, and so waits for the device. NaN where there was none.
    [[nodiscard]] double compute();
    /// Forgets all batches.
    void reset();

    /// The state, as a checkpoint keeps it: names and tensors, which share the metric's memory.
    [[nodiscard]] const std::vector<std::pair<std::string, Tensor>>& state() const noexcept { return states_; }
    /// What a state on the host comes to; keeps it for functions such as ConfusionMatrix::counts().
    double compute(States states);
    /// Moves the state.
    void to(const Device& device);

    /// Which class promises that a recorded step may call do_update once and then repeat what it launched, see
    /// nn::Module::capture_safe(). void, as here, promises nothing.
    [[nodiscard]] virtual const std::type_info& capture_safe() const;

  protected:
    /// Registers a tensor of zeros, and gives it. @throws ValueError for a name that is taken or has a dot
    Tensor state(std::string_view name, const Shape& shape, DType dtype = DType::i64);
    /// Adds a batch to the state: it enqueues only, and writes in place (add_). f16 and bf16 outputs come in f32.
    virtual void do_update(const Tensor& output, const Tensor& target) = 0;
    /// What the state comes to.
    [[nodiscard]] virtual double value(const States& states) const = 0;
    /// Of the last compute(). @throws ValueError, naming `function`, when there was none
    [[nodiscard]] const States& computed(std::string_view function) const;

  private:
    Device device_;
    std::vector<std::pair<std::string, Tensor>> states_;
    States computed_;
    bool has_computed_ = false;
};

/// A metric with the name of its figure: "train_<name>", "<name of a validation set>_<name>".
struct NamedMetric {
    /// From the model's output and the batch to what update() gets.
    using Of = std::function<std::pair<Tensor, Tensor>(const Tensor& output, const data::Batch& batch)>;

    std::string name;
    std::shared_ptr<Metric> metric;
    /// The output, and the target (ModelOptions::target), if none.
    Of of = {};
};

}  // namespace declivity::train
