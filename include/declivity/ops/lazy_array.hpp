// Layer 2. LazyArray: elements that are computed, or an expression that is evaluated when they are needed. The storage
// of a Tensor.
//
// Elementwise results stay expressions, so that a chain of functions becomes one kernel; an operation (operation.hpp:
// matmul, convolution) stays pending, so that the functions that follow become its epilogue. This is a handle only: the
// engine implements deferral and fusion (docs/internals/engine.md). DECLIVITY_FUSION=0 evaluates arrays immediately.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

struct LazyArrayState;

/// A shared handle. Thread-safe.
class DECLIVITY_API LazyArray {
  public:
    /// Empty handle.
    LazyArray() = default;
    /// An array that is computed already.
    LazyArray(const View& view);  // NOLINT: a view is a value

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    [[nodiscard]] DType dtype() const;
    [[nodiscard]] Device device() const;
    /// True if the elements are computed, as seen by later commands of the compute queue.
    [[nodiscard]] bool computed() const;
    /// The elements; evaluates them first, into memory of their own.
    [[nodiscard]] const View& view() const;

  private:
    friend struct declivity::detail::StateAccess;
    explicit LazyArray(std::shared_ptr<LazyArrayState> state) : state_(std::move(state)) {}
    std::shared_ptr<LazyArrayState> state_;
};

/// Writes the elements into an existing view of the same type, shape and device, such as a part of another tensor or a
/// row of a cache. A pending value that is unshared is computed in place, without a temporary. Pending readers of the
/// destination are launched first, and its version counter is incremented.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void evaluate_into(std::string_view function, LazyArray value, const View& destination);

// ---- deprecated names of version 0.1

using Value [[deprecated("ops::LazyArray")]] = LazyArray;
[[deprecated("ops::evaluate_into")]] inline void store(std::string_view function, LazyArray value,
                                                       const View& destination) {
    evaluate_into(function, std::move(value), destination);
}

/// @}

}  // namespace declivity::ops
