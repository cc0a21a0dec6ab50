// Layer 4. Optimizer: what SGD, Adam and all others have in common.
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

/// Parameters as optimizers take them: tensors, as Module::parameters() gives them, or tensors with the names by which
/// the optimizer keeps its state then, as Module::named_parameters() does.
class DECLIVITY_API Parameters {
  public:
    Parameters(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}  // NOLINT: that is its purpose
    Parameters(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}   // NOLINT
    Parameters(const std::vector<NamedTensor>& named);                         // NOLINT
    [[nodiscard]] const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
    /// Empty where they have none.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

  private:
    std::vector<Tensor> tensors_;
    std::vector<std::string> names_;
};

class Optimizer;

/// What a step is made of (Optimizer::update). Each tensor stands for the elements of all parameters of a group and has
/// none itself: elementwise functions of them are noted, whatever needs elements is refused.
class DECLIVITY_API Update {
  public:
    Tensor parameter;  ///< what is assigned is the new one
    Tensor gradient;
    Tensor lr;    ///< the learning rate, without axes
    Tensor step;  ///< the number of this step from 1 among those in which the parameter had a gradient, without axes
    /// A tensor that the optimizer keeps beside each parameter; what is assigned is the new one.
    /// @throws ValueError for a name that Optimizer::add was not given
    [[nodiscard]] Tensor& operator[](std::string_view state);

  private:
    friend class Optimizer;
    explicit Update(std::string_view optimizer) : optimizer_(optimizer) {}
    std::string optimizer_;
    std::vector<NamedTensor> states_;
};

/// Changes parameters by their gradients. Parameters come in groups, each with settings of its own; a group's step is
/// one kernel, however many tensors it has. Learning rates and step counts live in device memory. Steps are counted for
/// each parameter, as PyTorch does: a step in which it has no gradient is none of its own. Parameters of f16 and bf16
/// have a master copy in f32, in which all is computed; a parameter that was written since counts instead of its copy.
///
/// An optimizer of one's own says what it keeps beside each parameter, and how a step changes both:
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

    /// Updates every parameter that has a gradient, and counts the step for it; others, and what is kept beside them,
    /// stay. Enqueues and returns.
    /// @throws ValueError, TypeError, ShapeError, DeviceError for a parameter that was given elements of another type,
    /// shape or device (Tensor::assign, Module::to) since the optimizer was made; no group is updated then
    void step();
    /// Forgets all gradients.
    void zero_grad();

    /// Groups are counted from 0. @throws ValueError for a group that there is not, and in all calls of an optimizer
    /// that was moved from
    [[nodiscard]] std::size_t groups() const;
    [[nodiscard]] const std::vector<Tensor>& parameters(std::size_t group) const;
    [[nodiscard]] double learning_rate(std::size_t group = 0) const;
    /// The rate that the group was made with, or that of a loaded state; schedules are fractions of it.
    [[nodiscard]] double initial_learning_rate(std::size_t group = 0) const;
    /// @throws ValueError for a negative or infinite rate
    void set_learning_rate(double rate, std::size_t group = 0);

    /// While guard[0] is not 0, steps change nothing; a step with a gradient that is infinite or NaN sets it before a
    /// parameter is changed. i32 [2] on the device of the parameters, see ops/finite.hpp; an undefined tensor: steps
    /// are not guarded any more.
    void set_guard(const Tensor& guard);

    /// Which class promises that each step's formula is the same, so that it is made once, and a recorded step may
    /// call step() once and then repeat what it launched, see nn::Module::capture_safe(): the library's optimizers do,
    /// for themselves and not for classes that derive from them. void, as here, promises nothing.
    [[nodiscard]] virtual const std::type_info& capture_safe() const;

    /// Everything that a resumed training needs, by names that say parameter and state: "state.features.0.weight.m";
    /// parameters without a name have their number among all of the optimizer's, "state.3.m". "state.3.step", a scalar,
    /// counts the steps of the parameter, and "state.3.master" is the f32 copy of one of f16 or bf16. These share the
    /// optimizer's memory. "groups.0.learning_rate" and "groups.0.initial_learning_rate" are copies of the group's
    /// rates, in double: three numbers of f32 whose sum it is, for devices without f64.
    [[nodiscard]] StateDict state_dict() const;
    /// Copies values into the tensors of the same names. A step count may be of any real type, a rate also one number
    /// of any floating type, and "groups.0.initial_learning_rate" may be missing. In states of earlier versions,
    /// "groups.0.progress" holds the learning rate, rounded, and one step count for all parameters of the group.
    /// @throws ValueError naming the missing and unexpected names, ShapeError, TypeError; nothing is changed then
    void load_state_dict(const StateDict& state);

    /// The state by the names of torch.optim: "state.0.exp_avg" of the first parameter of all groups, "state.0.step"
    /// (f32), and "param_groups.0.lr" and "param_groups.0.initial_lr", three numbers of f32 whose sum the rate is. As
    /// there, a parameter that took no step has no state, and SGD counts no steps. An optimizer of one's own has the
    /// names that it gave to add(). Reads the step counts.
    [[nodiscard]] StateDict torch_state_dict() const;
    /// Loads such a state. Parameters may be named by their number or by their name, as in
    /// "state.features.0.weight.exp_avg". A parameter without any state begins as a new one. Rates may be missing, and
    /// may be numbers of any floating type.
    /// @throws ValueError naming the missing and unexpected names, ShapeError, TypeError; nothing is changed then
    void load_torch_state_dict(const StateDict& state);

  protected:
    /// Something that is kept beside each parameter, of its shape.
    struct Slot {
        Slot(const char* called, double from = 0) : name(called), initial(from) {}  // NOLINT: {"m", "v"} is a list
        std::string name;
        double initial;  ///< what all its elements are at first
    };

    /// @param name of the class, for errors and profiles
    explicit Optimizer(std::string_view name);
    /// Another group.
    /// @param parameters frozen ones (requires_grad false) are accepted: without a gradient they stay as they are
    /// @throws ValueError for an empty group, an undefined tensor, one that is the result of a function, one given
    /// twice, or names that are not distinct; TypeError, DeviceError and ShapeError when the group is not of one
    /// floating type and device, and dense
    void add(const Parameters& parameters, double learning_rate, std::vector<Slot> slots = {});
    /// The formula of a group's step, in elementwise functions of tensors and numbers, whose results are assigned to
    /// x.parameter and x["..."]: all of them are made from what was there before the step. Called in each step, unless
    /// capture_safe() promises that it is the same.
    virtual void update(std::size_t group, Update& x) const = 0;

  private:
    struct Group;
    struct State;
    State& checked_state(std::string_view function) const;
    Group& group_of(std::string_view function, std::size_t index) const;
    bool prepare_step(std::size_t index, std::vector<BufferWrite>& writes);
    void make_formula(std::size_t index);

    std::shared_ptr<State> state_;  // shared with nobody: recordings watch it
};

}  // namespace declivity::optim
