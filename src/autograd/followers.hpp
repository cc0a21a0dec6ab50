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

/// From now on `part`, which is part_of(base, region), follows the value of `base`.
void follow(const Tensor& base, const Tensor& part, std::shared_ptr<const Region> region);
/// Releases the elements of the followers before `base` is written; refresh_followers() assigns new ones.
void release_followers(const TensorState& base);
void refresh_followers(const Tensor& base);
[[nodiscard]] bool follows(const TensorState& base, const Tensor& part);
/// Number of live followers that share the memory of `base`.
long count_followers(const TensorState& base);

/// Returns whether another live tensor may share its memory. Saved tensors, pending readers and followers do not count.
bool shares_memory(const TensorState& tensor);

}  // namespace declivity::detail
