// What the parts of gpu_compile_collect are made with. A part is a file collect_<name>.cpp, which ends in
//
//     const Part part{"name", function};
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity::gpu_compile {

/// A part of the walk through the catalogue, which makes kernels.
struct Part {
    Part(std::string name, void (*run)());
};

/// --all: each combination, where otherwise those are left out that only repeat what others have.
bool all_combinations();

inline constexpr std::array kReals{DType::f32, DType::f64};
inline constexpr std::array kFloats{DType::f32, DType::f64, DType::f16, DType::bf16};

inline Tensor of(DType dtype, const Shape& shape) { return zeros(shape, {.dtype = dtype}); }
inline Tensor leaf(DType dtype, const Shape& shape) { return of(dtype, shape).set_requires_grad(); }
/// Makes the kernels that a value waits for.
inline void compute(const Tensor& value) { (void)value.view(); }
inline void dense_copy(const Tensor& strided) { (void)ops::dense_copy_if_needed(strided.view()); }
inline void backward(const Tensor& result, const std::vector<Tensor>& leaves) {
    const Tensor gradient = of(result.dtype(), result.shape());
    result.backward(gradient);
    for (const Tensor& item : leaves)
        if (item.grad().defined()) compute(item.grad());
}

/// Calls of all rows of the elementwise table over operands of one type.
std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> chains();
/// One dense operand of a shape, or one whose axes lie the other way round.
Tensor laid(DType dtype, const Shape& shape, bool reversed);

}  // namespace declivity::gpu_compile
