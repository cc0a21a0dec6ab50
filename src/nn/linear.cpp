#include <declivity/nn/linear.hpp>

#include <cmath>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/lora.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

void require_no_adapter(const Lora* adapter) {
    if (adapter != nullptr)
        throw ValueError("Linear::add_lora: expected a layer without an adapter, got one with an adapter");
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options) {
    if (in_features < 1 || out_features < 1)
        throw ValueError(fmt::format("Linear: expected in_features and out_features of at least 1, got {} and {}",
                                     in_features, out_features));
    const TensorOptions tensor{options.dtype, options.device};
    const double bound = 1 / std::sqrt(static_cast<double>(in_features));
    weight_ = parameter("weight", uniform({out_features, in_features}, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_features}, -bound, bound, tensor) : Tensor());
}

Tensor Linear::forward(Tensor x) {
    if (lora_ == nullptr || lora_->merged()) return linear(x, weight_, bias_);
    const Tensor base = linear(x, weight_, bias_);
    const Tensor y = (base + (*lora_)(x)).to(base.dtype());
    // Evaluated now: a lazy expression saved for backward would keep both products alive.
    if (y.requires_grad()) (void)y.view();
    return y;
}

Lora& Linear::add_lora(const LoraOptions& options) {
    require_no_adapter(lora_);  // before random numbers are drawn
    const Tensor weight = weight_;
    return add_lora(Lora(weight.size(1), weight.size(0), options, weight.device()));
}

Lora& Linear::add_lora(Lora adapter) {
    require_no_adapter(lora_);
    const Tensor weight = weight_, bias = bias_;
    if (adapter.a().size(1) != weight.size(1) || adapter.b().size(0) != weight.size(0))
        throw ShapeError(fmt::format("Linear::add_lora: expected an adapter for a weight {}, got one for {}",
                                     weight.shape().str(), Shape{adapter.b().size(0), adapter.a().size(1)}.str()));
    lora_ = &add("lora", std::move(adapter));
    Tensor(weight).set_requires_grad(false);
    if (bias.defined()) Tensor(bias).set_requires_grad(false);
    note_change();
    return *lora_;
}

void Linear::add_to_weight(double factor) {
    if (lora_ == nullptr) throw ValueError("Linear: expected a layer with an adapter, see add_lora()");
    const NoGrad no_grad;
    Tensor weight = weight_;
    weight.copy_((weight.to(DType::f32) + lora_->delta().to(DType::f32) * factor).to(weight.dtype()));
    lora_->merged_ = factor > 0;
    note_change();
}

void Linear::merge_lora() {
    if (lora_ == nullptr || !lora_->merged()) add_to_weight(1);
}

void Linear::unmerge_lora() {
    if (lora_ == nullptr || lora_->merged()) add_to_weight(-1);
}

std::int64_t Linear::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    return inputs.at(0).numel() * outputs.at(0).shape().back();
}

}  // namespace declivity::nn
