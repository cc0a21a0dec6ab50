// Layer 2, private. Who else may look at a value or at memory: the one place where handles are counted.
#pragma once

#include <memory>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/buffer.hpp>

namespace declivity::ops {

/// Handles to an object, for who asks later.
template <class T>
[[nodiscard]] long handles_to(const std::shared_ptr<T>& object) noexcept {
    return object.use_count();
}

/// Will anybody else read this? Whether there are handles beside the `own` ones of whoever asks.
template <class T>
[[nodiscard]] bool is_shared(const std::shared_ptr<T>& object, long own = 1) noexcept {
    return object.use_count() > own;
}
template <class T>
[[nodiscard]] bool is_shared(const std::weak_ptr<T>& object, long own) noexcept {
    return object.use_count() > own;
}
[[nodiscard]] inline bool is_shared(const LazyArray& value, long own = 1) noexcept {
    return value.state().use_count() > own;
}
[[nodiscard]] inline bool is_shared(const Buffer& memory, long own = 1) noexcept { return memory.use_count() > own; }

/// May I write into this? Whether it is memory of the pool's without gaps, to which no handles lead but the `own` ones
/// of whoever asks, and which nobody but `reader` still has to read (Buffer::is_unshared).
[[nodiscard]] inline bool may_write(const View& view, long own = 1, const PendingLaunch* reader = nullptr) {
    return view.dense() && view.buffer.is_unshared(own, reader);
}

}  // namespace declivity::ops
