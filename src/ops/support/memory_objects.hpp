// Layer 2, private. Passes many tensors to one launch: pooled memory is in few memory objects, which a kernel takes as
// a whole.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// Number of elements before a view's first one in its memory object.
inline std::int64_t elements_before(const View& view) {
    return static_cast<std::int64_t>(interop::raw(view.buffer).offset / size_of(view.dtype)) + view.offset;
}

/// Up to Most memory objects, of views of one type.
template <std::size_t Most>
class MemoryObjects {
  public:
    /// Returns the index of a view's memory object, which is added if it is new. Empty if there is no room.
    std::optional<std::int32_t> index_of(const View& view) {
        for (std::size_t i = 0; i < Most; ++i) {
            if (!in_[i].buffer) in_[i] = view;
            if (interop::raw(in_[i].buffer).memory == interop::raw(view.buffer).memory)
                return static_cast<std::int32_t>(i);
        }
        return std::nullopt;
    }

    /// The kernel arguments, each from the start of a memory object; unused ones repeat the first.
    [[nodiscard]] std::array<BufferArgument, Most> arguments() const {
        std::array<BufferArgument, Most> all{};
        for (std::size_t i = 0; i < Most; ++i) {
            const View& view = in_[i].buffer ? in_[i] : in_[0];
            all[i] = {view.buffer, view.offset - elements_before(view), size_of(view.dtype)};
        }
        return all;
    }

  private:
    std::array<View, Most> in_;  // one view of each memory object
};

}  // namespace declivity::ops
