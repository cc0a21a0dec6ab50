// Layer 6, private. State of an Optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/optim/optimizer.hpp>

#include "gradient_check.hpp"
#include "ops/engine/formula.hpp"
#include "tensor/access.hpp"

namespace declivity::optim {

/// Index of the first step count in a group's scalars, after the learning rate.
constexpr std::int64_t kSteps = 1;

struct Optimizer::Group {
    std::vector<Tensor> parameters;
    std::vector<std::string> names;  // of the parameters
    std::vector<Slot> slot_names;
    std::vector<std::vector<Tensor>> slots;  // by name, then parameter
    std::vector<Tensor> masters = {};        // f32 master copies of f16 and bf16 parameters
    Tensor scalars;                  // learning rate and step counts, on the device: a step of the group is one launch
    DType dtype = {};                // of the parameters
    std::vector<Shape> shapes = {};  // of each parameter
    double initial_rate = 0, rate = 0;
    std::optional<ops::Formula> formula = {};  // of the last step
    ops::MultiTensor tensors;

    [[nodiscard]] std::size_t roles() const { return 2 + slots.size() + (masters.empty() ? 0 : 1); }
    /// Step counts of the parameters.
    [[nodiscard]] ops::View steps() const {
        return ops::sliced(scalars.view(), 0, kSteps, static_cast<std::int64_t>(parameters.size()));
    }
};

struct Optimizer::State {
    std::string name;
    std::vector<Group> groups;
    Tensor guard;
    Tensor own_guard;  // never set: used if no other guard was given
    GradientCheck check_gradients;

    [[nodiscard]] bool is_guarded() const { return guard.defined() && state_of(guard) != state_of(own_guard); }
};

}  // namespace declivity::optim
