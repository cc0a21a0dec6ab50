// Shared by the parts of gpu_compile_collect. A part is a file collect_<name>.cpp that ends with
//
//     const Part part{"name", function};
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::gpu_compile {

/// A part of the catalogue walk, which creates kernels.
struct Part {
    Part(std::string name, void (*run)());
};

/// --all: every combination; by default redundant ones are skipped.
bool all_combinations();

inline constexpr std::array kReals{DType::f32, DType::f64};
inline constexpr std::array kFloats{DType::f32, DType::f64, DType::f16, DType::bf16};

inline Tensor of(DType dtype, const Shape& shape) { return zeros(shape, {.dtype = dtype}); }
inline Tensor leaf(DType dtype, const Shape& shape) { return of(dtype, shape).set_requires_grad(); }
/// Evaluates a lazy tensor, which creates its kernels.
inline void compute(const Tensor& value) { (void)value.view(); }
inline void dense_copy(const Tensor& strided) { (void)ops::dense_copy_if_needed(strided.view()); }
inline void backward(const Tensor& result, const std::vector<Tensor>& leaves) {
    const Tensor gradient = of(result.dtype(), result.shape());
    result.backward(gradient);
    for (const Tensor& item : leaves)
        if (item.grad().defined()) compute(item.grad());
}

/// Calls of all rows of the elementwise table with operands of one type.
std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> chains();
/// A dense operand of a shape, or one with reversed axes.
Tensor laid(DType dtype, const Shape& shape, bool reversed);

}  // namespace declivity::gpu_compile
