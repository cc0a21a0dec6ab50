#include "work_split.hpp"

#include <optional>

namespace declivity::ops {
namespace {
thread_local std::optional<Family> forced;
}

Family family_of(const Device& device) { return forced ? *forced : device.family(); }
FamilyScope::FamilyScope(Family family) { forced = family; }
FamilyScope::~FamilyScope() { forced.reset(); }

}  // namespace declivity::ops
