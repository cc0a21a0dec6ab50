#include "tensor_observer.hpp"

namespace declivity::detail {
namespace {

constexpr char kKey = 0;

}  // namespace

TensorObserver* TensorObserver::current() {
    Capture* const capture = Capture::current();
    return capture == nullptr ? nullptr : static_cast<TensorObserver*>(capture->attached(&kKey).get());
}

void TensorObserver::attach(Capture& capture, const std::shared_ptr<TensorObserver>& observer) {
    capture.attached(&kKey) = observer;
}

}  // namespace declivity::detail
