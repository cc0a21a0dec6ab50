#include "tensor_state.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "ops/engine/lazy_array.hpp"
#include "runtime/per_device.hpp"
#include "tensor_observer.hpp"

namespace declivity::detail {

std::unique_lock<std::mutex> lock_tensor(const TensorState& tensor) {
    refuse_after_fork("a tensor");
    // A mutex per tensor would make all tensors larger.
    struct Locks {
        std::array<std::mutex, 64> mutexes;
    };
    auto& mutexes = per_device<Locks>(tensor.value.device()).mutexes;
    return std::unique_lock(mutexes[std::hash<const void*>()(&tensor) / alignof(std::max_align_t) % mutexes.size()]);
}

void exchange_grad(TensorState& tensor, Tensor gradient) {
    const auto lock = lock_tensor(tensor);
    std::swap(tensor.grad, gradient);  // the previous gradient is destroyed after unlocking
}

void share_memory(const Tensor& a, const Tensor& b) {
    const auto lock = lock_tensor(*state_of(a));  // views of one tensor may be made by several threads
    auto& shared = state_of(a)->shares;
    if (!shared) shared = std::make_shared<const char>();
    state_of(b)->shares = shared;
}

TensorState& checked_state(const std::shared_ptr<TensorState>& state, std::string_view function) {
    if (!state) throw ValueError(fmt::format("{}: expected a tensor, got an undefined one", function));
    return *state;
}

const ops::LazyArray& access_value(const std::shared_ptr<TensorState>& state, std::string_view function) {
    const ops::LazyArray& value = checked_state(state, function).value;
    if (auto* const observer = TensorObserver::current()) observer->uses(state);
    return value;
}

void require_no_overlap(std::string_view function, const ops::View& view) {
    for (int axis = 0; axis < view.rank(); ++axis)
        if (view.shape[axis] > 1 && view.strides[axis] == 0)
            throw ShapeError(
                fmt::format("{}: expected a tensor whose elements do not share memory, got shape {} with strides {} "
                            "(write to a clone() of an expanded tensor)",
                            function, view.shape.str(), view.strides.str()));
}

ops::LazyArray donated_elements(Tensor& x) {
    (void)x.value();  // reports the use to the capture tracker
    TensorState& state = *state_of(x);
    return !ops::is_shared(state_of(x)) && !state.requires_grad ? std::move(state.value) : state.value;
}

ops::View writable_view(const ops::LazyArray& x) {
    const ops::View& from = x.view();
    if (!ops::is_shared(x)) {
        ops::launch_readers(from.buffer);
        if (ops::may_write(from)) return from;
    }
    const ops::View out = ops::View::make(from.device(), from.dtype, from.shape);
    ops::copy(from, out);
    return out;
}

}  // namespace declivity::detail
