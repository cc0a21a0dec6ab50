#include "loss_weight.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "tensor/access.hpp"
#include "ops/engine/access.hpp"

namespace declivity::train {
namespace {

const CallAttribute* attribute(const FunctionCall& call, std::string_view name) {
    const auto found = std::ranges::find(call.attributes(), name, &CallAttribute::name);
    return found == call.attributes().end() ? nullptr : &*found;
}

std::string_view reduction_of(const FunctionCall& call) {
    const CallAttribute* const reduction = attribute(call, "reduction");
    const auto* const name = reduction == nullptr ? nullptr : std::get_if<std::string_view>(&reduction->value);
    return name == nullptr ? std::string_view() : *name;
}

Tensor as_weight(const Tensor& tensor) { return reshape(tensor.detach(), {}).to(DType::f32); }

}  // namespace

LossWeight LossWeight::of(const LossValue& value, std::string_view function) {
    const NoGrad no_grad;
    if (const Tensor& tensor = value.weight(); tensor.defined()) {
        if (tensor.numel() != 1)
            throw ShapeError(
                fmt::format("{}: expected a weight of one element, got {}", function, tensor.shape().str()));
        ops::require_same_device(function, value.loss().device(), tensor.device());
        return {.tensor = as_weight(tensor)};
    }
    const double number = *value.number();
    if (!(number >= 0) || !std::isfinite(number))
        throw ValueError(fmt::format("{}: expected a weight of at least 0, got {}", function, number));
    return {.count = number};
}

Tensor LossWeight::on(const Device& device) const {
    return tensor.defined() ? tensor : full({}, count, {DType::f32, device});
}

ops::ClassificationWeight LossWeight::view() const {
    ops::ClassificationWeight out{.value = count, .is_sum = is_sum, .ignore_index = ignore_index};
    if (tensor.defined()) out.tensor = tensor.dense_view();
    return out;
}

void LossCalls::called(const FunctionCall& call) {
    if (call.caller() == nullptr) loss_ = nullptr;  // a call that threw has no result
    if (loss_ != nullptr || reduction_of(call).empty()) return;
    loss_ = &call;
    divisors_.last = {};
}

void LossCalls::returned(const FunctionCall& call, std::span<const Tensor> results) {
    if (results.size() != 1) return;
    const Tensor& result = results[0];
    Call record{.result = state_of(result.value())};
    if (&call == loss_) {
        loss_ = nullptr;
        record.is_loss = true;
        const std::string_view reduction = reduction_of(call);
        if (const CallAttribute* const ignored = attribute(call, "ignore_index"))
            if (const auto* const index = std::get_if<std::int64_t>(&ignored->value))
                record.weight.ignore_index = *index;
        if (reduction == "sum") {
            record.weight.is_sum = true;
        } else if (reduction == "mean" && divisors_.last.tensor.defined()) {
            const NoGrad no_grad;
            record.weight.tensor = as_weight(divisors_.last.tensor);
        } else if (reduction == "mean" && divisors_.last.count > 0) {
            record.weight.count = divisors_.last.count;
        } else {
            record.known_weight = false;
        }
        divisors_.last = {};
    } else if (call.caller() == nullptr && result.numel() == 1 && call.name() == "mean") {
        record.weight.count = static_cast<double>(call.inputs()[0].tensors[0].numel());
    } else {
        return;
    }
    calls_.push_back(std::move(record));
}

const LossCalls::Call* LossCalls::find_call(const Tensor& loss) const {
    const auto match = std::ranges::find_if(calls_, [&](const Call& call) {
        const auto result = call.result.lock();
        return result && result == std::shared_ptr<const void>(state_of(loss.value()));
    });
    return match == calls_.end() ? nullptr : &*match;
}

std::optional<LossWeight> LossCalls::weight_of(const Tensor& loss, std::int64_t examples) const {
    const Call* const call = loss.defined() ? find_call(loss) : nullptr;
    if (call == nullptr || !call->known_weight) return std::nullopt;
    // The mean of losses is a combination of them.
    if (!call->is_loss && std::ranges::any_of(calls_, &Call::is_loss)) return std::nullopt;
    LossWeight weight = call->weight;
    if (weight.is_sum) weight.count = static_cast<double>(examples);
    return weight;
}

std::optional<LossWeight> LossCalls::weight_of_combination(const Tensor& loss, std::int64_t examples) const {
    if (auto direct = weight_of(loss, examples)) return direct;
    LossWeight total{.count = 0};
    const NoGrad no_grad;
    for (const Call& call : calls_) {
        if (!call.is_loss) continue;
        if (!call.known_weight || call.weight.is_sum) return std::nullopt;  // the program divides by itself
        if (call.weight.tensor.defined())
            total.tensor = total.tensor.defined() ? total.tensor + call.weight.tensor : call.weight.tensor;
        else total.count += call.weight.count;
        if (calls_.size() == 1) total.ignore_index = call.weight.ignore_index;
    }
    if (total.tensor.defined() && total.count > 0) total.tensor = total.tensor + total.count;
    return total.tensor.defined() || total.count > 0 ? std::optional(total) : std::nullopt;
}

}  // namespace declivity::train
