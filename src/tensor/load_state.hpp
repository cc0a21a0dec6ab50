// Layer 3, private. Loading of a state_dict.
#pragma once

#include <string_view>

#include <declivity/tensor/state_dict.hpp>

namespace declivity::detail {

/// Copies the tensors of `state` into those of `own` with the same names. A tensor registered under two names (tied) is
/// loaded from either name, or from both if their bits are equal, for which they are read.
/// @param owner name of the owner in errors; @param strict whether each name must be in both
/// @return the names that are not in both: none if strict
/// @throws ValueError naming the missing and unexpected names, or two names of one tensor with different values;
/// ShapeError, TypeError; nothing is changed then
LoadedState load_state(std::string_view owner, const StateDict& own, const StateDict& state, bool strict = true);

}  // namespace declivity::detail
