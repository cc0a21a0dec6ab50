// Floor 2. Values: elements that are there, or that are computed as soon as somebody needs them. What Tensors stand
// for.
//
// Elementwise results stay expressions until then, so that a chain of functions becomes one kernel; the result of an
// operation (operation.hpp: matmul, convolution) waits for the functions that follow it, so that they become its
// epilogue.
// DECLIVITY_FUSION=0 computes each value as it is made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <declivity/ops/expression.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// A shared handle. Thread-safe.
class DECLIVITY_API Value {
  public:
    /// None.
    Value() = default;
    /// Elements that are there.
    Value(const View& view);  // NOLINT: a view is a value
    /// Those of an expression over views and other values of one device.
    /// @throws Unsupported when it has more views than a kernel takes inputs
    Value(const Expression& expression, const Device& device);

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    [[nodiscard]] DType dtype() const;
    [[nodiscard]] Device device() const;
    /// Whether the elements are there, as far as later commands of the compute queue see.
    [[nodiscard]] bool computed() const;
    /// Whether it is that of an operation_in_company(), and not computed yet.
    [[nodiscard]] bool waits_for_company() const;
    /// The elements; computes them first, in memory of their own.
    [[nodiscard]] const View& view() const;
    /// Buffer::version() of the elements when they had just been computed.
    [[nodiscard]] std::uint64_t first_version() const;
    /// Recorder::current_number() when it was made.
    [[nodiscard]] std::uint64_t recorder() const;
    /// How many handles share it, expressions of values that are not computed included.
    [[nodiscard]] long use_count() const noexcept { return state_.use_count(); }

    struct State;
    [[nodiscard]] State* state() const noexcept { return state_.get(); }
    explicit Value(std::shared_ptr<State> state) : state_(std::move(state)) {}

  private:
    std::shared_ptr<State> state_;
};

/// The same elements in another layout, `change` of a view of x: permuted(), sliced(), expanded(). What waits goes on
/// to wait. Both share the memory that x will have.
/// @param change is called at once, with a view that may have no buffer
DECLIVITY_API Value viewed(const Value& x, const std::function<View(const View&)>& change);
/// The same elements under another shape of as many; a copy where they do not lie dense.
DECLIVITY_API Value reshaped(const Value& x, const Shape& shape);

/// Writes the elements into a view that is there, of the same type, shape and device: a part of another tensor, a row
/// of a cache. A value that waits and that nobody else holds is computed there, without memory of its own. All who
/// still have to read what stands there are launched first, and the memory is marked as written.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void store(std::string_view function, Value value, const View& place);

/// Whether values are computed only when they are needed: DECLIVITY_FUSION is not 0.
DECLIVITY_API bool fuses();

}  // namespace declivity::ops
