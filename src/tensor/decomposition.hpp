// Layer 3, private. Functions that are compositions of others first, and have kernels that are faster.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <declivity/tensor/autograd.hpp>

namespace declivity::detail {

/// While one lives, functions of this thread that have a composition are that, without kernels of their own: what the
/// kernels are tested against.
class DecompositionScope {
  public:
    DecompositionScope();
    ~DecompositionScope();
    DecompositionScope(const DecompositionScope&) = delete;
    DecompositionScope& operator=(const DecompositionScope&) = delete;

  private:
    bool before_;
};

/// Whether one lives.
bool by_decomposition();

/// What a composition gives, computed in f32 where inputs are f16 or bf16, and rounded to that type, as kernels do.
std::vector<Tensor> decomposed_in_f32(const Decomposition& decomposition, const std::vector<Tensor>& inputs);
/// The same of one tensor.
template <class Function>
Tensor decomposed_in_f32(const Tensor& x, const Function& function) {
    return decomposed_in_f32([&](const std::vector<Tensor>& in) { return std::vector{function(in[0])}; }, {x})[0];
}

/// function(x), where x is f16 or bf16 computed in f32 and rounded once. Backward keeps x alone and computes the
/// function again, so that no intermediate result in f32 outlives the call.
Tensor recomputed_in_f32(std::string_view name, const Tensor& x, const std::function<Tensor(const Tensor&)>& function);

}  // namespace declivity::detail
