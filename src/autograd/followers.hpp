// Layer 4, private. Views made by x[...] follow x when it takes another value.
#pragma once

#include <memory>

#include "tensor/region.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {

struct Follower {
    std::weak_ptr<TensorState> part;
    std::shared_ptr<const Region> region;
};

/// From now on `part`, which is part_of(whole, region), follows the value of `whole`.
void follow(const Tensor& whole, const Tensor& part, std::shared_ptr<const Region> region);
/// Releases the elements of the followers before `whole` is written; refresh_followers() assigns new ones.
void release_followers(const TensorState& whole);
void refresh_followers(const Tensor& whole);
[[nodiscard]] bool follows(const TensorState& whole, const Tensor& part);
/// Number of live followers that share the memory of `whole`.
long count_followers(const TensorState& whole);

/// Returns whether another live tensor may share its memory. Saved tensors, pending readers and followers do not count.
bool shares_memory(const TensorState& tensor);

}  // namespace declivity::detail
