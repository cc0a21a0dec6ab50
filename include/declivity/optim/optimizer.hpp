// Floor 4. Optimizer: what SGD, Adam and AdamW have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::optim {

/// Changes parameters by their gradients. Parameters come in groups, each with settings of its own; a group is updated
/// by a few launches, however many tensors it has. Learning rate and step count live in device memory.
class DECLIVITY_API Optimizer {
  public:
    virtual ~Optimizer();
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;
    Optimizer(Optimizer&&) noexcept;
    Optimizer& operator=(Optimizer&&) noexcept;

    /// Updates every parameter that has a gradient. Enqueues and returns.
    void step();
    /// Forgets all gradients.
    void zero_grad();

    /// Groups are counted from 0. @throws ValueError for a group that there is not, and in all calls of an optimizer
    /// that was moved from
    [[nodiscard]] std::size_t groups() const;
    [[nodiscard]] const std::vector<Tensor>& parameters(std::size_t group) const;
    [[nodiscard]] double learning_rate(std::size_t group = 0) const;
    /// The rate that the group was made with; schedules are fractions of it.
    [[nodiscard]] double initial_learning_rate(std::size_t group = 0) const;
    /// @throws ValueError for a negative or infinite rate
    void set_learning_rate(double rate, std::size_t group = 0);

    /// While guard[0] is not 0, steps change nothing. i32 [2] on the device of the parameters, see ops/finite.hpp.
    void set_guard(const Tensor& guard);

    /// Which class promises that a recorded step may call step() once and then repeat what it launched, see
    /// nn::Module::replayable(): SGD, Adam and AdamW do, for themselves and not for classes that derive from them.
    /// void, as here, promises nothing.
    [[nodiscard]] virtual const std::type_info& replayable() const;

    /// Everything that a resumed training needs: moments, step counts and rates, by names like "0.m.3" (group, state,
    /// parameter). The tensors share the optimizer's memory.
    [[nodiscard]] std::vector<std::pair<std::string, Tensor>> state() const;
    /// @throws ValueError for missing or unexpected names, ShapeError, TypeError; nothing is changed then
    void load_state(const std::vector<std::pair<std::string, Tensor>>& state);

  protected:
    struct Group;
    struct State;

    Optimizer();
    /// @param slots names of the tensors kept beside each parameter ("m", "v")
    /// @throws ValueError for an empty group, an undefined tensor, one that requires no gradient, or one given twice;
    /// TypeError and DeviceError when the group is not of one type and device
    void add(const std::vector<Tensor>& parameters, double learning_rate, std::vector<std::string> slots);
    /// One update of the parameters that have gradients. `roles`: parameters, gradients, then the slots.
    virtual void update(std::size_t group, const std::vector<std::vector<ops::View>>& roles, const ops::View& progress,
                        const ops::View& guard) = 0;

  private:
    State& checked_state(std::string_view function) const;
    Group& group_of(std::string_view function, std::size_t index) const;

    std::shared_ptr<State> state_;  // shared with nobody: recordings watch it
};

/// Scales the gradients of all parameters so that their common norm is at most `max_norm` (Pascanu et al. 2013).
/// Parameters without a gradient are left out. Nothing waits: the norm before clipping stays on the device, shape [1].
DECLIVITY_API Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm);
/// The same; the gradients are changed in place.
inline Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm) {
    return clip_grad_norm(parameters, max_norm);
}

}  // namespace declivity::optim
