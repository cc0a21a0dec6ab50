// Layer 2. Values: elements that are there, or that are computed as soon as somebody needs them. What Tensors stand
// for.
//
// Elementwise results stay expressions until then, so that a chain of functions becomes one kernel; the result of an
// operation (operation.hpp: matmul, convolution) waits for the functions that follow it, so that they become its
// epilogue. A handle alone: how values wait is the engine's (docs/engine.md).
// DECLIVITY_FUSION=0 computes each value as it is made.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

struct LazyArrayState;

/// A shared handle. Thread-safe.
class DECLIVITY_API LazyArray {
  public:
    /// None.
    LazyArray() = default;
    /// Elements that are there.
    LazyArray(const View& view);  // NOLINT: a view is a value

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    [[nodiscard]] DType dtype() const;
    [[nodiscard]] Device device() const;
    /// Whether the elements are there, as far as later commands of the compute queue see.
    [[nodiscard]] bool computed() const;
    /// The elements; computes them first, in memory of their own.
    [[nodiscard]] const View& view() const;

    /// For the engine.
    explicit LazyArray(std::shared_ptr<LazyArrayState> state) : state_(std::move(state)) {}
    [[nodiscard]] const std::shared_ptr<LazyArrayState>& state() const noexcept { return state_; }

  private:
    std::shared_ptr<LazyArrayState> state_;
};

/// Writes the elements into a view that is there, of the same type, shape and device: a part of another tensor, a row
/// of a cache. A value that waits and that nobody else holds is computed there, without memory of its own. All who
/// still have to read what stands there are launched first, and the memory is marked as written.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void evaluate_into(std::string_view function, LazyArray value, const View& place);

}  // namespace declivity::ops
