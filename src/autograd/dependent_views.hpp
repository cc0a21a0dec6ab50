// Layer 4, private. Dependent views: results of x[...], which take the new value when x takes another one.
#pragma once

#include <memory>

#include "tensor/region.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {

struct DependentView {
    std::weak_ptr<TensorState> part;
    std::shared_ptr<const Region> region;
};

/// From now on `part`, which is part_of(base, region), takes each new value of `base`.
void add_dependent_view(const Tensor& base, const Tensor& part, std::shared_ptr<const Region> region);
/// Releases the elements of the dependent views before `base` is written; refresh_dependent_views() assigns new ones.
void release_dependent_views(const TensorState& base);
void refresh_dependent_views(const Tensor& base);
[[nodiscard]] bool is_dependent_view(const TensorState& base, const Tensor& part);
/// Number of live dependent views that share the memory of `base`.
long count_dependent_views(const TensorState& base);

/// Returns whether another live tensor may share its memory. Saved tensors, pending readers and dependent views do not
/// count.
bool shares_memory(const TensorState& tensor);

}  // namespace declivity::detail
