// Layer 5, private. Beginning of functions that take a list of tensors.
#pragma once

#include <span>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity::detail {

inline void require_nonempty(const char* function, const std::vector<Tensor>& tensors) {
    if (tensors.empty()) throw ValueError(fmt::format("{}: expected at least one tensor, got none", function));
}

}  // namespace declivity::detail

/// Declares `call`; the attributes follow the list.
#define LIST_CALL(name, list, ...)                                            \
    const CallInput call_inputs[] = {{#list, std::span<const Tensor>(list)}}; \
    const CallAttribute call_attributes[] = {__VA_ARGS__};                    \
    const FunctionCall call(name, name, call_inputs, call_attributes);        \
    detail::require_nonempty(name, list);                                     \
    call.require_defined({#list})
