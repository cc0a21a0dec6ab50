#include "user_step.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "tensor/tensor_state.hpp"

namespace declivity::train {
namespace {

/// Detects whether a gradient was created or written in between, without reading its elements, so that a captured step
/// does not depend on gradients left by an earlier one.
class GradientMark {
  public:
    explicit GradientMark(const Tensor& parameter) {
        Tensor gradient;
        {
            const auto lock = declivity::detail::lock_tensor(*state_of(parameter));
            gradient = state_of(parameter)->grad;
        }
        if (!gradient.defined()) return;
        state_ = state_of(gradient);
        version_ = gradient.view().buffer.version();
    }
    friend bool operator==(const GradientMark& a, const GradientMark& b) {
        return a.state_ == b.state_ && a.version_ == b.version_;
    }

  private:
    std::shared_ptr<const void> state_;
    std::uint64_t version_ = 0;
};

}  // namespace

Step::~Step() = default;

void require_loss(const Tensor& loss, const char* function) {
    if (!loss.defined())
        throw ValueError(fmt::format("{}: expected a loss of one element, got an undefined tensor{}", function,
                                     std::string_view(function) == "Trainer" ? " from the loss function" : ""));
    if (loss.numel() != 1)
        throw ShapeError(fmt::format("{}: expected a loss of one element, got {}", function, loss.shape().str()));
}

bool check_loss(const Tensor& loss, const LossWeight& weight, const Tensor& guard, bool skips) {
    const Tensor upcast = loss.detach().to(compute_type(loss.dtype()));
    if (!weight.tensor.defined() && weight.count > 0) {
        ops::check_finite(upcast.dense_view(), guard.view());
        return false;
    }
    ops::check_finite(upcast.dense_view(), weight.on(loss.device()).dense_view(), guard.view(), skips);
    return skips;
}

std::string non_finite_gradient(const Trainer::State& state) {
    for (auto module_entry = state.modules.rbegin(); module_entry != state.modules.rend(); ++module_entry) {
        const auto parameters = module_entry->module.named_parameters();
        for (auto parameter_entry = parameters.rbegin(); parameter_entry != parameters.rend(); ++parameter_entry)
            if (const Tensor gradient = parameter_entry->tensor.grad(); gradient.defined() && !is_finite(gradient))
                return state.has_model() ? parameter_entry->name : module_entry->name + "." + parameter_entry->name;
    }
    return {};
}

bool is_finite(const Tensor& tensor) {
    const NoGrad no_grad;
    const Tensor guard = zeros({2}, {DType::i32, tensor.device()});
    ops::check_finite(tensor.detach().to(compute_type(tensor.dtype())).dense_view(), guard.view());
    return guard.to_vector<std::int32_t>()[0] == 0;
}

void UserStep::end() {
    calls_ = nullptr;
    if (purpose_ != Purpose::train) return;
    if (may_skip_) ops::end_skip(state_.guard.view());
    if (checked_) return;
    const NoGrad no_grad;
    slice(state_.guard, 0, 1, 2).add_(1);
}

void UserStep::backward(const LossValue& value) {
    const Tensor& loss = value.loss();
    if (purpose_ == Purpose::evaluate) throw ValueError("Step::backward: expected a training step, got an evaluation");
    require_loss(loss, "Step::backward");
    LossWeight weight;
    if (value.has_weight()) weight = LossWeight::of(value, "Step::backward");
    else if (calls_ != nullptr)
        weight = calls_->weight_of_combination(loss, examples_).value_or(LossWeight::of_examples(examples_));
    if (purpose_ == Purpose::diagnose) {
        const bool weightless = weight.on(loss.device()).item<float>() == 0;
        found_loss_ = found_loss_ || (!weightless && !is_finite(loss));
        loss.backward();
        if (!weightless && !found_loss_ && found_gradient_.empty()) found_gradient_ = non_finite_gradient(state_);
        return;
    }
    {
        if (checked_) {  // counted already
            const NoGrad no_grad;
            slice(state_.guard, 0, 1, 2).sub_(1);
        }
        may_skip_ = check_loss(loss, weight, state_.guard, true) || may_skip_;
        checked_ = true;
    }
    std::vector<std::pair<Tensor, GradientMark>> marks;
    for (const auto& [name, optimizer] : state_.optimizers)
        for (std::size_t group = 0; group < optimizer.groups(); ++group)
            for (const Tensor& parameter : optimizer.parameters(group))
                marks.emplace_back(parameter, GradientMark(parameter));
    loss.backward();
    // Checked here as well as in each optimizer: the first of several must not step if the gradients of another one are
    // not finite. Gradients of an earlier step were checked then.
    std::vector<Tensor> parameters;
    for (const auto& [parameter, mark] : marks)
        if (!(GradientMark(parameter) == mark)) parameters.push_back(parameter);
    check_gradients_(parameters, state_.guard);
}

void UserStep::report(std::string_view name, const LossValue& value) {
    if (purpose_ == Purpose::diagnose) return;
    const std::int64_t examples = capture_guard([this] { return examples_; });
    LossWeight weight = LossWeight::of_examples(examples);
    if (value.has_weight()) weight = LossWeight::of(value, "Step::report");
    else if (calls_ != nullptr) weight = calls_->weight_of(value, examples).value_or(weight);
    sums_.add(name, value, weight);
}

std::int64_t UserStep::number() const {
    return capture_guard([this] { return number_.value_or(state_.progress.step); });
}

}  // namespace declivity::train
