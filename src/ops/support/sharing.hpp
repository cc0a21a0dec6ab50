// Layer 2, private. Reference counts of values and buffers: the one place where handles are counted.
#pragma once

#include <memory>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/buffer.hpp>

#include "ops/engine/access.hpp"
#include "ops/engine/pending_access.hpp"

namespace declivity::ops {

/// Number of handles to an object, to be compared later.
template <class T>
[[nodiscard]] long handles_to(const std::shared_ptr<T>& object) noexcept {
    return object.use_count();
}

/// Returns whether there are handles other than the caller's `own` ones, so that others may read the value.
template <class T>
[[nodiscard]] bool is_shared(const std::shared_ptr<T>& object, long own = 1) noexcept {
    return object.use_count() > own;
}
template <class T>
[[nodiscard]] bool is_shared(const std::weak_ptr<T>& object, long own) noexcept {
    return object.use_count() > own;
}
[[nodiscard]] inline bool is_shared(const LazyArray& value, long own = 1) noexcept {
    return state_of(value).use_count() > own;
}
[[nodiscard]] inline bool is_shared(const Buffer& memory, long own = 1) noexcept { return memory.use_count() > own; }

/// Returns whether the caller may overwrite the view, for example to donate it: it is dense pool memory with no handles
/// but the caller's `own` ones and no pending reader but `reader` (is_unshared).
[[nodiscard]] inline bool may_write(const View& view, long own = 1, const PendingLaunch* reader = nullptr) {
    return view.dense() && is_unshared(view.buffer, own, reader);
}

}  // namespace declivity::ops
