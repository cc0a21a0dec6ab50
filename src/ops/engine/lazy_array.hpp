// Layer 2, private. Functions on lazy arrays for layers 2 and 3, in addition to <declivity/ops/lazy_array.hpp>.
#pragma once

#include <cstdint>
#include <functional>

#include <declivity/ops/lazy_array.hpp>

namespace declivity::ops {

class Expression;

/// To be called by functions that need elements or change shapes. @throws ValueError while a formula is traced
/// (formula.hpp)
DECLIVITY_API void refuse_in_formula();

/// Returns whether evaluation is lazy: DECLIVITY_FUSION is not 0.
DECLIVITY_API bool fuses();

/// Creates a lazy array from an expression over views and other lazy arrays of one device.
/// @throws Unsupported if it has more views than a kernel takes inputs
DECLIVITY_API LazyArray make_lazy(const Expression& expression, const Device& device);

/// A view with another layout, `change` of a view of x: permuted(), sliced(), expanded(). A pending array stays
/// pending. Both share the memory that x will have.
/// @param change called at once, with a view that may have no buffer
DECLIVITY_API LazyArray view_of(const LazyArray& x, const std::function<View(const View&)>& change);
/// The same elements with another shape of equal size; a copy if they are not dense.
DECLIVITY_API LazyArray reshaped(const LazyArray& x, const Shape& shape);

/// Returns whether it is the result of deferred_batched() and still pending.
[[nodiscard]] DECLIVITY_API bool is_batched(const LazyArray& value);
/// Buffer::version() of the elements right after they were computed.
[[nodiscard]] DECLIVITY_API std::uint64_t first_version(const LazyArray& value);
/// Capture::current_number() when it was created.
[[nodiscard]] DECLIVITY_API std::uint64_t capture_of(const LazyArray& value);

}  // namespace declivity::ops
