// Layer 2, private. The state behind a LazyArray handle, which also tells whether two handles are of one array.
#pragma once

#include <memory>
#include <utility>

#include <declivity/ops/lazy_array.hpp>

#include "runtime/access.hpp"

namespace declivity::ops {

[[nodiscard]] inline const std::shared_ptr<LazyArrayState>& state_of(const LazyArray& array) noexcept {
    return declivity::detail::StateAccess::state(array);
}
[[nodiscard]] inline LazyArray lazy_array_of(std::shared_ptr<LazyArrayState> state) noexcept {
    return declivity::detail::StateAccess::handle<LazyArray>(std::move(state));
}

}  // namespace declivity::ops
