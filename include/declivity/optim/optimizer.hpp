// Layer 6. Optimizer: base class of SGD, Adam and all other optimizers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <declivity/optim/clip_grad.hpp>
#include <declivity/tensor/state_dict.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

/// Parameters of an optimizer: tensors, as returned by Module::parameters(), or named tensors, as returned by
/// Module::named_parameters(); the names become keys of the optimizer's state dict.
class DECLIVITY_API Parameters {
  public:
    Parameters(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}  // NOLINT: implicit by design
    Parameters(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}   // NOLINT
    Parameters(const std::vector<NamedTensor>& named);                         // NOLINT
    [[nodiscard]] const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
    /// Names; empty if there are none.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

  private:
    std::vector<Tensor> tensors_;
    std::vector<std::string> names_;
};

class Optimizer;

/// Operands of Optimizer::update. Each tensor is symbolic: it stands for the elements of all parameters of a group and
/// has no data. Elementwise functions of it are traced; functions that need element values are refused.
class DECLIVITY_API Update {
  public:
    Tensor parameter;  ///< assign the new value
    Tensor gradient;
    Tensor lr;    ///< the learning rate, 0-dimensional
    Tensor step;  ///< step count of the parameter, from 1, of the steps in which it had a gradient; 0-dimensional
    /// Optimizer state of each parameter (a slot); assign the new value.
    /// @throws ValueError for a slot name that was not passed to Optimizer::add
    [[nodiscard]] Tensor& operator[](std::string_view state);

  private:
    friend class Optimizer;
    explicit Update(std::string_view optimizer) : optimizer_(optimizer) {}
    std::string optimizer_;
    std::vector<NamedTensor> states_;
};

/// Base class of optimizers: updates parameters by their gradients. Parameters are organised in groups with their own
/// options; the step of a group is one kernel, for any number of tensors. Learning rates and step counts are in device
/// memory. Steps are counted per parameter, as in PyTorch: a step without a gradient for it does not count. Parameters
/// of f16 and bf16 have an f32 master copy, in which all computation is done; if the parameter was written since the
/// last step, its value replaces the master copy.
///
/// A custom optimizer declares its state slots, and how a step updates parameter and state:
///
///     class SoftSign : public optim::Optimizer {
///       public:
///         SoftSign(const optim::Parameters& parameters, double lr) : Optimizer("SoftSign") {
///             add(parameters, lr, {"m"});
///         }
///
///       protected:
///         void update(std::size_t, optim::Update& x) const override {
///             x["m"] = 0.9 * x["m"] + 0.1 * x.gradient;
///             x.parameter = x.parameter - x.lr * x["m"] / (abs(x["m"]) + 1e-6);
///         }
///     };
class DECLIVITY_API Optimizer {
  public:
    virtual ~Optimizer();
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;
    Optimizer(Optimizer&&) noexcept;
    Optimizer& operator=(Optimizer&&) noexcept;

    /// Updates every parameter that has a gradient, and increments its step count; other parameters and their state are
    /// unchanged. Asynchronous.
    /// @throws ValueError, TypeError, ShapeError, DeviceError for a parameter that was assigned elements of another
    /// type, shape or device (Tensor::assign, Module::to) since the optimizer was created; no group is updated then
    void step();
    /// Drops all gradients.
    void zero_grad();

    /// Number of parameter groups; indices start at 0. @throws ValueError for an index out of range, and in all calls
    /// of a moved-from optimizer
    [[nodiscard]] std::size_t groups() const;
    [[nodiscard]] const std::vector<Tensor>& parameters(std::size_t group) const;
    [[nodiscard]] double learning_rate(std::size_t group = 0) const;
    /// The learning rate at creation of the group, or that of a loaded state; schedules are relative to it.
    [[nodiscard]] double initial_learning_rate(std::size_t group = 0) const;
    /// @throws ValueError for a negative or infinite rate
    void set_learning_rate(double rate, std::size_t group = 0);

    /// Sets a guard against non-finite gradients: while guard[0] is not 0, steps change nothing; a step with an
    /// infinite or NaN gradient sets it before any parameter is changed. i32 [2] on the device of the parameters, see
    /// ops/finite.hpp; an undefined tensor removes the guard.
    void set_guard(const Tensor& guard);

    /// The class for which it is guaranteed that the update formula is the same in each step, so that it is built once
    /// and graph capture may call step() once and replay its kernels, see nn::Module::capture_safe(). The optimizers of
    /// the library return their own class, which does not cover derived classes. void, the default, guarantees nothing.
    [[nodiscard]] virtual const std::type_info& capture_safe() const;
    /// Deprecated name of capture_safe(), for classes that override it under that name.
    [[nodiscard]] virtual const std::type_info& replayable() const;

    /// Everything needed to resume training. Keys contain parameter and state name: "state.features.0.weight.m";
    /// unnamed parameters use their index among all parameters of the optimizer, "state.3.m". "state.3.step", a scalar,
    /// is the step count of the parameter, and "state.3.master" the f32 master copy of an f16 or bf16 parameter. These
    /// share memory with the optimizer. "groups.0.learning_rate" and "groups.0.initial_learning_rate" are copies of the
    /// group's rates in double precision: three f32 numbers whose sum is the rate, for devices without f64.
    [[nodiscard]] StateDict state_dict() const;
    /// Copies values into the tensors of the same names. A step count may have any real type, a rate may also be a
    /// single number of any floating type, and "groups.0.initial_learning_rate" may be missing. In states of earlier
    /// versions, "groups.0.progress" contains the rounded learning rate and one step count for all parameters of the
    /// group.
    /// @throws ValueError listing the missing and unexpected names, ShapeError, TypeError; nothing is changed then
    void load_state_dict(const StateDict& state);

    /// The state with the names of torch.optim: "state.0.exp_avg" for the first parameter of all groups, "state.0.step"
    /// (f32), and "param_groups.0.lr" and "param_groups.0.initial_lr", three f32 numbers whose sum is the rate. As in
    /// PyTorch, a parameter without a step has no state, and SGD has no step counts. A custom optimizer uses the names
    /// passed to add(). Reads the step counts, which synchronises.
    [[nodiscard]] StateDict torch_state_dict() const;
    /// Loads a state with torch.optim names. Parameters may be identified by index or by name, as in
    /// "state.features.0.weight.exp_avg". A parameter without state starts as a new one. Rates may be missing, and may
    /// be numbers of any floating type.
    /// @throws ValueError listing the missing and unexpected names, ShapeError, TypeError; nothing is changed then
    void load_torch_state_dict(const StateDict& state);

  protected:
    /// Per-parameter optimizer state, of the shape of the parameter.
    struct Slot {
        Slot(const char* slot_name, double from = 0)
            : name(slot_name), initial(from) {}  // NOLINT: {"m", "v"} is a list
        std::string name;
        double initial;  ///< initial value of all elements
    };

    /// @param name of the class, for errors and profiles
    explicit Optimizer(std::string_view name);
    /// Adds a parameter group.
    /// @param parameters frozen parameters (requires_grad false) are accepted: without a gradient they are not updated
    /// @throws ValueError for an empty group, an undefined tensor, the result of a function, a duplicate, or names that
    /// are not unique; TypeError, DeviceError and ShapeError unless the group has one floating type and device, and is
    /// dense
    void add(const Parameters& parameters, double learning_rate, std::vector<Slot> slots = {});
    /// Update formula of a group: elementwise functions of tensors and numbers, whose results are assigned to
    /// x.parameter and x["..."]; all of them are evaluated with the values before the step. Called in each step, unless
    /// capture_safe() guarantees that it is constant.
    virtual void update(std::size_t group, Update& x) const = 0;

  private:
    struct Group;
    struct State;
    State& checked_state(std::string_view function) const;
    Group& group_of(std::string_view function, std::size_t index) const;
    bool prepare_step(std::size_t index, std::vector<BufferWrite>& writes);
    void make_formula(std::size_t index);

    std::shared_ptr<State> state_;  // never shared: captures watch it
};

/// @}

}  // namespace declivity::optim
