// Layer 7. Metric: base class of metrics, accumulated on the device batch by batch.
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

/// @addtogroup train
/// @{

/// Base class of all metrics. A subclass keeps its state in device tensors, accumulates into them in `do_update`, and
/// computes the result in `value`:
///
///     struct Recall : train::Metric {
///         Tensor hits = state("hits", {}), positives = state("positives", {});
///         void do_update(const Tensor& output, const Tensor& target) override {
///             hits.add_(sum((argmax(output) == 1) & (target == 1)));
///             positives.add_(sum(target == 1));
///         }
///         double value(const States& states) const override {
///             return states.number("hits") / states.number("positives");
///         }
///     };
class DECLIVITY_API Metric {
  public:
    /// Copy of the state on the host, by name.
    class DECLIVITY_API States {
      public:
        States() = default;
        States(std::vector<std::string> names, std::vector<io::HostArray> arrays);
        /// A state of one element. @throws ValueError listing the available names; ShapeError if it has more elements
        [[nodiscard]] double number(std::string_view name) const;
        /// All elements, row-major. @throws ValueError listing the available names
        [[nodiscard]] std::vector<double> numbers(std::string_view name) const;

      private:
        [[nodiscard]] const io::HostArray& array(std::string_view name) const;
        std::vector<std::string> names_;
        std::vector<io::HostArray> arrays_;
    };

    /// @param device of the state; default_device() if none. A trainer moves it to its own device
    explicit Metric(const std::optional<Device>& device = std::nullopt);
    virtual ~Metric();
    Metric(const Metric&) = delete;
    Metric& operator=(const Metric&) = delete;

    /// Accumulates a batch, with gradients disabled. Asynchronous.
    void update(const Tensor& output, const Tensor& target);
    /// Returns the metric over all batches since reset(). Reads the state, and so synchronises. NaN if there was no
    /// batch.
    [[nodiscard]] double compute();
    /// Resets the state.
    void reset();

    /// The state as saved in checkpoints: names and tensors, which share memory with the metric.
    [[nodiscard]] const std::vector<std::pair<std::string, Tensor>>& state() const noexcept { return states_; }
    /// Computes the metric from a state on the host, which is kept for functions such as ConfusionMatrix::counts().
    double compute(States states);
    /// Moves the state to a device.
    void to(const Device& device);

    /// The class for which it is guaranteed that graph capture may call do_update once and replay its kernels, see
    /// nn::Module::capture_safe(). void, the default, guarantees nothing.
    [[nodiscard]] virtual const std::type_info& capture_safe() const;
    /// Deprecated name of capture_safe(), for classes that override it under that name.
    [[nodiscard]] virtual const std::type_info& replayable() const;

  protected:
    /// Registers and returns a zero tensor. @throws ValueError for a duplicate name or one with a dot
    Tensor state(std::string_view name, const Shape& shape, DType dtype = DType::i64);
    /// Accumulates a batch into the state: asynchronously and in place (add_). f16 and bf16 outputs are upcast to f32.
    virtual void do_update(const Tensor& output, const Tensor& target) = 0;
    /// Computes the metric from the state.
    [[nodiscard]] virtual double value(const States& states) const = 0;
    /// State of the last compute(). @throws ValueError, naming `function`, if there was none
    [[nodiscard]] const States& last_states(std::string_view function) const;
    [[deprecated("Metric::last_states")]] [[nodiscard]] const States& computed(std::string_view function) const {
        return last_states(function);
    }

  private:
    Device device_;
    std::vector<std::pair<std::string, Tensor>> states_;
    States computed_;
    bool has_computed_ = false;
};

/// A metric and its name, which is reported as "train_<name>", "<name of a validation set>_<name>".
struct NamedMetric {
    /// Maps the model's output and the batch to the arguments of update().
    using Of = std::function<std::pair<Tensor, Tensor>(const Tensor& output, const data::Batch& batch)>;

    std::string name;
    std::shared_ptr<Metric> metric;
    /// If empty: the output and the target (ModelOptions::target).
    Of of = {};
};

/// @}

}  // namespace declivity::train
