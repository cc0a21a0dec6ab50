// Layer 3, private. Tensors that are written in place, in a graph and outside of one.
#pragma once

#include <memory>
#include <string_view>

#include <declivity/ops/function.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/tensor/tensor.hpp>

#include "tensor_state.hpp"

namespace declivity::detail {

/// @throws ValueError naming `function` for an undefined tensor
TensorState& checked_state(const std::shared_ptr<TensorState>& state, std::string_view function);
/// A recorded step must know whose elements it works on.
const ops::LazyArray& used_value(const std::shared_ptr<TensorState>& state, std::string_view function);

/// Whether a write of what is made from `source` is a part of the graph, which gives the tensor another value.
/// @throws ValueError where that cannot be
bool written_in_graph(const Tensor& tensor, std::string_view function, const Tensor& source = {});

/// @throws ShapeError for memory in which an element stands for several, as an expanded tensor's
void require_own_places(std::string_view function, const ops::View& view);
/// @throws TypeError where `function` of both gives what the tensor's type cannot hold: a fraction in place of an i32
void require_fits_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other);
/// @throws TypeError for integers and bools, whose quotients are floating
void require_divisible(std::string_view function, const Tensor& to);

/// All handles of the tensor stand for another one from now on.
void become(const Tensor& tensor, Tensor made);

/// For a result that shares the memory of x, or will.
Tensor alias(std::string_view name, const Tensor& x, const ops::LazyArray& result, GradientRule rule);

/// Elements of x, which is given away where nobody else holds it.
ops::LazyArray given_elements(Tensor& x);
/// Memory with these elements, to write into: their own where nobody else can tell.
ops::View memory_to_write(const ops::LazyArray& x);

/// What a part becomes by +=, -=, *= or /=.
Tensor changed_part(const Tensor& part, ops::Function function, const char* name, const TensorOrScalar& value);

}  // namespace declivity::detail
