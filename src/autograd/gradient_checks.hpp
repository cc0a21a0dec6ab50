// Layer 4, private. Checks of the shape, type and device of a gradient.
#pragma once

#include <concepts>
#include <string_view>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/tensor.hpp>
#include <fmt/format.h>

#include "graph.hpp"

namespace declivity::detail {

/// @param name called for the prefix of errors
/// @throws ShapeError, TypeError, DeviceError
template <std::invocable Name>
void check_gradient(const Name& name, const Tensor& gradient, const OutputInfo& expected) {
    if (!(gradient.shape() == expected.shape))
        throw ShapeError(fmt::format("{}: expected a gradient of shape {}, got {}", name(), expected.shape.str(),
                                     gradient.shape().str()));
    if (gradient.dtype() != expected.dtype)
        throw TypeError(fmt::format("{}: expected a gradient of type {}, got {}", name(), name_of(expected.dtype),
                                    name_of(gradient.dtype())));
    if (!(gradient.device() == expected.device))
        throw DeviceError(fmt::format("{}: expected a gradient on '{}', got one on '{}'", name(),
                                      expected.device.name(), gradient.device().name()));
}

inline void check_gradient(std::string_view name, const Tensor& gradient, const OutputInfo& expected) {
    check_gradient([name] { return name; }, gradient, expected);
}

/// Shape, type and device of the gradient that goes along an edge.
inline OutputInfo target(const Edge& edge) {
    if (edge.node) return edge.node->outputs[edge.output];
    return {edge.leaf->value.shape(), edge.leaf->value.dtype(), edge.leaf->value.device()};
}

}  // namespace declivity::detail
