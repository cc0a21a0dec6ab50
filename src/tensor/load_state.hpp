// Layer 3, private. How a state_dict is loaded.
#pragma once

#include <string_view>

#include <declivity/tensor/state_dict.hpp>

namespace declivity::detail {

/// Copies the tensors of `state` into those of `own` of the same names. A tensor that is there twice (tied) is loaded
/// from either name, or from both where their bits are equal, for which they are read.
/// @param owner what errors call whose state it is; @param strict whether each name must be in both
/// @return the names that are not in both: none where strict
/// @throws ValueError naming the missing and unexpected names, or two names of one tensor that
/// differ; ShapeError, TypeError; nothing is changed then
LoadedState load_state(std::string_view owner, const StateDict& own, const StateDict& state, bool strict = true);

}  // namespace declivity::detail
