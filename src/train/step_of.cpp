#include "step_of.hpp"

#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <declivity/tensor/record.hpp>
#include <fmt/format.h>

namespace declivity::train {

Step::~Step() = default;

void require_loss(const Tensor& loss, const char* function) {
    if (!loss.defined())
        throw ValueError(fmt::format("{}: wants a loss of one element, got an undefined tensor{}", function,
                                     std::string_view(function) == "Trainer" ? " from the loss function" : ""));
    if (loss.numel() != 1)
        throw ShapeError(fmt::format("{}: wants a loss of one element, got {}", function, loss.shape().str()));
}

void check_loss(const Tensor& loss, const Tensor& guard) {
    ops::check_finite(loss.detach().to(compute_type(loss.dtype())).dense_view(), guard.view());
}

bool is_finite(const Tensor& tensor) {
    const NoGrad no_grad;
    const Tensor guard = zeros({2}, {DType::i32, tensor.device()});
    check_loss(tensor, guard);
    return guard.to_vector<std::int32_t>()[0] == 0;
}

void StepOf::end() {
    if (purpose_ != Purpose::train || checked_) return;
    const NoGrad no_grad;
    slice(state_.guard, 0, 1, 2).add_(1);
}

void StepOf::backward(const Tensor& loss) {
    if (purpose_ == Purpose::evaluate) throw ValueError("Step::backward: wants a training step, got an evaluation");
    require_loss(loss, "Step::backward");
    if (purpose_ == Purpose::find) {
        found_ = found_ || !is_finite(loss);
    } else {
        if (checked_) {  // counted already
            const NoGrad no_grad;
            slice(state_.guard, 0, 1, 2).sub_(1);
        }
        check_loss(loss, state_.guard);
        checked_ = true;
    }
    loss.backward();
}

void StepOf::report(std::string_view name, const Tensor& value) {
    if (purpose_ != Purpose::find) sums_.add(name, value, record_guard([this] { return examples_; }));
}

std::int64_t StepOf::number() const {
    return record_guard([this] { return number_.value_or(state_.progress.step); });
}

}  // namespace declivity::train
