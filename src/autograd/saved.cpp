// Values saved for backward rules, and what has happened to them since.
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "graph.hpp"
#include "ops/engine/lazy_array.hpp"
#include "tensor/tensor_state.hpp"
#include "ops/engine/access.hpp"

namespace declivity {

Saved::Saved(const Tensor& input) {
    if (!input.defined()) return;
    value_ = input.value();
    const detail::TensorState& state = *state_of(input);
    if (state.node) {
        node_ = state.node;
        output_ = state.output;
    } else if (state.requires_grad) {
        leaf_ = input;
    }
    // Elements that have not been computed cannot have been written.
    if (value_.computed()) version_ = value_.view().buffer.version();
}

Saved::~Saved() { detail::release_node(std::move(node_)); }

Saved Saved::result(const ops::LazyArray& value) {
    Saved saved;
    saved.value_ = value;
    if (value.computed()) saved.version_ = value.view().buffer.version();
    return saved;
}

std::uint64_t Saved::wanted_version() const { return version_ ? *version_ : ops::first_version(value_); }

bool Saved::is_unmodified() const {
    return value_ && (!value_.computed() || value_.view().buffer.version() == wanted_version());
}

bool Saved::reassigned() const { return leaf_.defined() && state_of(leaf_.value()) != state_of(value_); }

void Saved::require_intact(std::string_view function) const {
    if (value_ && !is_unmodified())
        throw ValueError(
            fmt::format("backward of {}: a tensor of shape {} that it needs was written in place after the forward "
                        "call (version {}, expected {}); write to a clone() instead",
                        function, value_.shape().str(), value_.view().buffer.version(), wanted_version()));
}

Tensor Saved::get(std::string_view function) const {
    require_intact(function);
    if (!value_) return {};
    if (leaf_.defined() && !reassigned()) return leaf_;
    if (leaf_.defined() && grad_enabled())
        throw ValueError(
            fmt::format("backward of {}: a tensor of shape {} that it needs was replaced by assign() after "
                        "the forward call, so "
                        "that its higher-order gradients are unknown",
                        function, leaf_.shape().str()));
    Tensor out(value_);
    state_of(out)->node = node_;
    state_of(out)->output = output_;
    return out;
}

ops::LazyArray Saved::value(std::string_view function) const {
    require_intact(function);
    if (leaf_.defined()) (void)leaf_.value();  // reports the use to the capture tracker
    return value_;
}

}  // namespace declivity
