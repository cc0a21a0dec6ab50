// Floor 2, private. What floors 2 and 3 do with values besides <declivity/ops/value.hpp>.
#pragma once

#include <cstdint>
#include <functional>

#include <declivity/ops/value.hpp>

namespace declivity::ops {

class Expression;

/// For what needs elements, or changes where they stand. @throws ValueError while a formula is noted (formula.hpp)
DECLIVITY_API void refuse_in_formula();

/// Whether values are computed only when they are needed: DECLIVITY_FUSION is not 0.
DECLIVITY_API bool fuses();

/// The elements of an expression over views and other values of one device.
/// @throws Unsupported when it has more views than a kernel takes inputs
DECLIVITY_API Value value_of(const Expression& expression, const Device& device);

/// The same elements in another layout, `change` of a view of x: permuted(), sliced(), expanded(). What waits goes on
/// to wait. Both share the memory that x will have.
/// @param change is called at once, with a view that may have no buffer
DECLIVITY_API Value viewed(const Value& x, const std::function<View(const View&)>& change);
/// The same elements under another shape of as many; a copy where they do not lie dense.
DECLIVITY_API Value reshaped(const Value& x, const Shape& shape);

/// Whether it is that of an operation_in_company(), and not computed yet.
[[nodiscard]] DECLIVITY_API bool waits_for_company(const Value& value);
/// Buffer::version() of the elements when they had just been computed.
[[nodiscard]] DECLIVITY_API std::uint64_t first_version(const Value& value);
/// Recorder::current_number() when it was made.
[[nodiscard]] DECLIVITY_API std::uint64_t recorder_of(const Value& value);

}  // namespace declivity::ops
