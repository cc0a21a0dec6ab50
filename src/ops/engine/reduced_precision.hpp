// Layer 2, private. Operands of f16 and bf16 for launches that compute in f32.
#pragma once

#include <declivity/ops/view.hpp>

#include "expression.hpp"

namespace declivity::ops {

/// The elements in f32 where they are halves, otherwise the view itself, or that there is none.
inline View widened(const View& view) {
    return view.buffer && is_16bit_float(view.dtype)
               ? evaluate(Expression::cast(view, compute_type(view.dtype)), view.device())
               : view;
}

/// For kernels that add up in parts: sums of f16 and bf16 lie in f32, and are rounded once at the end.
class RoundedOutput {
  public:
    /// @param in_parts false: the kernel rounds by itself, and `exact` is `out`, which may be none
    explicit RoundedOutput(const View& out, bool in_parts = true)
        : out_(out),
          exact_(in_parts && out.buffer && is_16bit_float(out.dtype)
                     ? View::make(out.device(), compute_type(out.dtype), out.shape)
                     : out) {}
    /// Where the sums go.
    [[nodiscard]] const View& exact() const { return exact_; }
    void round() const {
        if (exact_.dtype != out_.dtype) evaluate(Expression::cast(exact_, out_.dtype), out_);
    }

  private:
    const View& out_;
    View exact_;
};

}  // namespace declivity::ops
