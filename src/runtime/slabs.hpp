// Layer 1, private. Large pieces of device memory, and which parts of them are free.
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

/// One piece, cut into parts. `parts` covers it without gaps.
struct Slab {
    cl::Buffer memory;
    std::size_t base = 0;  // where it begins in `memory`
    std::size_t size = 0;
    std::uint64_t number = 0;  // no two of one owner have the same
    struct Part {
        std::size_t size = 0;
        bool free = true;
        ScopePath scope = {};  // in which it was handed out
    };
    std::map<std::size_t, Part> parts = {};  // by offset from the base
};

/// The free parts of some slabs. Best fit; free neighbours become one.
class FreeParts {
  public:
    struct Part {
        std::size_t size;
        Slab* slab;
        std::size_t offset;
        // Addresses do not order the slabs: equal runs must pick equal parts, so slabs are ordered by their number.
        std::uint64_t slab_number;
        bool operator<(const Part& other) const {
            return std::tie(size, slab_number, offset) < std::tie(other.size, other.slab_number, other.offset);
        }
    };

    /// A slab that nothing is taken from.
    void add(Slab& slab);
    /// Forgets a slab that is free as a whole.
    void remove(const Slab& slab);
    /// The smallest part of so many bytes or more; with `exactly`, of so many. Null when there is none.
    [[nodiscard]] const Part* find(std::size_t bytes, bool exactly) const;
    /// Cuts so many bytes from the front of a part that find() gave.
    void take(const Part& part, std::size_t bytes, ScopePath scope);
    void give_back(Slab& slab, std::size_t offset);

  private:
    std::set<Part> parts_;
};

}  // namespace declivity::detail
