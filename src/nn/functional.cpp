#include <declivity/nn/functional.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Tensor Lambda::forward(Tensor x) {
    if (!function_) throw ValueError(fmt::format("{}: expected a function, got an empty one", type_name_));
    return function_(std::move(x));
}

}  // namespace declivity::nn
