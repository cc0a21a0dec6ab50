#include <declivity/nn/dropout.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Dropout::Dropout(double probability, const std::optional<Generator>& generator)
    : probability_(probability), generator_(generator) {
    if (!(probability >= 0 && probability <= 1))
        throw ValueError(fmt::format("Dropout: wants a probability in [0, 1], got {}", probability));
}

Tensor Dropout::forward(const Tensor& x) {
    return training() ? dropout(x, guarded(&Dropout::probability_), guarded(&Dropout::generator_)) : x;
}

}  // namespace declivity::nn
