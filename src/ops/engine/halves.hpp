// Floor 2, private. Operands of f16 and bf16 for launches that compute in f32.
#pragma once

#include <declivity/ops/view.hpp>

#include "expression.hpp"

namespace declivity::ops {

/// The elements in f32 where they are halves, otherwise the view itself.
inline View widened(const View& view) {
    return is_half(view.dtype) ? evaluate(Expression::cast(view, compute_type(view.dtype)), view.device()) : view;
}

}  // namespace declivity::ops
