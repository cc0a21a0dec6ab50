#include <declivity/nn/sequential.hpp>

namespace declivity::nn {

Tensor Sequential::forward(Tensor x) {
    for (Layer& layer : layers_) x = layer(std::move(x));
    return x;
}

}  // namespace declivity::nn
