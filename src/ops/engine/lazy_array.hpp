// Layer 2, private. What layers 2 and 3 do with values besides <declivity/ops/lazy_array.hpp>.
#pragma once

#include <cstdint>
#include <functional>

#include <declivity/ops/lazy_array.hpp>

namespace declivity::ops {

class Expression;

/// For what needs elements, or changes where they stand. @throws ValueError while a formula is noted (formula.hpp)
DECLIVITY_API void refuse_in_formula();

/// Whether values are computed only when they are needed: DECLIVITY_FUSION is not 0.
DECLIVITY_API bool fuses();

/// The elements of an expression over views and other values of one device.
/// @throws Unsupported when it has more views than a kernel takes inputs
DECLIVITY_API LazyArray make_lazy(const Expression& expression, const Device& device);

/// The same elements in another layout, `change` of a view of x: permuted(), sliced(), expanded(). What waits goes on
/// to wait. Both share the memory that x will have.
/// @param change is called at once, with a view that may have no buffer
DECLIVITY_API LazyArray view_of(const LazyArray& x, const std::function<View(const View&)>& change);
/// The same elements under another shape of as many; a copy where they do not lie dense.
DECLIVITY_API LazyArray reshaped(const LazyArray& x, const Shape& shape);

/// Whether it is that of an deferred_batched(), and not computed yet.
[[nodiscard]] DECLIVITY_API bool is_batched(const LazyArray& value);
/// Buffer::version() of the elements when they had just been computed.
[[nodiscard]] DECLIVITY_API std::uint64_t first_version(const LazyArray& value);
/// Capture::current_number() when it was made.
[[nodiscard]] DECLIVITY_API std::uint64_t capture_of(const LazyArray& value);

}  // namespace declivity::ops
