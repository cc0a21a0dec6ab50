// Layer 3, private. Type promotion: the result type of tensors and numbers of several types.
#pragma once

#include <optional>

#include <declivity/ops/dtype.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Collects operands, in any order. The rules are PyTorch's ("Tensor Attributes", torch.result_type). add() throws
/// TypeError if no type can represent both of two.
class Promotion {
  public:
    void add(DType type, int rank) { add(rank > 0 ? of_tensors_ : of_single_, type); }
    void add(const Scalar& number) { add(of_numbers_, dtype_of(number)); }
    void add(const TensorOrScalar& one) {
        if (one.is_scalar()) add(one.scalar());
        else add(one.tensor().dtype(), one.tensor().rank());
    }
    /// Empty if no operand was added.
    [[nodiscard]] std::optional<DType> result() const;

  private:
    static void add(std::optional<DType>& all, DType type);

    std::optional<DType> of_tensors_, of_single_, of_numbers_;  // tensors with axes; without axes; numbers
};

}  // namespace declivity::detail
