// Floor 3, private. What a loss does with its elements.
#pragma once

#include <declivity/tensor/functions.hpp>

namespace declivity::detail {

inline Tensor reduced(const Tensor& losses, Reduction reduction) {
    return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

}  // namespace declivity::detail
