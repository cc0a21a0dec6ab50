#include <declivity/tensor/grad_mode.hpp>

#include <utility>

#include "tensor_state.hpp"

namespace declivity {
namespace {

thread_local bool grad_mode_of_thread = true;

}  // namespace

bool& detail::grad_mode() { return grad_mode_of_thread; }

NoGrad::NoGrad() : before_(std::exchange(grad_mode_of_thread, false)) {}
NoGrad::~NoGrad() { grad_mode_of_thread = before_; }
EnableGrad::EnableGrad() : before_(std::exchange(grad_mode_of_thread, true)) {}
EnableGrad::~EnableGrad() { grad_mode_of_thread = before_; }
bool grad_enabled() { return grad_mode_of_thread; }

}  // namespace declivity
