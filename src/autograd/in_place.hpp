// Layer 4, private. In-place writes to tensors, with and without a graph.
#pragma once

#include <string_view>

#include <declivity/ops/view.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Returns whether a write of a value computed from `source` becomes part of the graph, which gives the tensor another
/// value.
/// @throws ValueError if the write is not allowed
bool written_in_graph(const Tensor& tensor, std::string_view function, const Tensor& source = {});

/// Makes all handles of the tensor refer to the value and graph node of `source`.
void replace_value(const Tensor& tensor, Tensor source);

/// Memory of a tensor that may be written in place.
/// @throws ShapeError if several elements share memory
ops::View writable(const Tensor& tensor, std::string_view function);

}  // namespace declivity::detail
