// Layer 3, private. Tensors that x[...] gave follow x when it takes another value.
#pragma once

#include <memory>

#include "region.hpp"
#include "tensor_state.hpp"

namespace declivity::detail {

struct Follower {
    std::weak_ptr<TensorState> part;
    std::shared_ptr<const Region> region;
};

/// From now on `part`, which is region.of(whole), is what that is at the time.
void follow(const Tensor& whole, const Tensor& part, std::shared_ptr<const Region> region);
/// Followers let go of their elements, since `whole` is about to be written; refresh() gives them others.
void release_followers(const TensorState& whole);
void refresh_followers(const Tensor& whole);
[[nodiscard]] bool follows(const TensorState& whole, const Tensor& part);
/// Followers that live and share the memory of `whole`.
long count_followers(const TensorState& whole);

}  // namespace declivity::detail
