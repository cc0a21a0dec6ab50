// Layer 3, private. In-place writes to tensors, with and without a graph.
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
/// Value of a tensor, reported to the capture tracker.
const ops::LazyArray& used_value(const std::shared_ptr<TensorState>& state, std::string_view function);

/// Returns whether a write of a value computed from `source` becomes part of the graph, which gives the tensor another
/// value.
/// @throws ValueError if the write is not allowed
bool written_in_graph(const Tensor& tensor, std::string_view function, const Tensor& source = {});

/// @throws ShapeError if several elements share memory, as in an expanded tensor
void require_no_overlap(std::string_view function, const ops::View& view);
/// @throws TypeError if the result type of `function` does not fit the tensor's type: a fraction into an i32
void require_fits_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other);
/// @throws TypeError for integers and bools, whose quotients are floating point
void require_divisible(std::string_view function, const Tensor& to);

/// Makes all handles of the tensor refer to the value and graph node of `made`.
void become(const Tensor& tensor, Tensor made);

/// Result that shares the memory of x, now or once computed.
Tensor alias(std::string_view name, const Tensor& x, const ops::LazyArray& result, GradientRule rule);

/// Elements of x; donated if x is not shared.
ops::LazyArray donated_elements(Tensor& x);
/// Memory with these elements, to be written in place: their own if it is unshared, otherwise a copy.
ops::View writable_view(const ops::LazyArray& x);

/// New value of a part after +=, -=, *= or /=.
Tensor changed_part(const Tensor& part, ops::Function function, const char* name, const TensorOrScalar& value);

}  // namespace declivity::detail
