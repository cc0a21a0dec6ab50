#include <declivity/nn/sequential.hpp>

namespace declivity::nn {

Tensor Sequential::forward(const Tensor& x) {
    Tensor out = x;
    for (const auto& [name, child] : children()) out = (*child)(out);
    return out;
}

}  // namespace declivity::nn
