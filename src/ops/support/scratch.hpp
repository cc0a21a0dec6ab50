// Layer 2, private. Stack memory for short lists.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>

namespace declivity::ops {

/// Memory resource for lists that live for one call, on the stack: a dozen heap allocations cost as much as the rest of
/// a launch. Falls back to the heap when it is full.
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
