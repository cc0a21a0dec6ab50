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
    void add(DType type, int rank) { add(rank > 0 ? tensor_type_ : zero_dim_type_, type); }
    void add(const Scalar& scalar) { add(scalar_type_, dtype_of(scalar)); }
    void add(const TensorOrScalar& operand) {
        if (operand.is_scalar()) add(operand.scalar());
        else add(operand.tensor().dtype(), operand.tensor().rank());
    }
    /// Empty if no operand was added.
    [[nodiscard]] std::optional<DType> result() const;

  private:
    static void add(std::optional<DType>& accumulated, DType type);

    std::optional<DType> tensor_type_, zero_dim_type_, scalar_type_;  // tensors with axes; without axes; numbers
};

}  // namespace declivity::detail
