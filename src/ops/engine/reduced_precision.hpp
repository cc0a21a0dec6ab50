// Layer 2, private. f16 and bf16 operands of launches that compute in f32.
#pragma once

#include <declivity/ops/view.hpp>

#include "expression.hpp"

namespace declivity::ops {

/// The view upcast to f32 if it is f16 or bf16, otherwise the view itself, which may be empty.
inline View upcast(const View& view) {
    return view.buffer && is_16bit_float(view.dtype)
               ? evaluate(Expression::cast(view, compute_type(view.dtype)), view.device())
               : view;
}

/// Output of kernels that accumulate partial results: sums of f16 and bf16 are stored in f32 and rounded once at the
/// end.
class RoundedOutput {
  public:
    /// @param in_parts false: the kernel rounds by itself, and `exact` is `out`, which may be empty
    explicit RoundedOutput(const View& out, bool in_parts = true)
        : out_(out),
          exact_(in_parts && out.buffer && is_16bit_float(out.dtype)
                     ? View::make(out.device(), compute_type(out.dtype), out.shape)
                     : out) {}
    /// The view that receives the sums.
    [[nodiscard]] const View& exact() const { return exact_; }
    void round() const {
        if (exact_.dtype != out_.dtype) evaluate(Expression::cast(exact_, out_.dtype), out_);
    }

  private:
    const View& out_;
    View exact_;
};

}  // namespace declivity::ops
