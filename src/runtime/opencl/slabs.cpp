#include "slabs.hpp"

#include <iterator>
#include <utility>

namespace declivity::detail {

void FreeParts::add(Slab& slab) {
    slab.parts.clear();
    slab.parts[0] = {slab.size, true};
    parts_.insert({slab.size, &slab, 0, slab.number});
}

void FreeParts::remove(const Slab& slab) { parts_.erase({slab.size, nullptr, 0, slab.number}); }

const FreeParts::Part* FreeParts::find(std::size_t bytes, bool exactly) const {
    const auto found = parts_.lower_bound({bytes, nullptr, 0, 0});
    return found == parts_.end() || (exactly && found->size != bytes) ? nullptr : &*found;
}

void FreeParts::take(const Part& part, std::size_t bytes, ScopePath scope) {
    const Part taken = part;
    parts_.erase(taken);
    Slab& slab = *taken.slab;
    if (taken.size > bytes) {
        slab.parts[taken.offset + bytes] = {taken.size - bytes, true};
        parts_.insert({taken.size - bytes, &slab, taken.offset + bytes, taken.slab_number});
    }
    slab.parts[taken.offset] = {bytes, false, std::move(scope)};
}

void FreeParts::release(Slab& slab, std::size_t offset) {
    auto part = slab.parts.find(offset);
    part->second.free = true;
    const auto next = std::next(part);
    if (next != slab.parts.end() && next->second.free) {
        parts_.erase({next->second.size, nullptr, next->first, slab.number});
        part->second.size += next->second.size;
        slab.parts.erase(next);
    }
    if (part != slab.parts.begin()) {
        const auto previous = std::prev(part);
        if (previous->second.free) {
            parts_.erase({previous->second.size, nullptr, previous->first, slab.number});
            previous->second.size += part->second.size;
            slab.parts.erase(part);
            part = previous;
        }
    }
    parts_.insert({part->second.size, &slab, part->first, slab.number});
}

}  // namespace declivity::detail
