// Layer 2, private. Memory for short lists.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>

namespace declivity::ops {

/// Memory for lists that end with a call, from the stack: a dozen of them on the heap cost as much as the rest of a
/// launch. What does not fit comes from the heap.
template <std::size_t Bytes>
class Scratch {
  public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] std::pmr::memory_resource* memory() noexcept { return &memory_; }

  private:
    alignas(std::max_align_t) std::array<std::byte, Bytes> room_;
    std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
};

}  // namespace declivity::ops
