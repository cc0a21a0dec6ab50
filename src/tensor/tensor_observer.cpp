#include "tensor_observer.hpp"

namespace declivity::detail {
namespace {

constexpr char kKey = 0;

}  // namespace

TensorObserver* TensorObserver::current() {
    Capture* const capture = Capture::current();
    return capture == nullptr ? nullptr : static_cast<TensorObserver*>(capture->user_data(&kKey).get());
}

void TensorObserver::attach(Capture& capture, const std::shared_ptr<TensorObserver>& observer) {
    capture.user_data(&kKey) = observer;
}

}  // namespace declivity::detail
