// Layer 1, private. Large blocks of device memory and their free parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <declivity/runtime/scope.hpp>

#include "opencl.hpp"

namespace declivity::detail {

/// One device allocation, divided into parts. `parts` covers it without gaps.
struct Slab {
    cl::Buffer memory;
    std::size_t base = 0;  // offset of the slab in `memory`
    std::size_t size = 0;
    std::uint64_t number = 0;  // unique for each owner
    struct Part {
        std::size_t size = 0;
        bool free = true;
        ScopePath scope = {};  // scope of the allocation
    };
    std::map<std::size_t, Part> parts = {};  // by offset in the slab
};

/// The free parts of a set of slabs. Best fit; adjacent free parts are merged.
class FreeParts {
  public:
    struct Part {
        std::size_t size;
        Slab* slab;
        std::size_t offset;
        // Slabs are ordered by number rather than address, so that equal runs choose equal parts.
        std::uint64_t slab_number;
        bool operator<(const Part& other) const {
            return std::tie(size, slab_number, offset) < std::tie(other.size, other.slab_number, other.offset);
        }
    };

    /// Adds an unused slab.
    void add(Slab& slab);
    /// Removes a slab that is free as a whole.
    void remove(const Slab& slab);
    /// Returns the smallest part of at least `bytes`; with `exactly`, of that size. Null if there is none.
    [[nodiscard]] const Part* find(std::size_t bytes, bool exactly) const;
    /// Takes `bytes` from the front of a part returned by find().
    void take(const Part& part, std::size_t bytes, ScopePath scope);
    void release(Slab& slab, std::size_t offset);

  private:
    std::set<Part> parts_;
};

}  // namespace declivity::detail
