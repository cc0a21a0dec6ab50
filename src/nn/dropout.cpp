#include <declivity/nn/dropout.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Dropout::Dropout(double p, const std::optional<Generator>& generator) : p_(p), generator_(generator) {
    if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("Dropout: wants p in [0, 1], got {}", p));
}

Tensor Dropout::forward(Tensor x) {
    return training() ? dropout(x, guarded(&Dropout::p_), guarded(&Dropout::generator_)) : x;
}

}  // namespace declivity::nn
