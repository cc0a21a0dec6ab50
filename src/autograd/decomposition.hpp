// Layer 4, private. Functions with a decomposition into other functions as well as faster kernels.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <declivity/autograd/autograd.hpp>

namespace declivity::detail {

/// While an instance is alive, functions of this thread that have a decomposition use it instead of their kernels: the
/// reference that the kernels are tested against.
class DecompositionScope {
  public:
    DecompositionScope();
    ~DecompositionScope();
    DecompositionScope(const DecompositionScope&) = delete;
    DecompositionScope& operator=(const DecompositionScope&) = delete;

  private:
    bool previous_;
};

/// Returns whether a DecompositionScope is alive on this thread.
bool by_decomposition();

/// Results of a decomposition, computed in f32 where inputs are f16 or bf16 and rounded to that type, like kernels do.
std::vector<Tensor> decomposed_in_f32(const Decomposition& decomposition, const std::vector<Tensor>& inputs);
/// Overload for a function of one tensor.
template <class Function>
Tensor decomposed_in_f32(const Tensor& x, const Function& function) {
    return decomposed_in_f32([&](const std::vector<Tensor>& in) { return std::vector{function(in[0])}; }, {x})[0];
}

/// function(x); for f16 and bf16, x is upcast to f32 and the result rounded once. Saves only x and recomputes the
/// function in backward, so that no f32 intermediate outlives the call.
Tensor recomputed_in_f32(std::string_view name, const Tensor& x, const std::function<Tensor(const Tensor&)>& function);

}  // namespace declivity::detail
